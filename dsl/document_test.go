package dsl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

const header = "document: {dsl: '1.0.3', namespace: test, name: sample, version: '1.0.0'}\n"

func parse(t testing.TB, source string) *dsl.Document {
	t.Helper()
	doc, violations := dsl.Parse([]byte(source))
	require.Empty(t, violations)
	require.NotNil(t, doc)
	return doc
}

// body parses a document with one task and returns the task's body.
func body[T dsl.Body](t *testing.T, task string) T {
	t.Helper()
	doc := parse(t, header+"do:\n  - t:\n      "+strings.ReplaceAll(task, "\n", "\n      "))
	b, ok := doc.Do[0].Body.(T)
	require.True(t, ok, "%T", doc.Do[0].Body)
	return b
}

// richDocument has every kind of task and most properties.
const richDocument = `
document: {dsl: '1.0.3', namespace: shop, name: order, version: 1.2.3, title: Order, summary: s, tags: {team: x}, metadata: {k: [1]}}
input: {schema: {document: {type: object}}, from: .order}
use:
  errors: {gone: {type: 'https://example.com/gone', status: 410, detail: '${ .why }'}}
  retries: {slow: {delay: PT2S, backoff: {linear: {increment: PT1S}}, limit: {attempt: {count: 3, duration: PT9S}, duration: PT1M}, jitter: {from: PT0S, to: PT1S}, when: $problem.status == 503}}
  timeouts: {day: {after: P1D}}
timeout: day
schedule: {on: {all: [{with: {type: paid}, correlate: {order: {from: .data.order}}}, {with: {type: packed}, correlate: {order: {from: .data.order, expect: x}}}]}}
do:
  - loop:
      for: {each: line, in: .lines}
      while: $index < 2
      do:
        - try it/now:
            try:
              - call:
                  call: http
                  with: {method: post, endpoint: {uri: 'https://example.com/{id}'}, body: {a: '${ .x }'}, output: response, redirect: true}
            catch:
              errors: {with: {status: 503, type: 'https://serverlessworkflow.io/dsl/errors/types/communication'}}
              as: problem
              retry: slow
              do:
                - stop: {raise: {error: gone}}
              then: exit
  - choose:
      switch:
        - yes: {when: .x, then: loop}
        - no: {then: both}
  - both:
      if: .y
      fork: {compete: true, branches: [{l: {wait: {days: 1, milliseconds: 5}}}, {r: {set: {a: 1}}}]}
      then: continue
      timeout: {after: PT5S}
      metadata: {m: 1}
  - hear:
      listen:
        to:
          any:
            - with: {type: t, source: /s, subject: '${ startswith("x") }', data: {id: '${ . > 3 }', kind: k}, room: 5}
              correlate: {order: {from: .data.id, expect: '${ .id }'}, room: {from: .room}}
          until: {all: [{with: {type: end, id: '1'}}, {with: {data: [1]}}]}
        read: envelope
      foreach: {item: event, at: i, do: [{note: {set: {e: '${ $event }'}}}], output: {as: '{i: $i, e: .}'}, export: {as: '$context + {e: .}'}}
  - tell: {emit: {event: {with: {type: told, source: 'https://e.com/{id}', subject: '${ .s }', time: '2026-01-01T00:00:00Z', data: {n: '${ .n }'}, urgent: true}}}}
output: {as: {total: '${ .t }'}}
`

