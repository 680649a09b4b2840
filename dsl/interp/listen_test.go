package interp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

const second = time.Second

// published is an event that is published after some seconds.
type published struct {
	after int
	text  string
}

func TestListen(t *testing.T) {
	t.Parallel()
	a := func(after int, data string) published {
		return published{after, `{"id": "1", "type": "a", "data": ` + data + `}`}
	}
	b := func(after int, data string) published {
		return published{after, `{"id": "2", "type": "b", "data": ` + data + `}`}
	}
	keyed := func(after int, kind, key string) published {
		return published{after, fmt.Sprintf(`{"id": "%d", "type": %q, "roomid": %q, "data": %d}`, after, kind, key, after)}
	}
	tests := []struct {
		name, task, input string
		events            []published
		want              string
	}{
		{"one takes the first that matches", `listen: {to: {one: {with: {type: b}}}}`, `{}`,
			[]published{a(1, "1"), b(2, `{"x": 2}`), b(3, "3")}, `[{"x": 2}]`},
		{"any takes the first of either", `listen: {to: {any: [{with: {type: b}}, {with: {data: '${ . > 4 }'}}]}}`, `{}`,
			[]published{a(1, "1"), a(2, "5"), b(3, "3")}, `[5]`},
		{"any of nothing takes everything", `listen: {to: {any: []}}`, `{}`, []published{a(1, "null")}, `[null]`},
		{"envelope", `listen: {to: {any: []}, read: envelope}`, `{}`, []published{a(1, "7")},
			`[{"id": "1", "type": "a", "data": 7}]`},
		{"raw", `listen: {to: {any: []}, read: raw}`, `{}`, []published{a(1, `{"b": 1}`)}, `["eyJiIjoxfQ=="]`},
		{"all in the order of acceptance, one for each filter",
			`listen: {to: {all: [{with: {type: a}}, {with: {type: b}}, {with: {type: b}}]}}`, `{}`,
			[]published{b(1, "1"), b(2, "2"), b(3, "3"), a(4, "4")}, `[1, 2, 4]`},
		{"an event meets one filter", `listen: {to: {all: [{with: {type: a}}, {with: {data: '${ . > 0 }'}}]}}`, `{}`,
			[]published{a(1, "1"), a(2, "0"), a(3, "3")}, `[1, 3]`},
		{"filters see the data of the run", `
input: {from: '{low: .min}'}
listen:
  to:
    any:
      - with: {type: a, data: '${ . >= $input.low and . < $context.max and . != $workflow.input.not }'}
      - with: {type: '${ $context | keys | .[0] }'}
        correlate: {room: {from: '.roomid + ($task.input.min | tostring)', expect: r3}}
    until: length == 2`, `{"min": 3, "max": 9, "not": 5}`,
			[]published{a(1, "2"), a(2, "9"), a(3, "5"), a(4, "4"), keyed(5, "max", "x"), keyed(6, "max", "r")}, `[4, 6]`},
		{"the first event fixes a key", `
listen:
  to:
    all:
      - with: {type: a}
        correlate: {room: {from: .roomid}}
      - with: {type: b}
        correlate: {room: {from: .roomid}}`, `{}`,
			[]published{keyed(1, "a", "hall"), keyed(2, "b", "kitchen"), keyed(3, "a", "kitchen"), b(4, "4"),
				keyed(5, "b", "hall")}, `[1, 5]`},
		{"a key that is expected", `
listen:
  to:
    one:
      with: {type: a}
      correlate: {room: {from: .roomid, expect: '${ .room }'}}`, `{"room": "kitchen"}`,
			[]published{keyed(1, "a", "hall"), keyed(2, "a", "kitchen")}, `[2]`},
		{"a key that is expected by one filter holds for the others", `
listen:
  to:
    all:
      - with: {type: a}
        correlate: {room: {from: .roomid, expect: kitchen}}
      - with: {type: b}
        correlate: {room: {from: .roomid}}`, `{}`,
			[]published{keyed(1, "a", "hall"), keyed(2, "a", "kitchen"), keyed(3, "b", "hall"), keyed(4, "b", "kitchen")},
			`[2, 4]`},
		{"until a condition on what was consumed",
			`listen: {to: {any: [{with: {type: a}}], until: '(. | length) >= $input.n'}}`, `{"n": 3}`,
			[]published{a(1, "1"), b(2, "2"), a(3, "3"), a(4, "4"), a(5, "5")}, `[1, 3, 4]`},
		{"until an event, which is not part of the output", `listen: {to: {any: [], until: {one: {with: {type: b}}}}}`, `{}`,
			[]published{a(1, "1"), a(2, "2"), b(3, "3"), a(4, "4")}, `[1, 2]`},
		{"until all events", `listen: {to: {any: [{with: {type: a}}], until: {all: [{with: {type: b}}, {with: {data: 9}}]}}}`,
			`{}`,
			[]published{a(1, "1"), b(2, "2"), a(3, "3"), b(4, "4"), a(5, "9"), a(6, "6")}, `[1, 3]`},
		{"until shares the keys", `
listen:
  to:
    any:
      - with: {type: a}
        correlate: {room: {from: .roomid}}
    until: {one: {with: {type: b}, correlate: {room: {from: .roomid}}}}`, `{}`,
			[]published{keyed(1, "a", "hall"), keyed(2, "b", "kitchen"), keyed(3, "a", "kitchen"), keyed(4, "a", "hall"),
				keyed(5, "b", "hall")}, `[1, 4]`},
		{"foreach works on one after another", `
listen: {to: {any: [], until: length == 3}, read: envelope}
foreach:
  item: event
  at: i
  do:
    - slow: {wait: {seconds: 10}}
    - keep: {set: {n: '${ $event.data + .base }', i: '${ $i }', seen: '${ $context.last }'}}
  output: {as: '{v: .n, i, seen, kind: $event.type}'}
  export: {as: '{last: $output.v}'}`, `{"base": 100, "last": 0}`,
			[]published{a(1, "1"), b(2, "2"), a(3, "3"), a(4, "4")},
			`[{"v": 101, "i": 0, "seen": 0, "kind": "a"}, {"v": 102, "i": 1, "seen": 101, "kind": "b"}, {"v": 103, "i": 2, "seen": 102, "kind": "a"}]`},
		{"foreach without tasks", `
listen: {to: {all: [{with: {type: a}}, {with: {type: b}}]}}
foreach: {output: {as: '{n: $item, i: $index, in: $input.k, dot: .}'}}`, `{"k": 1}`,
			[]published{b(1, "1"), a(2, "2")}, `[{"n": 1, "i": 0, "in": 1, "dot": 1}, {"n": 2, "i": 1, "in": 1, "dot": 2}]`},
		{"exit ends the item", `
listen: {to: {any: [], until: '. | length > 1'}}
foreach: {do: [{s: {switch: [{odd: {when: $item == 1, then: exit}}]}}, {x: {set: {x: '${ $item }'}}}]}`, `{"in": true}`,
			[]published{a(1, "1"), a(2, "2")}, `[{"in": true}, {"x": 2}]`},
		{"end ends the run", `
listen: {to: {any: [], until: 'false'}}
foreach: {do: [{x: {set: {n: '${ $item }'}}}, {s: {switch: [{enough: {when: .n == 2, then: end}}]}}]}`, `{}`,
			[]published{a(1, "1"), a(2, "2"), a(3, "3")}, `{"n": 2}`},
		{"the condition sees what foreach exported", `
listen: {to: {any: [], until: $context.done}}
foreach: {do: [{x: {set: {n: '${ $item }'}}}], export: {as: '{done: (.n > 1)}'}}`, `{}`,
			[]published{a(1, "1"), a(2, "2"), a(3, "3")}, `[{"n": 1}, {"n": 2}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, listening := range []time.Duration{0, 1500 * time.Millisecond} {
				w := newDriver(t, document("do:\n  - t:\n"+indent(test.task)), test.input)
				w.listening = listening
				for _, e := range test.events {
					w.publish(listening+time.Duration(e.after)*second, e.text)
				}
				w.completes(test.want)
			}
		})
	}
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(text, "\n", "\n      ") + "\n"
}

// listening starts a run with listeners that are committed at once, and returns their keys.
func listening(t *testing.T, rest string) (*driver, []string) {
	t.Helper()
	w := newDriver(t, document(rest), `{}`)
	var keys []string
	for _, e := range w.m.Advance(epoch) {
		if l, ok := e.(interp.Listen); ok {
			keys = append(keys, l.Listener)
			w.m.Complete(l.ID, interp.Result{}, epoch)
		}
	}
	return w, keys
}

func TestDeliveriesAreTakenOnce(t *testing.T) {
	t.Parallel()
	w, keys := listening(t, `do: [{l: {listen: {to: {any: [], until: length == 3}}}}]`)
	event := func(n int) any { return map[string]any{"data": n} }
	w.m.Deliver(keys[0], 5, event(5), epoch)
	w.m.Deliver(keys[0], 5, event(5), epoch)
	w.m.Deliver(keys[0], 4, event(4), epoch)
	w.m.Deliver("another listener", 6, event(6), epoch)
	w.m.Deliver(keys[0], 7, "no event", epoch)
	snapshot, err := w.m.Snapshot()
	require.NoError(t, err)
	w.m, err = interp.Restore(w.doc, snapshot, w.limits)
	require.NoError(t, err)
	w.m.Deliver(keys[0], 5, event(5), epoch)
	w.m.Deliver(keys[0], 8, event(8), epoch)
	w.m.Deliver(keys[0], 9, event(9), epoch)
	w.m.Deliver(keys[0], 10, event(10), epoch)
	require.Equal(t, []interp.Effect{interp.Unlisten{Listener: keys[0]}}, w.m.Advance(epoch))
	outcome, done := w.m.Done()
	require.True(t, done)
	require.Equal(t, []any{5, 8, 9}, outcome.Output)
	w.m.Deliver(keys[0], 11, event(11), epoch)
	require.Empty(t, w.m.Advance(epoch))
}

func TestEventsBeforeTheListenerIsCommitted(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{l: {listen: {to: {any: [], until: length == 2}}}}]`), `{}`)
	effects := w.m.Advance(epoch)
	listen, ok := effects[0].(interp.Listen)
	require.True(t, ok)
	require.Equal(t, 1, w.m.InFlight())
	w.m.Deliver(listen.Listener, 1, map[string]any{"data": 1}, epoch)
	w.m.Deliver(listen.Listener, 2, map[string]any{"data": 2}, epoch)
	require.Empty(t, w.m.Advance(epoch))
	w.m.Complete(listen.ID, interp.Result{}, epoch)
	w.m.Advance(epoch)
	outcome, _ := w.m.Done()
	require.Equal(t, []any{1, 2}, outcome.Output)
}

