package interp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// extending returns a document with extensions and tasks, both in flow style.
func extending(extensions, tasks string) string {
	return document("use: {extensions: " + extensions + "}\ndo: " + tasks)
}

const mock = `[{mock: {extend: call, before: [{m: {set: {mocked: '${ $task.name }'}, then: exit}}]}}]`

func TestExtensions(t *testing.T) {
	t.Parallel()
	const trace = `export: {as: '. as $o | $context + {trace: (($context.trace // []) + [$o.at])}'}`
	logging := func(name, extend, when string) string {
		return fmt.Sprintf(`{%[1]s: {extend: %[2]s, %[3]s
			before: [{b: {set: {at: '${ "%[1]s before \($task.name) \(.)" }'}, %[4]s}}],
			after: [{a: {set: {at: '${ "%[1]s after \($task.name) \($task.output) \(.)" }'}, %[4]s}}]}}`,
			name, extend, when, trace)
	}
	for name, tt := range map[string]struct{ extensions, tasks, want string }{
		"before and after, and the data of the task is its own": {
			"[" + logging("log", "set", "") + "]",
			`[{s: {input: {from: .n}, set: '${ . + 1 }', output: {as: '. * 10'}}}, {w: {wait: {seconds: 0}, output: {as: '[., $context.trace]'}}}]`,
			`[20, ["log before s {\"n\":1}", "log after s 2 20"]]`,
		},
		"the first extension is outermost": {
			"[" + logging("x", "set", "") + "," + logging("y", "all", "") + "]",
			`[{s: {set: '${ 5 }'}}, {w: {if: 'false', set: {x: 1}}}, {o: {do: [{i: {set: '${ $context.trace | map(.[:10]) }'}}]}}]`,
			`["x before s", "y before s", "y after s ", "x after s ", "y before o", "x before i", "y before i"]`,
		},
		"an exit replaces the output of the task": {
			mock, `[{c: {call: http, with: {method: get, endpoint: 'http://x'}, output: {as: '[.]'}, then: last}},
				{never: {set: {x: 1}}}, {last: {set: '${ . }'}}]`,
			`[{"mocked": "c"}]`,
		},
		"after an exit, the extensions around that one end": {
			"[" + logging("out", "call", "") + `, {mock: {extend: call, before: [{m: {set: {mocked: true}, then: exit}}], after: [{no: {set: {at: never}, ` +
				trace + `}}]}}, ` + logging("in", "call", "") + "]",
			`[{c: {call: http, with: {method: get, endpoint: 'http://x'}}}, {s: {set: '${ $context.trace }'}}]`,
			`["out before c {\"n\":1}", "out after c {\"mocked\":true} {\"mocked\":true}"]`,
		},
		"an exit inside a task of an extension leaves that task": {
			`[{e: {extend: call, before: [{d: {do: [{i: {set: {a: 1}, then: exit}}]}}]}}]`,
			`[{c: {call: http, with: {method: get, endpoint: 'http://x'}}}]`, `"called"`,
		},
		"an exit after a task ends that list": {
			`[{e: {extend: set, after: [{i: {wait: {seconds: 1}, then: exit}}, {r: {raise: {error: {type: 'https://e/x', status: 500}}}}]}}]`,
			`[{s: {set: '${ 1 }'}}]`, `1`,
		},
		"when sees the input and the definition": {
			"[" + logging("e", "all", `when: '$task.set != null and .n == 1 and $task.definition.set != null',`) + "]",
			`[{s: {set: {n: 2}}}, {again: {set: '${ $context.trace }'}}]`,
			`["e before s {\"n\":1}", "e after s {\"n\":2} {\"n\":2}"]`,
		},
		"a when that fails does not hold": {
			"[" + logging("e", "set", `when: '$task.set | startswith("x")',`) + "]",
			`[{s: {set: {n: 2}}}, {again: {set: '${ $context.trace }'}}]`, `null`,
		},
		"composite": {
			"[" + logging("e", "composite", "") + "]",
			`[{d: {do: [{s: {set: {n: 2}}}]}}, {f: {fork: {branches: [{b: {set: {n: 3}}}]}}}, {r: {set: '${ $context.trace | map(.[:10]) }'}}]`,
			`["e before d", "e after d ", "e before f", "e after f "]`,
		},
		"end ends the run": {
			`[{e: {extend: set, before: [{i: {set: {ended: true}, then: end}}]}}]`, `[{s: {set: '${ 1 }'}}]`,
			`{"ended": true}`,
		},
		"each iteration and attempt is extended": {
			"[" + logging("e", "raise", "") + "]",
			`[{t: {try: [{f: {for: {in: '[1, 2]'}, while: $index < 1, do: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}]}}],
				catch: {retry: {delay: {seconds: 1}, limit: {attempt: {count: 1}}}, do: [{h: {set: '${ $context.trace | length }'}}]}}}]`,
			`2`,
		},
		"a listen task takes no more events": {
			`[{e: {extend: listen, after: [{w: {wait: {seconds: 9}}}]}}]`,
			`[{l: {listen: {to: {one: {with: {type: a}}}}, output: {as: .}}}]`, `["1"]`,
		},
		"the limit of an attempt is that of the try": {
			`[{e: {extend: try, after: [{w: {wait: {seconds: 9}}}]}}]`,
			`[{t: {try: [{s: {set: '${ 1 }'}}], catch: {retry: {limit: {attempt: {count: 1, duration: {seconds: 5}}}}}}}]`, `1`,
		},
	} {
		for _, restoring := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", restoring), func(t *testing.T) {
				t.Parallel()
				w := newDriver(t, extending(tt.extensions, tt.tasks), `{"n": 1}`)
				w.origin = func(interp.Call) answer { return answer{Result: ok("called").Result, after: time.Second} }
				w.publish(time.Second, `{"id": "1", "type": "a", "data": "1"}`)
				w.publish(2*time.Second, `{"id": "2", "type": "a", "data": "2"}`)
				w.limits.AdvanceFuel = 1 // each Advance ends after one turn
				w.m = interp.New(w.doc, interp.Start{RunID: "run-1", Input: value(t, `{"n": 1}`), At: epoch}, w.limits)
				if restoring {
					w.between = func(w *driver) {
						if w.m.InFlight() == 0 {
							w.restore()
						}
					}
				}
				w.completes(tt.want)
				require.LessOrEqual(t, w.delivered, 1, "there is no listener for the second event")
			})
		}
	}
}