func TestModel(t *testing.T) {
	t.Parallel()
	doc := parse(t, richDocument)
	require.Equal(t, []any{"shop", "order", "1.2.3", "Order", "s"},
		[]any{doc.Namespace, doc.Name, doc.Version, doc.Title, doc.Summary})
	require.Equal(t, map[string]string{"team": "x"}, doc.Tags)
	require.Equal(t, map[string]any{"k": []any{1}}, doc.Metadata)
	require.JSONEq(t, `{"type": "object"}`, string(doc.InputSchema()))
	require.Equal(t, dsl.Use{Errors: []string{"gone"}, Retries: []string{"slow"}, Timeouts: []string{"day"}}, doc.Use)
	length, fixed := doc.Timeout.After.Fixed()
	require.True(t, fixed)
	require.Equal(t, 24*time.Hour, length)

	loop, ok := doc.Do[0].Body.(*dsl.For)
	require.True(t, ok)
	require.Equal(t, []string{"line", "index"}, []string{loop.Each, loop.At})
	try, ok := loop.Tasks[0].Body.(*dsl.Try)
	require.True(t, ok)
	require.Equal(t, "/do/0/loop/do/0/try it~1now/try/0/call", try.Tasks[0].Pointer)
	require.Equal(t, "/do/0/loop/do/0/try it~1now/catch/do/0/stop", try.Catch.Tasks[0].Pointer)
	require.Equal(t, dsl.Flow{Kind: dsl.FlowExit}, try.Catch.Then)
	require.Equal(t, dsl.BackoffLinear, try.Catch.Retry.Backoff.Kind)
	require.Equal(t, map[string]any{"increment": "PT1S"}, try.Catch.Retry.Backoff.Definition)
	require.Equal(t, 3, try.Catch.Retry.Limit.Attempt.Count)
	holds, err := try.Catch.Retry.When.Holds(nil, map[string]any{"problem": map[string]any{"status": 503}}, nil)
	require.NoError(t, err)
	require.True(t, holds)
	raise, ok := try.Catch.Tasks[0].Body.(*dsl.Raise)
	require.True(t, ok)
	detail, err := raise.Error.Detail.EvalString(map[string]any{"why": "sold"}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []any{410, "sold"}, []any{raise.Error.Status, detail})
	require.Equal(t, dsl.Flow{Kind: dsl.FlowGoto, Task: "loop"}, doc.Do[1].Body.(*dsl.Switch).Cases[0].Then)
	fork := doc.Do[2]
	require.Equal(t, []any{dsl.KindFork, 2, "both", "/do/2/both"},
		[]any{fork.Body.Kind(), fork.Index, fork.Name, fork.Pointer})
	require.Equal(t, map[string]any{"m": 1}, fork.Metadata)
	require.Equal(t, 31, fork.Pos.Line)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	doc := parse(t, richDocument)
	require.Equal(t, eventfilter.Envelope, doc.Schedule.Read)
	require.Equal(t, eventfilter.Spec{Mode: eventfilter.All, Filters: []eventfilter.Filter{
		{With: map[string]eventfilter.Value{"type": {Literal: []byte(`"paid"`)}},
			Correlate: map[string]eventfilter.Key{"order": {From: ".data.order"}}},
		{With: map[string]eventfilter.Value{"type": {Literal: []byte(`"packed"`)}},
			Correlate: map[string]eventfilter.Key{"order": {From: ".data.order", Expect: []byte(`"x"`)}}},
	}}, *doc.Schedule.On)

	listen, ok := doc.Do[3].Body.(*dsl.Listen)
	require.True(t, ok)
	require.Equal(t, []any{dsl.KindListen, eventfilter.Any, eventfilter.Envelope},
		[]any{listen.Kind(), listen.To.Mode, listen.Read})
	require.Nil(t, listen.To.Until)
	require.Equal(t, eventfilter.All, listen.To.UntilEvents.Mode)
	require.Len(t, listen.To.UntilEvents.Filters, 2)
	require.Equal(t, []string{"event", "i"}, []string{listen.Each.Item, listen.Each.At})
	require.Equal(t, "/do/3/hear/foreach/do/0/note", listen.Each.Tasks[0].Pointer)
	filter := listen.To.Filters[0]
	require.Equal(t, map[string]eventfilter.Value{
		"type": {Literal: []byte(`"t"`)}, "source": {Literal: []byte(`"/s"`)}, "subject": {Expr: `startswith("x")`},
		"room": {Literal: []byte(`5`)},
		"data": {Members: map[string]eventfilter.Value{"id": {Expr: ". > 3"}, "kind": {Literal: []byte(`"k"`)}}},
	}, filter.With)
	require.Equal(t, []string{"order", "room"}, []string{filter.Correlate[0].Name, filter.Correlate[1].Name})
	expect, err := filter.Correlate[0].Expect.Eval(map[string]any{"id": 7}, nil, nil)
	require.NoError(t, err)
	stored, err := filter.Filter(map[string]any{"order": expect}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]eventfilter.Key{"order": {From: ".data.id", Expect: []byte("7")}, "room": {From: ".room"}},
		stored.Correlate)
	event := map[string]any{"type": "t", "source": "/s", "subject": "xy", "room": 5,
		"data": map[string]any{"id": 7, "kind": "k"}}
	require.True(t, filter.Matcher(map[string]any{"order": 7}, nil).Match(event).OK)
	require.Equal(t, "correlate.order", filter.Matcher(map[string]any{"order": 8}, nil).Match(event).Missed)

	emit, ok := doc.Do[4].Body.(*dsl.Emit)
	require.True(t, ok)
	require.Equal(t, dsl.KindEmit, emit.Kind())
	got, err := emit.Event(map[string]any{"id": 5, "n": 1}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"type": "told", "source": "https://e.com/5", "time": "2026-01-01T00:00:00Z", "data": map[string]any{"n": 1},
		"urgent": true,
	}, got, "what is null is absent")
}