func TestListenersAreThoseThatAreRequestedAndOpen(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(
		`do: [{l: {listen: {to: {all: [{with: {type: a}, correlate: {k: {from: .k, expect: '${ .id }'}}}, {with: {type: b}}]}}}}]`), `{"id": 7}`)
	listen, ok := w.m.Advance(epoch)[0].(interp.Listen)
	require.True(t, ok)
	requireListeners := func(want ...interp.Listen) {
		t.Helper()
		got, err := w.m.Listeners()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	id := listen.ID
	listen.ID = 0
	requireListeners(listen)
	w.m.Complete(id, interp.Result{}, epoch)
	requireListeners(listen)
	w.m.Deliver(listen.Listener, 1, map[string]any{"type": "a", "k": 7}, epoch)
	w.m.Advance(epoch)
	listen.Taken = []int64{1}
	requireListeners(listen)
	snapshot, err := w.m.Snapshot()
	require.NoError(t, err)
	w.m, err = interp.Restore(w.doc, snapshot, w.limits)
	require.NoError(t, err)
	requireListeners(listen)
	w.m.Deliver(listen.Listener, 2, map[string]any{"type": "b"}, epoch)
	w.m.Advance(epoch)
	_, done := w.m.Done()
	require.True(t, done)
	requireListeners()
}

