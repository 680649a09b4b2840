package interp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

func TestOutputs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, rest, input, want string
	}{
		{"set replaces the data", `do: [{a: {set: {x: 1}}}, {b: {set: {y: '${ .x + 1 }'}}}]`, `{"z": 9}`, `{"y": 2}`},
		{"workflow input.from and output.as", `
input: {from: .order}
output: {as: '{ total: .sum, of: $workflow.input.order.n, ctx: $context.n }'}
do: [{a: {set: {sum: '${ $input.n + .n }'}}}]`, `{"order": {"n": 2}}`, `{"total": 4, "of": 2, "ctx": 2}`},
		{"task input, output and export", `
do:
  - a:
      input: {from: .in}
      set: {v: '${ . + $input }'}
      output: {as: '{ w: .v, raw: $task.output.v, in: $task.input.in }'}
      export: {as: '$context + { seen: .w, out: $output.w }'}
  - b: {set: {got: '${ $context }', dot: '${ . }'}}`, `{"in": 2}`,
			`{"got": {"in": 2, "seen": 4, "out": 4}, "dot": {"w": 4, "raw": 4, "in": 2}}`},
		{"if false skips everything of the task", `
do:
  - a: {if: .no, set: {x: 1}, output: {as: .nothing}, export: {as: '{}'}, then: end}
  - b: {set: {y: '${ .no }', ctx: '${ $context }'}}`, `{"no": false}`, `{"y": false, "ctx": {"no": false}}`},
		{"then goes forward and back", `
do:
  - a: {set: {n: '${ (.n // 0) + 1 }'}, then: check}
  - never: {set: {n: 100}}
  - check: {switch: [{again: {when: .n < 3, then: a}}, {done: {then: last}}]}
  - skipped: {set: {n: 200}}
  - last: {set: {n: '${ .n * 10 }'}}`, ``, `{"n": 30}`},
		{"exit leaves the list, end the run", `
do:
  - outer:
      do:
        - a: {set: {at: a}, then: exit}
        - b: {set: {at: b}}
  - c: {set: {was: '${ .at }'}}
  - d: {do: [{e: {set: {e: '${ .was }'}, then: end}}]}
  - f: {set: {f: 1}}`, ``, `{"e": "a"}`},
		{"exit in a for ends the iteration", `
do:
  - l:
      for: {each: x, in: '[1,2,3]'}
      do:
        - s: {switch: [{odd: {when: $x == 2, then: exit}}]}
        - a: {set: {sum: '${ (.sum // 0) + $x }'}}`, `{}`, `{"sum": 4}`},
		{"while sees the data and the item", `
do: [{l: {for: {each: x, at: i, in: '[5,6,7,8]'}, while: '$i < 3 and (.sum // 0) < 11', do: [{a: {set: {sum: '${ (.sum // 0) + $x }'}}}]}}]`,
			`{}`, `{"sum": 11}`},
		{"an empty for passes its input", `do: [{l: {for: {in: '[]'}, do: [{a: {set: {x: 1}}}]}}]`, `{"k": 1}`, `{"k": 1}`},
		{"a for over a literal array",
			`do: [{l: {for: {each: c, in: [{n: 1}, {n: 2}]}, do: [{a: {set: {s: '${ [.s[]?, $c.n] }'}}}]}}]`, `{}`,
			`{"s": [1, 2]}`},
		{"nested loops see each other's variables", `
do:
  - o:
      for: {each: x, in: '[1,2]'}
      do:
        - i: {for: {each: y, in: '[10,20]'}, do: [{a: {set: {s: '${ [.s[]?, $x + $y] }'}}}]}`, `{}`, `{"s": [11, 21, 12, 22]}`},
		{"fork gives an array in the order of declaration", `
do:
  - f:
      fork:
        branches:
          - slow: {wait: {seconds: 5}, output: {as: '"slow"'}}
          - fast: {set: {v: '${ .in }'}}
          - skipped: {if: 'false', set: {v: 1}}`, `{"in": 1}`, `["slow", {"v": 1}, {"in": 1}]`},
		{"a competing fork has the first output", `
do:
  - f:
      fork:
        compete: true
        branches:
          - slow: {wait: {seconds: 5}, output: {as: '"slow"'}}
          - fast: {wait: {seconds: 2}, output: {as: '"fast"'}}`, `{}`, `"fast"`},
		{"a competing fork continues after failures", `
do:
  - f:
      fork:
        compete: true
        branches:
          - broken: {raise: {error: {type: 'https://e/x', status: 500, title: X}}}
          - fine: {wait: {seconds: 2}, output: {as: '"fine"'}}`, `{}`, `"fine"`},
		{"end in a branch ends the run", `
do:
  - f:
      fork:
        branches:
          - other: {wait: {hours: 1}}
          - ends: {do: [{w: {wait: {seconds: 1}}}, {x: {set: {ended: true}, then: end}}]}
  - g: {set: {no: 1}}`, `{}`, `{"ended": true}`},
		{"wait passes its input", `do: [{w: {wait: PT1H}}]`, `{"a": 1}`, `{"a": 1}`},
		{"a caught error", `
do:
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x', status: 418, title: Tea, detail: '${ "for \(.who)" }'}}}}]
      catch: {as: problem, errors: {with: {status: 418}}, do: [{h: {set: {e: '${ $problem }', in: '${ . }'}}}]}`, `{"who": "you"}`,
			`{"e": {"type": "https://e/x", "status": 418, "title": "Tea", "detail": "for you", "instance": "/do/0/t/try/0/r"}, "in": {"who": "you"}}`},
		{"an empty catch swallows",
			`do: [{t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 418}}}}], catch: {}}}]`, `{"a": 1}`, `{"a": 1}`},
		{"catch.then wins over then", `
do:
  - t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 418}}}}], catch: {then: c}, then: end}
  - b: {set: {at: b}, then: end}
  - c: {set: {at: c}}`, `{}`, `{"at": "c"}`},
		{"an explicit catch.then continue wins over then", `
do:
  - t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 418}}}}], catch: {then: continue}, then: end}
  - b: {set: {at: b}}`, `{}`, `{"at": "b"}`},
		{"a try without an error follows its own then", `
do:
  - t: {try: [{r: {set: {at: t}}}], catch: {then: c}, then: end}
  - c: {set: {at: c}}`, `{}`, `{"at": "t"}`},
		{"when and exceptWhen", `
do:
  - outer:
      try:
        - a:
            try: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}]
            catch: {when: $error.status == 404}
      catch:
        exceptWhen: $error.status == 400
        do: [{h: {set: {caught: '${ $error.instance }'}}}]`, `{}`, `{"caught": "/do/0/outer/try/0/a/try/0/r"}`},
		{"conditions see the error as their input", `
do:
  - outer:
      try:
        - a:
            try: [{r: {raise: {error: {type: 'https://e/x', status: 503}}}}]
            catch: {when: .status != 503}
      catch:
        exceptWhen: .status == 400 or $error.status == 400 or $input.n != 1
        do: [{h: {set: {caught: '${ $error.status }', in: '${ . }'}}}]`, `{"n": 1}`, `{"caught": 503, "in": {"n": 1}}`},
		{"conditions of a retry see the error as their input", `
do:
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x', status: 503}}}}]
      catch:
        retry: {when: .status == 503, exceptWhen: .detail != null, delay: PT1S, limit: {attempt: {count: 2}}}
        do: [{h: {set: {at: '${ $task.startedAt.epoch.seconds - $workflow.startedAt.epoch.seconds }'}}}]`, `{}`, `{"at": 2}`},
		{"now is the recorded time of the run", `
do:
  - w: {wait: PT90S}
  - s: {set: {run: '${ now - ($workflow.startedAt.iso8601 | fromdate) }', task: '${ now - $task.startedAt.epoch.seconds }'}}`,
			`{}`, `{"run": 90, "task": 0}`},
		{"filters of errors have the older name of detail", `
do:
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x', status: 503, detail: gone}}}}]
      catch: {errors: {with: {details: gone}}, do: [{h: {set: {caught: true}}}]}`, `{}`, `{"caught": true}`},
		{"standard error types match in all their spellings", `
do:
  - t:
      try: [{a: {set: '${ error("x") }'}}]
      catch:
        errors: {with: {type: 'https://serverlessworkflow.io/dsl/errors/types/expression', status: 400}}
        do: [{h: {set: {title: '${ $error.title }'}}}]`, `{}`, `{"title": "Expression failed"}`},
		{"task timeouts are caught by the try around", `
do:
  - t:
      try: [{w: {wait: {hours: 1}, timeout: {after: {seconds: 1}}}}]
      catch: {errors: {with: {status: 408}}, do: [{h: {set: {e: '${ $error.instance }'}}}]}`, `{}`, `{"e": "/do/0/t/try/0/w"}`},
		{"runtime variables", `
do: [{a: {set: {id: '${ $workflow.id }', name: '${ $workflow.definition.document.name }', at: '${ $workflow.startedAt.epoch.seconds }',
  task: '${ $task.name }', ref: '${ $task.reference }', begun: '${ $task.startedAt.iso8601 }', def: '${ $task.definition.set.task }', rt: '${ $runtime.name }'}}}]`, ``,
			`{"id": "run-1", "name": "test", "at": 1772366400, "task": "a", "ref": "/do/0/a", "begun": "2026-03-01T12:00:00Z", "def": "${ $task.name }", "rt": "signalbox"}`},
		{"schemas that hold", `
input: {schema: {document: {type: object, required: [a]}}}
output: {schema: {document: {type: object, required: [b]}}}
do: [{a: {input: {schema: {document: {type: object}}}, set: {b: '${ .a }'}, output: {schema: {document: {type: object}}}, export: {as: ., schema: {document: {required: [b]}}}}}]`,
			`{"a": 1}`, `{"b": 1}`},
		{"a wait of no time costs nothing", `do: [{w: {wait: PT0S}}, {a: {set: {x: 1}}}]`, ``, `{"x": 1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			newDriver(t, document(tt.rest), tt.input).completes(tt.want)
		})
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, rest, input string
		want              dsl.Error
	}{
		{"raise", `do: [{a: {raise: {error: {type: 'https://e/x', status: 418, title: Tea, detail: no}}}}]`, ``,
			dsl.Error{Type: "https://e/x", Status: 418, Title: "Tea", Detail: "no", Instance: "/do/0/a"}},
		{"raise without a title", `do: [{a: {raise: {error: {type: 'https://e/errors/out-of-stock', status: 409}}}}]`, ``,
			dsl.Error{Type: "https://e/errors/out-of-stock", Status: 409, Instance: "/do/0/a"}},
		{"raise of a standard type without a title",
			`do: [{a: {raise: {error: {type: 'https://serverlessworkflow.io/spec/1.0.0/errors/authorization', status: 403}}}}]`, ``,
			dsl.Error{Type: "https://serverlessworkflow.io/spec/1.0.0/errors/authorization", Status: 403, Instance: "/do/0/a"}},
		{"workflow input", `
input: {schema: {document: {type: object, required: [a]}}}
do: [{a: {set: {b: 1}}}]`, `{}`, dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Instance: "/input", Detail: "the workflow's input does not match"}},
		{"workflow output", `
output: {schema: {document: {type: object, required: [z]}}}
do: [{a: {set: {b: 1}}}]`, `{}`, dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Instance: "/output", Detail: "the workflow's output does not match"}},
		{"task input", `do: [{a: {input: {schema: {document: {type: array}}}, set: {b: 1}}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Instance: "/do/0/a",
				Detail: "the task's input does not match"}},
		{"task output", `do: [{a: {set: {b: 1}, output: {schema: {document: {type: array}}}}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Instance: "/do/0/a",
				Detail: "the task's output does not match"}},
		{"exported context", `do: [{a: {set: {b: 1}, export: {as: ., schema: {document: {type: array}}}}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Instance: "/do/0/a",
				Detail: "the exported context does not match"}},
		{"expression", `do: [{o: {do: [{a: {set: '${ .a.b.c | keys }'}}]}}]`, `{"a": 1}`,
			dsl.Error{Type: dsl.ErrorTypeExpression, Status: 400, Instance: "/do/0/o/do/0/a", Detail: "evaluate"}},
		{"fuel", `do: [{a: {set: '${ last(range(1e12)) }'}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeExpression, Status: 400, Instance: "/do/0/a", Detail: "compute budget"}},
		{"for over no array", `do: [{a: {for: {in: .missing}, do: [{b: {set: {x: 1}}}]}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeExpression, Status: 400, Instance: "/do/0/a", Detail: "got null"}},
		{"a branch fails its fork", `
do: [{f: {fork: {branches: [{w: {wait: {hours: 1}}}, {r: {raise: {error: {type: 'https://e/x', status: 500, title: X}}}}]}}}]`, `{}`,
			dsl.Error{Type: "https://e/x", Status: 500, Title: "X", Instance: "/do/0/f/fork/branches/1/r"}},
		{"a competing fork in which all fail has the first error", `
do:
  - f:
      fork:
        compete: true
        branches:
          - a: {do: [{w: {wait: {seconds: 2}}}, {r: {raise: {error: {type: 'https://e/a', status: 500, title: A}}}}]}
          - b: {do: [{w: {wait: {seconds: 1}}}, {r: {raise: {error: {type: 'https://e/b', status: 500, title: B}}}}]}`, `{}`,
			dsl.Error{Type: "https://e/b", Status: 500, Title: "B", Instance: "/do/0/f/fork/branches/1/b/do/1/r"}},
		{"an error in the handler goes on", `
do: [{t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}], catch: {do: [{h: {raise: {error: {type: 'https://e/y', status: 501, title: Y}}}}]}}}]`, `{}`,
			dsl.Error{Type: "https://e/y", Status: 501, Title: "Y", Instance: "/do/0/t/catch/do/0/h"}},
		{"an error in a condition of the catch", `
do: [{t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}], catch: {when: error("no")}}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeExpression, Status: 400, Instance: "/do/0/t", Detail: "no"}},
		{"an uncaught timeout", `do: [{w: {wait: {hours: 1}, timeout: {after: {seconds: 1}}}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out", Instance: "/do/0/w"}},
		{"a try's own timeout is not for its catch", `
do: [{t: {timeout: {after: {seconds: 1}}, try: [{w: {wait: {hours: 1}}}], catch: {do: [{h: {set: {x: 1}}}]}}}]`, `{}`,
			dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out", Instance: "/do/0/t"}},
		{"exhausted retries without a handler", `
do: [{t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 503, title: Busy}}}}], catch: {retry: {delay: {seconds: 1}, limit: {attempt: {count: 2}}}}}}]`, `{}`,
			dsl.Error{Type: "https://e/x", Status: 503, Title: "Busy", Instance: "/do/0/t/try/0/r"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := newDriver(t, document(tt.rest), tt.input).fails()
			require.Equal(t, tt.want.Type, got.Type)
			require.Equal(t, tt.want.Status, got.Status)
			require.Equal(t, tt.want.Instance, got.Instance)
			require.Contains(t, got.Detail, tt.want.Detail)
			if tt.want.Title != "" {
				require.Equal(t, tt.want.Title, got.Title)
			}
		})
	}
}

// Neither a filter nor an expression reads a title or a detail that the document did not set.
func TestErrorsHaveOnlyTheRaisedMembers(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x/oops', status: 500}}}}]
      catch: {errors: {with: {title: oops}}, do: [{no: {set: {caught: by title}}}]}
`), `{}`)
	require.Empty(t, w.fails().Title)
	w = newDriver(t, document(`
do:
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x/oops', status: 500}}}}]
      catch: {when: '$error | has("title") | not', do: [{no: {set: '${ $error }'}}]}
`), `{}`)
	w.completes(`{"type": "https://e/x/oops", "status": 500, "instance": "/do/0/t/try/0/r"}`)
}

// $authorization is available only in tasks that authenticate, and never contains the credentials.
func TestAuthorizationNamesTheSchemeOfTheCall(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - c:
      if: '$authorization.scheme != "Digest"'
      call: http
      with:
        method: get
        endpoint: {uri: 'https://e/', authentication: {oauth2: {authority: 'https://a', grant: client_credentials, client: {id: x, secret: y}}}}
        headers: {X-Scheme: '${ $authorization.scheme // "none" }'}
      output: {as: '[$authorization]'}
  - s: {set: {before: '${ . }', now: '${ $authorization }'}}
`), `{}`)
	var scheme string
	w.origin = func(c interp.Call) answer {
		scheme = c.HTTP.Headers["X-Scheme"]
		return ok(1)
	}
	w.completes(`{"before": [{"scheme": "Bearer"}], "now": null}`)
	require.Equal(t, "Bearer", scheme)
}

func TestWorkflowTimeout(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
timeout: {after: {minutes: 1}}
do: [{t: {try: [{w: {wait: {hours: 1}}}], catch: {do: [{h: {set: {no: 1}}}]}}}]`), ``)
	o := w.run()
	require.Equal(t, interp.StatusTimedOut, o.Status)
	require.Equal(t, dsl.ErrorTypeTimeout, o.Error.Type)
	require.Equal(t, 408, o.Error.Status)
	require.Equal(t, epoch.Add(time.Minute), w.now)
	require.Equal(t, []string{"/do/0/t canceled", "/do/0/t/try/0/w canceled"}, w.trace())
	last := w.runs[len(w.runs)-1]
	require.Equal(t, interp.StatusTimedOut, last.Status)
	require.Equal(t, int64(2), last.StepsDone)
}

func TestEndlessComputationTimesOut(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
timeout: {after: {seconds: 5}}
do: [{a: {set: {n: 1}, then: a}}]`), ``)
	w.between = func(w *driver) { w.now = w.now.Add(time.Second) } // computing takes time
	require.Equal(t, interp.StatusTimedOut, w.run().Status)
	require.Positive(t, w.yields)
	for _, e := range w.effects {
		_, timer := e.(interp.StartTimer)
		require.False(t, timer, "a run that never blocks needs no timer")
	}
}

func TestPureTasksHaveNoEffects(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("timeout: {after: {hours: 1}}\ndo:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  - s%d: {set: {n: %d}, timeout: {after: {seconds: 1}}}\n", i, i)
	}
	w := newDriver(t, document(b.String()), ``)
	w.completes(`{"n": 99}`)
	require.Empty(t, w.effects)
	require.Len(t, w.steps, 100)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - f:
      fork:
        branches:
          - c: {call: http, with: {method: get, endpoint: 'http://x'}}
          - w: {wait: {hours: 1}}`), ``)
	w.origin = func(interp.Call) answer { return answer{never: true} }
	w.cancelAt = epoch.Add(time.Minute)
	o := w.run()
	require.Equal(t, interp.Outcome{Status: interp.StatusCanceled, Reason: "asked to"}, o)
	require.Equal(t, []string{
		"/do/0/f canceled", "/do/0/f/fork/branches/0/c canceled", "/do/0/f/fork/branches/1/w canceled"}, w.trace())
	w.m.Cancel("again", w.now)
	w.m.Complete(1, ok(1).Result, w.now)
	again, _ := w.m.Done()
	require.Equal(t, o, again)
}

func TestTextAboutCancellationIsAFailure(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(
		`do: [{a: {raise: {error: {type: 'https://e/x', status: 500, title: 'cancelled', detail: 'context canceled'}}}}]`), ``)
	require.Equal(t, "cancelled", w.fails().Title)
}
