package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

const subflow = `run: {workflow: {namespace: shop, name: order, version: latest, input: {n: '${ .n }'}}}`

// fakeChildren starts runs and records them.
type fakeChildren struct {
	b        *testRun
	started  []flow.ChildRequest
	canceled []flow.CancelChildRequest
	// ended returns the completion of each run, after some time. nil: it never ends by itself.
	ended func(r flow.ChildRequest) *flow.ChildEnded
	after time.Duration
	// reject and delay control the acceptance.
	reject error
	delay  func(ctx context.Context)
	// stubborn children do not end when they are canceled.
	stubborn bool
}

func (n *fakeChildren) start(ctx context.Context, r flow.ChildRequest) (flow.ChildStarted, error) {
	n.b.mu.Lock()
	n.started = append(n.started, r)
	n.b.mu.Unlock()
	if n.delay != nil {
		n.delay(ctx)
	}
	if n.reject != nil {
		return flow.ChildStarted{}, n.reject
	}
	if n.ended != nil {
		if end := n.ended(r); end != nil {
			end.Key, end.RunID = r.Key, "child-1"
			n.notify(n.after, *end)
			n.notify(n.after+time.Second, *end)
		}
	}
	return flow.ChildStarted{RunID: "child-1"}, nil
}

func (n *fakeChildren) cancel(_ context.Context, r flow.CancelChildRequest) error {
	n.b.mu.Lock()
	n.canceled = append(n.canceled, r)
	n.b.mu.Unlock()
	if !n.stubborn {
		n.notify(time.Second, flow.ChildEnded{Key: n.started[0].Key, RunID: r.RunID, Status: "canceled"})
	}
	return nil
}

func (n *fakeChildren) notify(after time.Duration, end flow.ChildEnded) {
	n.b.env.RegisterDelayedCallback(func() { n.b.env.SignalWorkflow(contract.ChildSignal, end) }, after)
}

func completed(output string) func(flow.ChildRequest) *flow.ChildEnded {
	return func(flow.ChildRequest) *flow.ChildEnded {
		return &flow.ChildEnded{Status: "completed", Output: json.RawMessage(output)}
	}
}

func newFakeChildren(t *testing.T, rest string) *fakeChildren {
	t.Helper()
	n := &fakeChildren{b: newTestRun(t, rest, `{"n": 7}`), after: time.Minute}
	n.b.children = n
	return n
}

func TestChildIsAwaited(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"later": time.Minute, "before its start is known": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newFakeChildren(t, `do: [{r: {`+subflow+`}}, {s: {set: {got: '${ .x }'}}}]`)
			n.ended, n.after = completed(`{"x": 5}`), after
			n.b.completes(`{"got": 5}`)
			require.Len(t, n.started, 1)
			r := n.started[0]
			require.NotEmpty(t, r.Key)
			r.Key = ""
			require.JSONEq(t, `{"n": 7}`, string(r.Input))
			r.Input = nil
			require.Equal(t, flow.ChildRequest{
				Project: "p", Parent: "run-1", Path: "/do/0/r", Workflow: "shop/order", Awaited: true}, r)
			require.Empty(t, n.canceled)
			if after > 0 {
				require.Contains(t, n.b.recorder.states(), "waiting child 0s")
			}
		})
	}
}