func TestSourcesMayHaveAnyScheme(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"urn:example:sensor", "mailto:a@b.c", "/relative", "https://e.com/x?y#z"} {
		body[*dsl.Emit](t, "emit: {event: {with: {type: t, source: '"+source+"'}}}")
		body[*dsl.Listen](t, "listen: {to: {one: {with: {source: '"+source+"'}}}}")
	}
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"cron: '*/15 8-17 * * Mon-Fri'": "*/15 8-17 * * Mon-Fri", "cron: ' 0  0 1,15 jan-dec/3 *'": "0 0 1,15 jan-dec/3 *",
		"cron: '5/10 0 * * 7'": "5/10 0 * * 7",
		"cron: 0 0 29 2 *":     "0 0 29 2 *", "cron: '@daily'": "@daily",
	} {
		require.Equal(t, want, parse(t, header+"schedule: {"+source+"}\ndo: []\n").Schedule.Cron)
	}
	every, _ := parse(t, header+"schedule: {every: PT90S}\ndo: []\n").Schedule.Every.Fixed()
	require.Equal(t, 90*time.Second, every)
	after, _ := parse(t, header+"schedule: {after: {days: 1}}\ndo: []\n").Schedule.After.Fixed()
	require.Equal(t, 24*time.Hour, after)
	read := parse(t, header+"schedule: {on: {any: []}, read: data}\ndo: []\n").Schedule
	require.Equal(t, []any{eventfilter.Data, eventfilter.Any, 0}, []any{read.Read, read.On.Mode, len(read.On.Filters)})
	require.Nil(t, parse(t, header+"do: []\n").Schedule)
}

func TestSpellingsOfOneDocument(t *testing.T) {
	t.Parallel()
	yaml := parse(t, header+"do: [{on: {set: {yes: no, n: 12345678901234567890, f: 1.50, \"0x1F\": 0x1F, t: 12:30:00, "+
		"d: 2001-01-01}}}]\n")
	json := parse(t, `{"do":[{"on":{"set":{"yes":"no","n":12345678901234567890,"f":1.5,"0x1F":31,"t":"12:30:00","d":"2001-01-01"}}}],
		"document":{"version":"1.0.0","name":"sample","namespace":"test","dsl":"1.0.3"}}`)
	anchors := parse(t, header+"do:\n  - on:\n      set:\n        <<: {yes: no, t: 12:30:00}\n        n: &n "+
		"12345678901234567890\n        f: 15e-1\n        0x1F: 31\n        d: '2001-01-01'\n")
	require.Equal(t, yaml.Hash(), json.Hash())
	require.Equal(t, yaml.Hash(), anchors.Hash())
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, yaml.Hash())
	again := parse(t, string(yaml.Canonical()))
	require.Equal(t, yaml.Canonical(), again.Canonical())
	require.Equal(t, yaml.Definition, again.Definition)
	other := parse(t, header+"do: [{on: {set: {yes: nein}}}]\n")
	require.NotEqual(t, yaml.Hash(), other.Hash())
}