func TestListenersAreKeyedByTaskEntry(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - l:
      for: {each: x, in: '[1, 2]'}
      do:
        - t:
            try: [{e: {timeout: {after: {seconds: 5}}, listen: {to: {one: {with: {type: a}}}}}}]
            catch: {retry: {delay: PT0S, limit: {attempt: {count: 1}}}, do: [{n: {set: {n: 1}}}]}`), `{}`)
	w.completes(`{"n": 1}`)
	seen := map[string]bool{}
	for _, l := range w.listeners {
		require.Regexp(t, `^run-1-[0-9a-f]{16}$`, l.Listener)
		seen[l.Listener] = true
	}
	require.Len(t, seen, 4)
	require.Equal(t, epoch.Add(20*second), w.now)
}

func TestListenSpec(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		`{one: {with: {type: a, data: '${ .x > 1 }'}}}`: `{"mode":"one","filters":[{"with":{"type":{"literal":"a"},"data":{"expr":".x > 1"}}}]}`,
		`{any: []}`: `{"mode":"any"}`,
		`{any: [], until: {one: {with: {type: a}}}}`:                                                                          `{"mode":"any"}`,
		`{any: [{with: {type: a}}], until: {any: []}}`:                                                                        `{"mode":"any"}`,
		`{any: [{with: {type: a}}], until: 'false'}`:                                                                          `{"mode":"any","filters":[{"with":{"type":{"literal":"a"}}}]}`,
		`{any: [{with: {type: a}}], until: {all: [{with: {type: b}}]}}`:                                                       `{"mode":"any","filters":[{"with":{"type":{"literal":"a"}}},{"with":{"type":{"literal":"b"}}}]}`,
		`{all: [{with: {type: a}, correlate: {k: {from: .k, expect: '${ .id }'}, l: {from: .l, expect: x}, m: {from: .m}}}]}`: `{"mode":"all","filters":[{"with":{"type":{"literal":"a"}},"correlate":{"k":{"from":".k","expect":7},"l":{"from":".l","expect":"x"},"m":{"from":".m"}}}]}`,
	} {
		w := newDriver(t, document(`do: [{l: {listen: {to: `+to+`}}}]`), `{"id": 7}`)
		listen, ok := w.m.Advance(epoch)[0].(interp.Listen)
		require.True(t, ok)
		spec, err := json.Marshal(listen.Spec)
		require.NoError(t, err)
		require.JSONEq(t, want, string(spec), to)
		require.Equal(t, int64(1), listen.StepNumber)
	}
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	for task, detail := range map[string]string{
		`listen: {to: {one: {with: {type: a}, correlate: {k: {from: .k, expect: '${ .x.y.z }'}}}}}`:                       "expected an object",
		`listen: {to: {any: [], until: '.a'}}`:                                                                            "expected an object",
		"listen: {to: {any: []}}\nforeach: {output: {as: '.a.b'}}":                                                        "expected an object",
		"listen: {to: {any: []}}\nforeach: {export: {as: '.a.b'}}":                                                        "expected an object",
		"listen: {to: {any: []}}\nforeach: {output: {schema: {document: {type: string}}}}":                                "an item's output does not match",
		"listen: {to: {any: []}}\nforeach: {export: {schema: {document: {type: string}}}}":                                "the exported context does not match",
		"listen: {to: {any: []}}\nforeach: {do: [{r: {raise: {error: {type: 'https://e/x', status: 500, detail: no}}}}]}": "no",
	} {
		w := newDriver(t, document("do:\n  - t:\n"+indent(task)), `{"x": 1}`)
		w.publish(second, `{"data": 1}`)
		require.Contains(t, w.fails().Detail, detail, task)
	}
	w := newDriver(t, document(`do: [{l: {listen: {to: {any: []}}}}]`), `{}`)
	listen, ok := w.m.Advance(epoch)[0].(interp.Listen)
	require.True(t, ok)
	w.m.Complete(listen.ID, interp.Result{Error: &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "No"}}, epoch)
	require.Equal(t, []interp.Effect{interp.Unlisten{Listener: listen.Listener}}, w.m.Advance(epoch))
	outcome, _ := w.m.Done()
	require.Equal(t, interp.StatusFailed, outcome.Status)
}

func TestListenTimeout(t *testing.T) {
	t.Parallel()
	const task = `do: [{t: {timeout: {after: {seconds: 5}}, listen: {to: {one: {with: {type: a}}}}}}]`
	w := newDriver(t, document(task), `{}`)
	require.Equal(t, dsl.ErrorTypeTimeout, w.fails().Type)

	// events that were delivered are processed before a deadline that has passed since
	w, keys := listening(t, task)
	w.m.Deliver(keys[0], 1, map[string]any{"type": "a", "data": 1}, epoch.Add(6*second))
	w.m.Advance(epoch.Add(6 * second))
	outcome, _ := w.m.Done()
	require.Equal(t, interp.StatusCompleted, outcome.Status)

	// a listener that is not committed yet is removed as well
	w = newDriver(t, document(task), `{}`)
	w.listening = time.Minute
	require.Equal(t, dsl.ErrorTypeTimeout, w.fails().Type)
}

func TestListenersInBranches(t *testing.T) {
	t.Parallel()
	branches := func(compete bool) string {
		return fmt.Sprintf(`
do:
  - f:
      fork:
        compete: %v
        branches:
          - left: {listen: {to: {one: {with: {type: a}}}}}
          - right: {listen: {to: {all: [{with: {type: b}}, {with: {type: a}}]}}}`, compete)
	}
	w := newDriver(t, document(branches(false)), `{}`)
	w.publish(second, `{"type": "a", "data": 1}`)
	w.publish(2*second, `{"type": "b", "data": 2}`)
	w.completes(`[[1], [1, 2]]`)
	require.Equal(t, 3, w.delivered)
	require.Equal(t, []interp.Status{"running", "waiting", "completed"}, statuses(w))
	require.Equal(t, interp.WaitEvent, w.runs[1].WaitKind)
	require.Nil(t, w.runs[1].WaitUntil)

	w = newDriver(t, document(branches(true)), `{}`)
	w.publish(second, `{"type": "b", "data": 2}`)
	w.publish(2*second, `{"type": "a", "data": 1}`)
	w.completes(`[1]`)
	require.Equal(t, interp.StatusCanceled, w.step("/do/0/f/fork/branches/1/right").Status)

	w = newDriver(t, document(branches(false)), `{}`)
	w.cancelAt = epoch.Add(3 * second)
	require.Equal(t, interp.StatusCanceled, w.run().Status)
}

func statuses(w *driver) []interp.Status {
	var out []interp.Status
	for _, r := range w.runs {
		if len(out) == 0 || out[len(out)-1] != r.Status {
			out = append(out, r.Status)
		}
	}
	return out
}

func TestListenRecords(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - l:
      listen: {to: {any: [], until: length == 2}}
      foreach: {do: [{w: {wait: {seconds: 10}}}, {s: {set: {n: '${ $item }'}}}]}`), `{}`)
	var waits []string
	w.between = func(w *driver) {
		if s, ok := w.steps[1]; ok && (len(waits) == 0 || waits[len(waits)-1] != s.WaitKind) {
			waits = append(waits, s.WaitKind)
			require.Nil(t, s.WaitUntil)
		}
	}
	w.publish(second, `{"data": 1}`)
	w.publish(30*second, `{"data": 2}`)
	w.completes(`[{"n": 1}, {"n": 2}]`)
	require.Equal(t, []string{"", "event", "", "event", ""}, waits)
	require.Equal(t, []string{
		"/do/0/l completed", "/do/0/l/foreach/0/do/0/w completed", "/do/0/l/foreach/0/do/1/s completed",
		"/do/0/l/foreach/1/do/0/w completed", "/do/0/l/foreach/1/do/1/s completed",
	}, w.trace())
	require.Equal(t, "/do/0/l/foreach/do/0/w", w.steps[2].Pointer)
	require.Equal(t, "listen", w.steps[1].Kind)
}