func TestChildResults(t *testing.T) {
	t.Parallel()
	runError := &dsl.Error{Type: "https://e/x", Status: 503, Title: "X", Detail: "no stock", Instance: "/do/7/y"}
	for name, tt := range map[string]struct {
		end  flow.ChildEnded
		want dsl.Error
	}{
		"failed": {flow.ChildEnded{Status: "failed", Error: runError},
			dsl.Error{Type: "https://e/x", Status: 503, Title: "X", Detail: "run child-1: no stock"}},
		"timed out": {flow.ChildEnded{
			Status: "timed_out", Error: &dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out"}},
			dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out", Detail: "run child-1: Timed out"}},
		"canceled": {flow.ChildEnded{Status: "canceled"},
			dsl.Error{Type: interp.ErrorTypeChildCanceled, Status: 409, Title: "Child canceled",
				Detail: "run child-1: it was canceled"}},
		"terminated": {flow.ChildEnded{
			Status: "terminated", Error: &dsl.Error{
				Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Terminated", Detail: "by hand"}},
			dsl.Error{Type: interp.ErrorTypeChildTerminated, Status: 500, Title: "Child terminated",
				Detail: "run child-1: by hand"}},
		"otherwise": {flow.ChildEnded{Status: "strange"},
			dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Cannot go on",
				Detail: "run child-1: it ended as strange"}},
		"unreadable": {flow.ChildEnded{Status: "completed", Output: json.RawMessage(`"\ud800"`)}, dsl.Error{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newFakeChildren(t, `do: [{r: {`+subflow+`}}]`)
			n.ended = func(flow.ChildRequest) *flow.ChildEnded { end := tt.end; return &end }
			_, err := n.b.run()
			if tt.want.Type == "" {
				return // any error: the run has ended
			}
			status, got := flow.Failed(err)
			require.Equal(t, interp.StatusFailed, status)
			tt.want.Instance = "/do/0/r"
			require.Equal(t, tt.want, *got)
		})
	}
}

func TestRejectedChild(t *testing.T) {
	t.Parallel()
	n := newFakeChildren(t, `do: [{t: {try: [{r: {`+subflow+
		`}}], catch: {as: e, do: [{s: {set: {title: '${ $e.title }'}}}]}}}]`)
	n.reject = refuse(404, flow.CategoryRefused)
	n.b.completes(`{"title": "Refused"}`)
}

func TestCanceledRunWaitsForItsChildren(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stubborn bool
		want     string
	}{
		"that end":         {false, "1m1s"},
		"but not for ever": {true, "1m30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newFakeChildren(t, `do: [{r: {`+subflow+`}}]`)
			n.stubborn = tt.stubborn
			n.b.began = func() { n.b.env.RegisterDelayedCallback(n.b.env.CancelWorkflow, time.Minute) }
			_, err := n.b.run()
			var canceled *temporal.CanceledError
			require.ErrorAs(t, err, &canceled)
			require.Equal(t, []flow.CancelChildRequest{{Project: "p", Parent: "run-1", RunID: "child-1"}}, n.canceled)
			require.Equal(t, tt.want, n.b.env.Now().Sub(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)).String())
			require.Contains(t, n.b.recorder.states(), "canceled  1m0s")
		})
	}
}

// The children of a run that is being canceled end before the run handles its own cancellation.
func TestChildCanceledWithItsParentCancelsTheRun(t *testing.T) {
	t.Parallel()
	fork := `do: [{t: {try: [{f: {fork: {branches: [{a: {` + subflow + `}}, {b: {` + subflow +
		`}}]}}}], catch: {retry: {delay: {seconds: 1}}}}}]`
	for name, prepare := range map[string]func(n *fakeChildren){
		"ended": func(n *fakeChildren) {
			n.ended = func(flow.ChildRequest) *flow.ChildEnded {
				return &flow.ChildEnded{Status: "canceled", ParentCanceled: true}
			}
		},
		"ended before their starts are known": func(n *fakeChildren) {
			n.after, n.ended = 0, func(flow.ChildRequest) *flow.ChildEnded {
				return &flow.ChildEnded{Status: "canceled", ParentCanceled: true}
			}
		},
		"not started": func(n *fakeChildren) {
			n.reject = flow.CallError(flow.CategoryRefused,
				dsl.Error{Type: interp.ErrorTypeChildCanceled, Status: 409, Title: "Child canceled"}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, doc := range []string{fork, `do: [{r: {` + subflow + `}}]`} {
				n := newFakeChildren(t, doc)
				prepare(n)
				_, err := n.b.run()
				var canceled *temporal.CanceledError
				require.ErrorAs(t, err, &canceled)
				require.LessOrEqual(t, len(n.started), 2, "no attempt follows")
				require.Less(t, n.b.env.Now().Sub(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), 90*time.Second,
					"it does not wait for children that have ended")
			}
		})
	}
}

func TestAbandonedChildIsCanceled(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} {
		n := newFakeChildren(t, `do: [{t: {try: [{r: {timeout: {after: {seconds: 5}}, `+subflow+
			`}}], catch: {do: [{w: {wait: {minutes: 1}}}]}}}]`)
		if slow {
			calls := 0
			n.delay = func(context.Context) { calls++ }
			n.reject = errors.New("not yet") // retried for ever
			n.b.began = func() { n.b.env.RegisterDelayedCallback(func() { n.reject = nil }, 20*time.Second) }
		}
		n.b.completes(`{"n": 7}`)
		require.Len(t, n.canceled, 1)
	}
}

func TestAwaitedChildSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	n := newFakeChildren(t, `do: [{f: {fork: {branches: [{r: {`+subflow+
		`}}, {l: {for: {in: '[range(20)]'}, do: [{w: {wait: {seconds: 1}}}]}}]}}}]`)
	n.b.limits.SoftEvents, n.b.limits.HardEvents = 20, 40
	executions, key := 0, ""
	n.b.began = func() {
		executions++
		if executions == 1 {
			return
		}
		n.notify(time.Hour, flow.ChildEnded{
			Key: n.started[0].Key, RunID: "child-1", Status: "completed", Output: json.RawMessage(`5`)})
		key = n.started[0].Key
	}
	n.b.completes(`[5, {"n": 7}]`)
	require.Greater(t, executions, 1)
	require.Len(t, n.started, 1)
	require.NotEmpty(t, key)
}
