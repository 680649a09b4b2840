package interp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// runTask is a task that runs a workflow.
func runTask(name, rest string) string {
	return fmt.Sprintf(`run: {workflow: {namespace: shop, name: %s, version: latest, input: {n: '${ .n }'}}%s}`, name,
		rest)
}

// ends returns the end of a child and its delay.
func ends(v any, after time.Duration) func(interp.StartChild) answer {
	return func(interp.StartChild) answer { return answer{Result: interp.Result{Value: v}, after: after} }
}

func TestChildIsAwaited(t *testing.T) {
	t.Parallel()
	for _, accepting := range []time.Duration{0, time.Second, time.Hour} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("accepted after %s, moved %v", accepting, moved), func(t *testing.T) {
				t.Parallel()
				w := newDriver(t, document(`do: [{r: {`+runTask("order", "")+`}}, {s: {set: {got: '${ .x }'}}}]`), `{"n": 7}`)
				w.accepting, w.child = accepting, ends(map[string]any{"x": 5}, time.Minute)
				if moved {
					w.between = func(w *driver) {
						if w.m.InFlight() == 0 {
							w.restore()
						}
					}
				}
				w.completes(`{"got": 5}`)
				require.Len(t, w.children, 1)
				c := w.children[0].StartChild
				require.Equal(t, "shop/order", c.Workflow)
				require.Empty(t, c.Version)
				require.Equal(t, map[string]any{"n": 7}, c.Input)
				require.Equal(t, "/do/0/r", c.Path)
				require.True(t, c.Awaited)
				require.Equal(t, int64(1), c.StepNumber)
				require.Equal(t, epoch.Add(max(time.Minute, accepting)), *w.step("/do/0/r").EndedAt)
				require.Len(t, w.step("/do/0/r").Attempts, 1)
				if accepting < time.Minute {
					require.Contains(t, w.history(), fmt.Sprintf("waiting child %d", accepting/time.Second))
				}
			})
		}
	}
}

func TestChildThatIsNotAwaited(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{r: {`+runTask("order", ", await: false")+`}}]`), `{"n": 7}`)
	w.completes(`{"n": 7}`)
	require.False(t, w.children[0].Awaited)
	require.False(t, w.children[0].canceled)
}

func TestChildReturnModes(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"stdout": `{"x": 5}`, "none": `null`, "code": `0`, "stderr": `""`,
		"all": `{"code": 0, "stdout": {"x": 5}, "stderr": ""}`,
	} {
		w := newDriver(t, document(`do: [{r: {`+runTask("order", ", return: "+what)+`}}]`), `{"n": 7}`)
		w.child = ends(map[string]any{"x": 5}, time.Second)
		w.completes(want)
	}
}

func TestFailedChildFailsItsTask(t *testing.T) {
	t.Parallel()
	broken := func(refused bool) func(interp.StartChild) answer {
		return func(interp.StartChild) answer {
			return answer{Result: interp.Result{
				Error: &dsl.Error{Type: "https://e/x", Status: 503, Title: "X", Detail: "run child-1"}}, after: time.Second,
				refused: refused}
		}
	}
	for _, refused := range []bool{false, true} {
		w := newDriver(t, document(`do: [{r: {`+runTask("order", "")+`}}]`), `{"n": 7}`)
		w.child = broken(refused)
		runError := w.fails()
		require.Equal(t, dsl.Error{Type: "https://e/x", Status: 503, Title: "X", Detail: "run child-1", Instance: "/do/0/r"},
			runError)

		w = newDriver(t, document(`
do:
  - t:
      try: [{r: {`+runTask("order", "")+`}}]
      catch: {errors: {with: {status: 503}}, retry: {delay: {seconds: 1}, limit: {attempt: {count: 1}}}, do: [{s: {set: {caught: '${ $error.title }'}}}]}`), `{"n": 7}`)
		w.child = broken(refused)
		w.completes(`{"caught": "X"}`)
		require.Len(t, w.children, 2)
		require.NotEqual(t, w.children[0].Key, w.children[1].Key, "each attempt has a run of its own")
	}
}

func TestChildrenNoLongerAwaitedAreCanceled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rest, want string }{
		"a timeout": {`do: [{t: {try: [{r: {timeout: {after: {seconds: 5}}, ` + runTask("order", "") +
			`}}], catch: {do: [{s: {set: {x: 1}}}]}}}]`, `{"x": 1}`},
		"a competing fork": {`do: [{f: {fork: {compete: true, branches: [{r: {` + runTask("order", "") +
			`}}, {w: {wait: {seconds: 5}}}]}}}, {s: {set: {x: 1}}}]`, `{"x": 1}`},
		"an end": {`do: [{f: {fork: {branches: [{r: {` + runTask("order", "") +
			`}}, {w: {wait: {seconds: 5}, then: end}}]}}}]`, `{"n": 7}`},
	} {
		for _, accepting := range []time.Duration{0, time.Hour} {
			for _, moved := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, accepted after %s, moved %v", name, accepting, moved), func(t *testing.T) {
					t.Parallel()
					w := newDriver(t, document(tt.rest), `{"n": 7}`)
					w.accepting = accepting
					if moved {
						w.between = func(w *driver) {
							if w.m.InFlight() == 0 {
								w.restore()
							}
						}
					}
					w.completes(tt.want)
					require.Len(t, w.children, 1)
					require.True(t, w.children[0].canceled)
				})
			}
		}
	}
}

func TestCanceledRunCancelsItsChildren(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - f:
      fork:
        branches:
          - a: {`+runTask("one", "")+`}
          - b: {`+runTask("two", ", await: false")+`}
          - c: {wait: {hours: 1}}`), `{"n": 7}`)
	w.cancelAt = epoch.Add(time.Minute)
	require.Equal(t, interp.StatusCanceled, w.run().Status)
	require.True(t, w.children[0].canceled)
	require.False(t, w.children[1].canceled)
}

func TestChildOfAPausedRunEnds(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{r: {`+runTask("order", "")+`}}, {s: {set: {x: 1}}}]`), `{"n": 7}`)
	w.child = ends(1, 5*time.Second)
	w.pauseAt(time.Second)
	w.unpauseAt(9 * time.Second)
	w.completes(`{"x": 1}`)
	require.Equal(t, epoch.Add(5*time.Second), *w.step("/do/0/r").EndedAt)
	require.Equal(t, epoch.Add(9*time.Second), w.step("/do/1/s").StartedAt)
}

// A child without an input gets that of its task, from version 2 on.
func TestChildHasTheInputOfItsTask(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]any{1: nil, interp.Version: map[string]any{"n": 7}} {
		w := newDriver(t, document(`do: [{r: {input: {from: .order}, run: {workflow: {namespace: shop, name: x, version: latest}}}}]`),
			`{"order": {"n": 7}}`)
		w.m = interp.New(w.doc, interp.Start{RunID: "run-1", Input: value(t, `{"order": {"n": 7}}`), At: epoch,
			Interpreter: version}, w.limits)
		w.child = ends(1, time.Minute)
		w.completes(`1`)
		require.Equal(t, want, w.children[0].Input, "version %d", version)
	}
}