func TestLimits(t *testing.T) {
	t.Parallel()
	limits := dsl.Limits{MaxBytes: 4000, MaxDepth: 20, MaxAliases: 3, MaxNodes: 100, MaxViolations: 2}
	bomb := "a: &a [1,1,1,1,1,1,1,1]\nb: [*a,*a]\n"
	for source, want := range map[string]string{
		strings.Repeat("x", 5000):                                         "over the limit of 4000",
		strings.Repeat("[", 50) + strings.Repeat("]", 50):                 "nested deeper than the limit of 20",
		`{"a":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "}": "nested deeper than the limit of 20",
		"a: &a 1\nb: [*a, *a, *a, *a]\n":                                  "more than 3 aliases",
		bomb + "d: [1" + strings.Repeat(",1", 90) + "]\n":                 "more than 100 values",
		"a: 1\nb: 1\nc: 1\nd: 1\n":                                        "4 more violations are not shown",
		strings.Repeat("[", 3900):                                         "syntax",
	} {
		doc, violations := dsl.Parse([]byte(source), dsl.WithLimits(limits))
		require.Nil(t, doc)
		require.ErrorContains(t, violations, want)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"a: \xff":       "1:4: syntax: byte 0xff is not valid UTF-8",
		"a: b\x01c":     "1:5: syntax: the control character U+0001 is not allowed",
		"é: 1\nb: \x00": "2:4: syntax: the control character U+0000",
	} {
		_, violations := dsl.Parse([]byte(source))
		require.ErrorContains(t, violations, want)
	}
	bom := parse(t, "\ufeff"+header+"do: []\n")
	require.Equal(t, parse(t, header+"do: []\n").Hash(), bom.Hash())
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	set := body[*dsl.Set](t, "set:\n  expr: ' ${ .x } '\n  text: a {{ .x }} b\n  list: [1, '${ .x + 1 }', {deep: '${ "+
		"$input }'}]\n  none: null")
	got, err := set.Value.Eval(map[string]any{"x": 1}, map[string]any{"input": "i"}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"expr": 1, "text": "a {{ .x }} b", "list": []any{1, 2, map[string]any{"deep": "i"}}, "none": nil}, got)
	_, static := set.Value.Static()
	require.False(t, static)
	whole := body[*dsl.Set](t, "set: ${ [.x] }")
	got, err = whole.Value.Eval(map[string]any{"x": 1}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []any{1}, got)
	fixed := body[*dsl.Set](t, "set: {a: [1, {b: x}]}")
	v, static := fixed.Value.Static()
	require.True(t, static)
	require.Equal(t, map[string]any{"a": []any{1, map[string]any{"b": "x"}}}, v)
	_, err = whole.Value.EvalString(map[string]any{}, nil, nil)
	require.ErrorContains(t, err, "want a string, got an array")
	_, err = set.Value.Eval(map[string]any{"x": "s"}, nil, nil)
	require.ErrorContains(t, err, `evaluate " .x + 1 "`)
	_, err = whole.Value.Eval(nil, nil, jq.NewFuel(1))
	require.ErrorIs(t, err, jq.ErrFuel)
}

// TestLooseMode: every text is evaluated, and stays as it is where that fails.
func TestLooseMode(t *testing.T) {
	t.Parallel()
	doc := parse(t, header+"evaluate: {mode: loose}\ndo: [{t: {set: {a: .x, b: $input, c: '.. is not', d: $nope, e: x, "+
		"f: '${ .x }', g: '1 + .x', h: '\"a\" + \"b\"', i: .x.y, j: https://example.com, k: 'error', l: null, m: 'null'}}}]\n")
	require.True(t, doc.Evaluate.Loose)
	set := doc.Do[0].Body.(*dsl.Set).Value
	eval := func(first bool) any {
		fuel := jq.NewFuel(jq.DefaultFuel)
		fuel.Version1 = first
		got, err := set.Eval(map[string]any{"x": 1}, map[string]any{"input": 2}, fuel)
		if err != nil {
			return err.Error()
		}
		return got
	}
	require.Equal(t, map[string]any{"a": 1, "b": 2, "c": ".. is not", "d": "$nope", "e": "x", "f": 1, "g": 2, "h": "ab",
		"i": ".x.y", "j": "https://example.com", "k": "error", "l": nil, "m": nil}, eval(false))
	require.Contains(t, eval(true), "expected an object but got: number (1)")
	_, err := set.Eval(map[string]any{"x": 1}, nil, jq.NewFuel(1))
	require.ErrorIs(t, err, jq.ErrFuel)

	doc = parse(t, header+"evaluate: {mode: loose}\ndo: [{t: {set: {a: '1 + .x', b: .x}}}]\n")
	set = doc.Do[0].Body.(*dsl.Set).Value
	require.Equal(t, map[string]any{"a": "1 + .x", "b": 1}, eval(true))
}

func TestInlineArray(t *testing.T) {
	t.Parallel()
	loop := body[*dsl.For](t, "for: {in: [{a: 1}, {a: '${ .x }'}]}\ndo: []")
	got, err := loop.In.Eval(map[string]any{"x": 2}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"a": 1}, map[string]any{"a": 2}}, got)
	require.Equal(t, []string{"item", "index"}, []string{loop.Each, loop.At})
}

func TestDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for source, want := range map[string]time.Duration{
		"PT30S": 30 * time.Second, "P1DT12H": 36 * time.Hour, "PT0.1S": 100 * time.Millisecond,
		"P1Y2M3W4DT5H6M7.5S": (365+60+21+4)*day + 5*time.Hour + 6*time.Minute + 7500*time.Millisecond,
		"PT1.5H":             90 * time.Minute,
		"{days: 1, hours: 2, minutes: 3, seconds: 4, milliseconds: 5}": day + 2*time.Hour + 3*time.Minute +
			4005*time.Millisecond, "{seconds: 0}": 0,
		"${ .d }": time.Minute, "${ {seconds: .n} }": 7 * time.Second,
	} {
		if strings.HasPrefix(source, "$") {
			source = "'" + source + "'"
		}
		wait := body[*dsl.Wait](t, "wait: "+source)
		got, err := wait.Duration.Eval(map[string]any{"d": "PT1M", "n": 7}, nil, nil)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for source, want := range map[string]string{
		"${ 5 }": "got a number", "${ null }": "got null", `${ "5s" }`: "not an ISO 8601 duration",
		"${ {second: 1} }": `no "second"`, "${ {} }": "at least one",
		`${ "P1Y2" }`: "not an ISO", `${ "PT1.S" }`: "not an ISO", `${ "PT.5S" }`: "not an ISO", `${ "P1S" }`: "not an ISO",
		`${ "PT1M1H" }`: "not an ISO", `${ "P99999999999Y" }`: "292 years",
		"${ error(\"x\") }": "evaluate",
	} {
		wait := body[*dsl.Wait](t, "wait: '"+source+"'")
		_, err := wait.Duration.Eval(nil, nil, nil)
		require.ErrorContains(t, err, want, source)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	doc := parse(t, header+`
input:
  schema:
    document:
      type: object
      required: [id, name]
      properties: {id: {type: integer, minimum: 18446744073709551617}, tags: {type: array, items: {type: string}}, a/b: {$ref: '#/$defs/t'}}
      $defs: {t: {type: boolean}}
do: []
`)
	schema := doc.Input.Schema
	huge, err := jq.DecodeJSON([]byte(`{"id": 18446744073709551618, "name": 1}`))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(huge))
	err = schema.Validate(map[string]any{"id": 5, "tags": []any{"x", 1, 2}, "a/b": 1})
	var se *dsl.SchemaError
	require.ErrorAs(t, err, &se)
	pointers := make([]string, len(se.Violations))
	for i, v := range se.Violations {
		pointers[i] = v.Pointer
	}
	require.Equal(t, []string{"", "/a~1b", "/id", "/tags/1", "/tags/2"}, pointers)
	require.ErrorContains(t, err, "name")
}

func TestURI(t *testing.T) {
	t.Parallel()
	input := map[string]any{"id": 5, "q": "a b&c", "list": []any{"x", "y"}, "path": "a/b", "o": map[string]any{}}
	for template, want := range map[string]string{
		"https://e.com/{id}": "https://e.com/5", "https://e.com/{q}": "https://e.com/a%20b%26c",
		"https://e.com/{missing}":              "https://e.com/",
		"https://e.com{/list*}{?q,missing,id}": "https://e.com/x/y?q=a%20b%26c&id=5",
		"https://e.com/{+path}{#id}":           "https://e.com/a/b#5", "{list}{;id}{.id}": "x,y;id=5.5",
		"https://e.com/?a=1{&list}": "https://e.com/?a=1&list=x,y",
	} {
		got, err := dsl.ExpandURI(template, input)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := dsl.ExpandURI("{o}", input)
	require.ErrorContains(t, err, "an object")
	_, err = dsl.ExpandURI("{o", input)
	require.ErrorContains(t, err, "not closed")
	call := func(endpoint string) *dsl.HTTPCall {
		return body[*dsl.HTTPCall](t, "call: http\nwith: {method: get, endpoint: "+endpoint+"}")
	}
	for endpoint, want := range map[string]string{
		`'https://e.com/{id}'`: "https://e.com/5", `{uri: 'https://e.com/{id}'}`: "https://e.com/5",
		`'${ "https://e.com/{id}" }'`: "https://e.com/{id}", `'${ {uri: "u"} }'`: "u"} {
		got, err := call(endpoint).URI(input, nil, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = call(`'${ .id }'`).URI(input, nil, nil)
	require.ErrorContains(t, err, "want a URI, got a number")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, same := range []string{
		"https://serverlessworkflow.io/spec/1.0.0/errors/timeout", "https://open-workflow-specification.org/dsl/errors/types/timeout",
		"http://serverlessworkflow.io/dsl/errors/types/timeout", "https://www.open-workflow-specification.org/spec/1.0.0/errors/timeout/", dsl.ErrorTypeTimeout,
	} {
		require.True(t, dsl.SameErrorType(same, dsl.ErrorTypeTimeout), same)
	}
	for _, other := range []string{
		"https://example.com/spec/1.0.0/errors/timeout", dsl.ErrorTypeRuntime, "timeout",
		"https://serverlessworkflow.io/timeout", ""} {
		require.False(t, dsl.SameErrorType(other, dsl.ErrorTypeTimeout), other)
	}
	e := &dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timeout", Detail: "after 5 s", Instance: "/do/0/a"}
	require.EqualError(t, e, "Timeout (408): after 5 s at /do/0/a")
	require.Equal(t, map[string]any{
		"type": e.Type, "status": 408, "title": "Timeout", "detail": "after 5 s", "instance": "/do/0/a"}, e.Value())
	status, title := 408, "Other"
	var all *dsl.ErrorFilter
	require.True(t, all.Matches(e))
	require.True(t, (&dsl.ErrorFilter{Status: &status, Instance: &e.Instance}).Matches(e))
	require.False(t, (&dsl.ErrorFilter{Status: &status, Title: &title}).Matches(e))
}

func TestRunWorkflow(t *testing.T) {
	t.Parallel()
	run := body[*dsl.RunWorkflow](t,
		"run: {workflow: {namespace: shop, name: order, version: latest, input: {id: '${ .id }', deep: {x: 1}}}}")
	input, err := run.Input.Eval(map[string]any{"id": 7}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"id": 7, "deep": map[string]any{"x": 1}}, input)
	run.Input = nil
	require.Equal(t, &dsl.RunWorkflow{Namespace: "shop", Name: "order", Await: true, Return: dsl.ReturnStdout}, run)
	require.Equal(t, dsl.KindRun, run.Kind())
	run = body[*dsl.RunWorkflow](t,
		"run: {workflow: {namespace: shop, name: order, version: 1.2.3}, await: false, return: all}")
	require.Equal(t, &dsl.RunWorkflow{Namespace: "shop", Name: "order", Version: "1.2.3", Return: dsl.ReturnAll}, run)
}