// TestErrorsOfExtensions: an error of an extension's task is one of the task that it extends, which no catch of that task
// itself handles.
func TestErrorsOfExtensions(t *testing.T) {
	t.Parallel()
	const broken = `[{e: {extend: try, %s: [{r: {raise: {error: {type: 'https://e/x', status: 418}}}}]}}]`
	for _, side := range []string{"before", "after"} {
		w := newDriver(t, extending(fmt.Sprintf(broken, side),
			`[{t: {try: [{s: {set: {x: 1}}}], catch: {do: [{h: {set: {caught: true}}}]}}}]`), `{}`)
		runError := w.fails()
		require.Equal(t, 418, runError.Status, side)
		require.Equal(t, "/use/extensions/0/e/"+side+"/0/r", runError.Instance)
		require.Equal(t, "/do/0/t/use/extensions/0/e/"+side+"/0/r", w.steps[int64(len(w.steps))].Path)
	}
}

// TestTimeoutsCoverExtensions: a task's timeout covers what extensions run before and after it.
func TestTimeoutsCoverExtensions(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"before", "after"} {
		w := newDriver(t, extending(`[{e: {extend: set, `+side+`: [{w: {wait: {seconds: 9}}}]}}]`,
			`[{s: {timeout: {after: {seconds: 5}}, set: {x: 1}}}]`), `{}`)
		require.Equal(t, 408, w.fails().Status, side)
	}
}