// TestTakenEventsAreRecorded has a snapshot before each Advance, or none.
func TestTakenEventsAreRecorded(t *testing.T) {
	t.Parallel()
	for _, snapshots := range []bool{false, true} {
		w := newDriver(t, document(`
do: [{l: {listen: {to: {all: [{with: {type: a}}, {with: {type: b}}, {with: {type: c}}]}}}}]`), `{}`)
		var lists [][]interp.TakenEvent
		w.between = func(w *driver) {
			if s := w.steps[1]; s.WaitKind == interp.WaitEvent && (len(lists) == 0 || len(lists[len(lists)-1]) != len(s.Taken)) {
				lists = append(lists, s.Taken)
			}
			if snapshots && w.m.InFlight() == 0 {
				w.restore()
			}
		}
		for i, kind := range []string{"c", "c", "a", "b"} {
			w.publish(time.Duration(i+1)*second, `{"type": "`+kind+`"}`)
		}
		w.run()
		third, first := interp.TakenEvent{Filter: 2, At: epoch.Add(second)},
			interp.TakenEvent{Filter: 0, At: epoch.Add(3 * second)}
		require.Equal(t, [][]interp.TakenEvent{nil, {third}, {third, first}}, lists)
		require.Empty(t, w.steps[1].Taken, "it waits no more")
	}
	for name, to := range map[string]string{
		"of the events that end it": `{any: [{with: {type: x}}], until: {all: [{with: {type: a}}, {with: {type: b}}]}}`,
		"not where one is enough":   `{any: [{with: {type: a}}], until: length == 2}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(`
do: [{l: {listen: {to: `+to+`}}}]`), `{}`)
			w.publish(second, `{"type": "a"}`)
			w.publish(2*second, `{"type": "b"}`)
			w.publish(3*second, `{"type": "a"}`)
			var taken []interp.TakenEvent
			w.between = func(w *driver) { taken = append(taken, w.steps[1].Taken...) }
			w.run()
			if name == "not where one is enough" {
				require.Empty(t, taken)
				return
			}
			require.Equal(t, interp.TakenEvent{Filter: 1, At: epoch.Add(second)}, taken[0], "after the filters of the task")
		})
	}
}

// A text with more than letters, digits and dots matches as a regular expression on the whole attribute, or by being
// equal.
func TestFiltersMatchByRegularExpression(t *testing.T) {
	t.Parallel()
	for _, restored := range []bool{false, true} {
		run := func(task string, events ...string) *driver {
			w := newDriver(t, document("do:\n  - l: "+task), `{}`)
			for i, e := range events {
				w.publish(time.Duration(i+1)*second, e)
			}
			if restored {
				w.between = func(w *driver) { w.restore() }
			}
			return w
		}
		other, match, literal := `{"type": "xev.rx.1", "data": 1}`, `{"type": "ev.rx.1", "data": 2}`,
			`{"type": "ev[.]rx[.].*", "data": 3}`
		run(`{listen: {to: {one: {with: {type: 'ev[.]rx[.].*'}}}}}`, other, match, literal).completes(`[2]`)
		run(`{listen: {to: {one: {with: {type: 'ev[.]rx[.].*'}}}}}`, other, literal).completes(`[3]`)
		run(`{listen: {to: {one: {with: {type: ev.rx.1}}}}}`, `{"type": "ev-rx-1", "data": 0}`, match).completes(`[2]`)
		run(`{listen: {to: {any: [], until: {one: {with: {type: 'e.*1'}}}}}}`, other, match, literal).completes(`[1]`)
	}
}

// Values that are equal are stored once in a snapshot: the state of one listener must not change that of another or of
// the run.
func TestRestoredListenersDoNotShareState(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - both:
      fork:
        branches:
          - one: {listen: {to: {all: [{with: {type: a}, correlate: {k: {from: .k}}}, {with: {type: c}, correlate: {k: {from: .k}}}]}}}
          - other: {listen: {to: {one: {with: {type: b}, correlate: {k: {from: .k}}}}}}
      output: {as: '{both: ., in: $workflow.input, context: $context}'}`), `{}`)
	w.between = func(w *driver) {
		if w.m.InFlight() == 0 {
			w.restore()
		}
	}
	w.publish(second, `{"type": "a", "k": 1, "data": 1}`)
	w.publish(2*second, `{"type": "b", "k": 2, "data": 2}`)
	w.publish(3*second, `{"type": "c", "k": 1, "data": 3}`)
	w.completes(`{"both": [[1, 3], [2]], "in": {}, "context": {}}`)
}

