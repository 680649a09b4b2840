package interp_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// text is the answer to a call that reads a text.
func text(content string) answer { return ok(base64.StdEncoding.EncodeToString([]byte(content))) }

const lateSchemas = `
use: {secrets: [token]}
do:
  - order:
      input:
        schema: {resource: {endpoint: {uri: 'https://schemas.example/{kind}.json', authentication: {bearer: {token: '${ $secrets.token }'}}}}}
        from: .n
      call: http
      with: {method: post, endpoint: 'https://shop.example/orders', body: '${ . }'}
      output: {schema: {resource: {name: made, endpoint: '${ "https://schemas.example/" + .made + "?" + ($input | tostring) }'}}}
      export: {as: '{last: .id}', schema: {resource: {endpoint: '${ "https://schemas.example/context/" + (.last | tostring) + $output.made }'}}}`

// origins answers by URL.
func origins(answers map[string]answer) func(interp.Call) answer {
	return func(c interp.Call) answer {
		if a, known := answers[c.HTTP.URL]; known {
			return a
		}
		return answer{Result: answered(404)}
	}
}

func lateOrigins() map[string]answer {
	return map[string]answer{
		"https://schemas.example/a.json":     text(`{"required": ["n"]}`),
		"https://shop.example/orders":        ok(map[string]any{"id": 7, "made": "x"}),
		"https://schemas.example/x?5":        text("properties:\n  id: {type: integer}\n"),
		"https://schemas.example/context/7x": text(`{"required": ["last"]}`),
	}
}

func TestSchemasThatOnlyTheRunKnowsAreReadWhenTheyAreUsed(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(lateSchemas), `{"kind": "a", "n": 5}`)
	w.origin = origins(lateOrigins())
	w.completes(`{"id": 7, "made": "x"}`)
	var sent []string
	for _, c := range w.calls {
		sent = append(sent, c.HTTP.Method+" "+c.HTTP.URL)
	}
	require.Equal(t, []string{
		"GET https://schemas.example/a.json", "POST https://shop.example/orders", "GET https://schemas.example/x?5",
		"GET https://schemas.example/context/7x",
	}, sent)
	read := w.calls[0].HTTP
	require.Equal(t, dsl.OutputRaw, read.Output)
	require.True(t, read.Redirect)
	require.Len(t, read.Secrets, 1)
	require.Nil(t, w.calls[2].HTTP.Authentication)
	attempts := w.step("/do/0/order").Attempts
	require.Len(t, attempts, 1, "that of the call")
	require.Equal(t, "shop.example", attempts[0].Host)
}

func TestValuesMustMatchSchemasThatOnlyTheRunKnows(t *testing.T) {
	t.Parallel()
	for url, tc := range map[string]struct {
		schema, want string
		calls        int
	}{
		"https://schemas.example/a.json": {`{"required": ["m"]}`, "the task's input does not match its schema " +
			"https://schemas.example/a.json (" + dsl.ContentHash([]byte(`{"required": ["m"]}`)) + "): missing property 'm'", 1},
		"https://schemas.example/x?5":        {`{"type": "string"}`, "the task's output does not match its schema", 3},
		"https://schemas.example/context/7x": {`{"type": "string"}`, "the exported context does not match its schema", 4},
	} {
		w := newDriver(t, document(lateSchemas), `{"kind": "a", "n": 5}`)
		answers := lateOrigins()
		answers[url] = text(tc.schema)
		w.origin = origins(answers)
		failed := w.fails()
		require.Contains(t, failed.Detail, tc.want)
		require.Equal(t, dsl.ErrorTypeValidation, failed.Type)
		require.Equal(t, "/do/0/order", failed.Instance)
		require.Len(t, w.calls, tc.calls)
	}
}

func TestTextsThatAreNoSchemas(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]answer{
		"answered 304 without a text":              {Result: interp.Result{Value: "", Attempts: []interp.Attempt{{Status: 304}}}},
		"is not a text in UTF-8":                   text("\xff"),
		"is no schema: 1:":                         text("{"),
		"is no schema: 1:1: the document is empty": text(""),
		"is no schema: the schema does not comp":   text(`{"type": 7}`),
		"is outside the document":                  text(`{"$ref": "https://other.example/x.json"}`),
		"it has 262145 bytes, the limit is":        text(strings.Repeat(" ", dsl.MaxLateSchemaBytes+1)),
		"values":                                   text("[" + strings.Repeat("1,", 20_000) + "1]"),
		"parts or more":                            text(`{"pattern": "((a{1000}){1000}){1000}"}`),
		"the origin said so":                       {Result: answered(404)},
	} {
		w := newDriver(t, document(lateSchemas), `{"kind": "a", "n": 5}`)
		answers := lateOrigins()
		answers["https://schemas.example/a.json"] = a
		w.origin = origins(answers)
		failed := w.fails()
		require.Contains(t, failed.Detail, want)
		require.Equal(t, dsl.ErrorTypeCommunication, failed.Type)
		require.Equal(t, "/do/0/order", failed.Instance)
		require.Len(t, w.calls, 1)
	}
	w := newDriver(t, document(lateSchemas), `{"kind": 7, "n": 5}`)
	w.origin = origins(nil)
	require.Equal(t, 404, w.fails().Status, "a number is a part of a path")
	w = newDriver(t, document(strings.ReplaceAll(lateSchemas, ".made +", ".missing +")), `{"kind": "a", "n": 5}`)
	w.origin = origins(lateOrigins())
	require.Equal(t, 404, w.fails().Status, "null is an empty text")
}