// A listener that never completes stores nothing of its consumed events.
func TestEndlessListenerStaysSmall(t *testing.T) {
	t.Parallel()
	w, keys := listening(t, `do: [{l: {listen: {to: {any: [], until: '${ false }'}}, foreach: {do: [{s: {set: {n: '${ $item }'}}}], export: {as: .}}}}]`)
	for i := range 10_000 {
		w.m.Deliver(keys[0], int64(i+1), map[string]any{"data": i}, epoch)
		w.m.Advance(epoch)
		w.m.TakeRecords()
	}
	snapshot, err := w.m.Snapshot()
	require.NoError(t, err)
	require.Less(t, len(snapshot), 2000)
}

// A long queue is processed in several turns, as any long computation is.
func TestManyEventsYield(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(
		`do: [{l: {listen: {to: {any: [], until: length == 20000}}}}, {n: {set: {n: '${ length }', last: '${ last }'}}}]`), `{}`)
	listen, ok := w.m.Advance(epoch)[0].(interp.Listen)
	require.True(t, ok)
	for i := range 20_000 {
		w.m.Deliver(listen.Listener, int64(i+1), map[string]any{"data": i}, epoch)
	}
	w.m.Complete(listen.ID, interp.Result{}, epoch)
	yields := 0
	for {
		w.m.Advance(epoch)
		if !w.m.Yielded() {
			break
		}
		yields++
	}
	outcome, done := w.m.Done()
	require.True(t, done)
	require.Equal(t, map[string]any{"n": 20000, "last": 19999}, outcome.Output)
	require.Positive(t, yields)
}