func TestSchemaIsReadAgainByARetry(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - t:
      try:
        - a: {set: {id: 1}, output: {schema: {resource: {endpoint: '${ "http://s/" + (.id | tostring) }'}}}}
      catch: {errors: {with: {status: 503}}, retry: {delay: {seconds: 1}, limit: {attempt: {count: 3}}}}`), `{}`)
	w.origin = func(interp.Call) answer {
		if len(w.calls) < 3 {
			return answer{Result: answered(503)}
		}
		return text("true")
	}
	w.completes(`{"id": 1}`)
	require.Len(t, w.calls, 3)
	require.NotEqual(t, w.calls[0].Key, w.calls[1].Key, "the work of the task was done")
}

func TestTheEndOfATaskEndsTheReadOfItsSchema(t *testing.T) {
	t.Parallel()
	never := func(interp.Call) answer { return answer{never: true} }
	w := newDriver(t, document(`
do:
  - a: {timeout: {after: {seconds: 2}}, set: {id: 1}, export: {schema: {resource: {endpoint: '${ "http://s" }'}}}}`), `{}`)
	w.origin = never
	require.Equal(t, 408, w.fails().Status)

	w = newDriver(t, document(`
do:
  - f:
      fork:
        compete: true
        branches:
          - slow: {input: {schema: {resource: {endpoint: '${ "http://s" }'}}}, set: {id: 1}}
          - fast: {do: [{w: {wait: {seconds: 1}}}, {s: {set: {id: 2}}}]}`), `{}`)
	w.origin = never
	w.completes(`{"id": 2}`)

	w = newDriver(t, document(`
do:
  - l: {listen: {to: {one: {with: {type: t}}}}, output: {schema: {resource: {endpoint: '${ "http://s" }'}}}}`), `{}`)
	w.origin = func(interp.Call) answer { return answer{Result: text("true").Result, after: time.Minute} }
	w.publish(time.Second, `{"id": "1", "type": "t", "data": 1}`)
	w.publish(2*time.Second, `{"id": "2", "type": "t", "data": 2}`)
	w.completes(`[1]`)
	require.Equal(t, 1, w.delivered, "the task listens no more")
}

// The attempt of a try is over while the schema of its output is read, and the context that another branch has set
// meanwhile is kept.
func TestReadingASchemaIsNoPartOfTheWork(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - t:
      try: [{s: {set: {id: 1}}}]
      catch: {retry: {limit: {attempt: {count: 2, duration: {seconds: 5}}}}}
      output: {schema: {resource: {endpoint: '${ "http://s" }'}}}
  - f:
      fork:
        branches:
          - a: {set: {x: 1}, export: {as: '$context + {a: 1}', schema: {resource: {endpoint: '${ "http://s" }'}}}}
          - b: {do: [{w: {wait: {seconds: 1}}}, {s: {set: {x: 1}, export: {as: '$context + {b: 1}'}}}]}
      output: {as: $context}`), `{"first": 1}`)
	w.origin = func(interp.Call) answer { return answer{Result: text("true").Result, after: time.Minute} }
	w.completes(`{"first": 1, "a": 1, "b": 1}`)
}

func TestHoldPreventsReadsOfSchemas(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - f:
      fork:
        branches:
          - a: {for: {in: '[1,2,3]'}, do: [{c: {call: http, with: {method: post, endpoint: 'http://a'}, `+
		`output: {as: '{got: .}', schema: {resource: {endpoint: '${ "http://s/" + (.got | tostring) + ($task.output | tostring) }'}}}, `+
		`export: {as: '{at: $output.got}', schema: {resource: {endpoint: '${ "http://c/" + (.at | tostring) }'}}}}}]}
          - b: {for: {in: '[1,2,3]'}, do: [{c: {call: http, with: {method: post, endpoint: 'http://b'}}}]}`), `{}`)
	w.origin = func(c interp.Call) answer {
		after := 2 * time.Second
		switch c.HTTP.URL {
		case "http://a":
			return answer{Result: ok(4).Result, after: after}
		case "http://b":
			return answer{Result: ok("b").Result, after: 3 * time.Second}
		case "http://s/44", "http://c/4":
			return answer{Result: text("true").Result, after: after}
		}
		return answer{Result: answered(404)}
	}
	moves := 0
	w.between = func(w *driver) {
		if moves++; moves > 40 {
			return
		}
		w.m.Hold()
		if w.m.InFlight() == 0 {
			w.restore()
		}
	}
	w.completes(`[{"got": 4}, "b"]`)
	require.Len(t, w.calls, 12)
}
