package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// wake delivers an event to the newest listener after some time of the workflow's clock.
func (b *testRun) wake(after time.Duration, position int64, event string) {
	b.env.RegisterDelayedCallback(func() {
		b.mu.Lock()
		listener := b.listens[len(b.listens)-1].Listener
		b.mu.Unlock()
		b.env.SignalWorkflow(contract.WakeSignal,
			flow.Wake{Listener: listener, Position: position, Event: json.RawMessage(event)})
	}, after)
}

func TestEmitThenListen(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - e: {emit: {event: {with: {type: asked, data: {n: '${ .n }'}}}}}
  - l: {listen: {to: {one: {with: {type: answered}, correlate: {n: {from: .data.n, expect: '${ .data.n | tostring }'}}}}}}`, `{"n": 7}`)
	b.began = func() {
		b.wake(time.Second, 1, `{"type": "answered", "data": {"n": 7}}`)
		b.wake(2*time.Second, 2, `"no event"`)
		b.wake(2*time.Second, 2, strings.Repeat("[", 2000)+strings.Repeat("]", 2000))
		b.env.RegisterDelayedCallback(func() { b.env.SignalWorkflow(contract.WakeSignal, "not a wake") }, 2*time.Second)
		b.wake(3*time.Second, 3, `{"type": "answered", "data": {"n": "7"}}`)
		b.wake(3*time.Second, 3, `{"type": "answered", "data": {"n": "7", "again": true}}`)
	}
	b.completes(`[{"n": "7"}]`)
	require.Len(t, b.emits, 1)
	require.Equal(t, flow.EmitRequest{Project: "p", RunID: "run-1", Event: b.emits[0].Event}, b.emits[0])
	require.JSONEq(t, `{"specversion": "1.0", "id": "run-1-42740207b2c676f3", "source": "/projects/p/workflows/test/test/runs/run-1", "type": "asked",
		"time": "2026-03-01T12:00:00Z", "datacontenttype": "application/json", "data": {"n": 7}}`, string(b.emits[0].Event))
	require.Len(t, b.listens, 1)
	require.Equal(t, []string{"p", "run-1"}, []string{b.listens[0].Project, b.listens[0].RunID})
	spec, err := json.Marshal(b.listens[0].Spec)
	require.NoError(t, err)
	require.JSONEq(t, `{"mode": "one", "filters": [{"with": {"type": {"literal": "answered"}}, "correlate": {"n": {"from": ".data.n", "expect": "7"}}}]}`, string(spec))
	require.Empty(t, b.left, "the end of a run removes its listeners")
	var waits []string
	for _, r := range b.recorder.runs {
		waits = append(waits, string(r.Status)+r.WaitKind)
	}
	require.Equal(t, []string{"running", "waitingevent", "completed"}, withoutRepetitions(waits))
}

func withoutRepetitions(list []string) []string {
	var out []string
	for _, s := range list {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

// An unavailable database delays a run and has no other effect.
func TestUnavailableStoreDelaysTheRun(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - e: {emit: {event: {with: {type: asked}}}}
  - l: {listen: {to: {any: []}}}
  - w: {wait: PT1H}`, ``)
	tries := map[string]int{}
	b.store = func(_ context.Context, name string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if tries[name]++; tries[name] < 9 { // the test environment gives up after 10
			return errors.New("the database is away")
		}
		return nil
	}
	b.began = func() { b.wake(20*time.Minute, 1, `{"data": 1}`) }
	b.completes(`[1]`)
	require.Equal(t, map[string]int{flow.EmitActivity: 9, flow.ListenActivity: 9, flow.UnlistenActivity: 9}, tries)
	require.Equal(t, b.emits[0], b.emits[8], "the same event each time")
}

func TestRejectionsAreErrorsOfTheRun(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{
		flow.EmitActivity:   `do: [{a: {emit: {event: {with: {type: asked}}}}}]`,
		flow.ListenActivity: `do: [{a: {listen: {to: {any: []}}}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, rest, ``)
			b.store = func(context.Context, string) error {
				return flow.CallError(flow.CategoryRefused,
					dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Title: "No", Detail: "too large"}, nil)
			}
			_, err := b.run()
			status, runError := flow.Failed(err)
			require.Equal(t, interp.StatusFailed, status)
			require.Equal(t, &dsl.Error{
				Type: dsl.ErrorTypeValidation, Status: 400, Title: "No", Detail: "too large", Instance: "/do/0/a"}, runError)
			require.Len(t, append(b.emits, make([]flow.EmitRequest, len(b.listens))...), 1, "tried once")
		})
	}
}

func TestListenTimesOut(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - t:
      try: [{l: {timeout: {after: PT1H}, listen: {to: {one: {with: {type: a}}}}}}]
      catch: {do: [{w: {wait: PT1M}}, {s: {set: {late: true}}}]}`, ``)
	b.began = func() { b.wake(time.Minute, 1, `{"type": "b"}`) }
	b.completes(`{"late": true}`)
	require.Equal(t, []string{b.listens[0].Listener}, b.left)
}

// A listener that is removed before its commit has ended is removed after that, not before.
func TestListenerIsRemovedAfterItsCommit(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - t:
      try: [{l: {timeout: {after: PT30S}, listen: {to: {one: {with: {type: a}}}}}}]
      catch: {do: [{w: {wait: PT1H}}]}`, `{}`)
	failures := 0
	var order []string
	b.store = func(_ context.Context, name string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if failures++; failures < 9 {
			return errors.New("the database is away")
		}
		order = append(order, name)
		return nil
	}
	b.completes(`{}`)
	require.Equal(t, []string{flow.ListenActivity, flow.UnlistenActivity}, order)
}

// The next execution repeats the removals that an execution has not finished.
func TestRemovalsSurviveContinueAsNew(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - t:
      try: [{l: {timeout: {after: PT30S}, listen: {to: {one: {with: {type: a}}}}}}]
      catch: {do: [{f: {for: {in: '[range(20)]'}, do: [{w: {wait: PT1S}}]}}, {w: {wait: PT1H}}]}`, `{}`)
	b.limits.SoftEvents, b.limits.HardEvents = 40, 60
	b.store = func(_ context.Context, name string) error {
		if name == flow.UnlistenActivity && b.input.Chain == 0 {
			return errors.New("the database is away")
		}
		return nil
	}
	carried := false
	b.began = func() { carried = carried || len(b.input.Unlisten) > 0 }
	b.completes(`{}`)
	require.Positive(t, b.input.Chain)
	require.True(t, carried)
	require.Contains(t, b.left, b.listens[0].Listener)
	require.Empty(t, b.input.Unlisten)
}

// TestEventsSurviveContinueAsNew sends a run 2,000 events while it continues as new many times. If the receipt of an
// event is uncertain at the end of an execution, it is delivered again, as a dispatcher does: the run consumes each
// once, in order.
func TestEventsSurviveContinueAsNew(t *testing.T) {
	t.Parallel()
	const events = 2000
	b := newTestRun(t, fmt.Sprintf(`
do:
  - l:
      listen: {to: {any: [{with: {type: a}}], until: '(. | length) == %d'}}
      foreach:
        do:
          - big: {if: $index %% 50 == 0, wait: {seconds: 1}}
          - keep: {set: {n: '${ $item }'}}
        output: {as: .n}
  - s: {set: {n: '${ length }', sorted: '${ . == sort }', sum: '${ add }'}}`, events), `{}`)
	b.limits.SoftEvents, b.limits.HardEvents = 300, 400
	given, confirmed := 0, 0
	b.began = func() {
		given = confirmed
		var next func()
		next = func() {
			confirmed = given
			b.mu.Lock()
			listening := len(b.listens) > 0
			b.mu.Unlock()
			for range 7 {
				if !listening || given == events {
					break
				}
				b.env.SignalWorkflow(contract.WakeSignal, flow.Wake{
					Listener: b.listens[0].Listener, Position: int64(given + 1),
					Event: json.RawMessage(fmt.Sprintf(`{"type": "a", "data": %d}`, given)),
				})
				given++
			}
			b.env.RegisterDelayedCallback(next, 50*time.Millisecond)
		}
		b.env.RegisterDelayedCallback(next, time.Millisecond)
	}
	b.completes(fmt.Sprintf(`{"n": %d, "sorted": true, "sum": %d}`, events, events*(events-1)/2))
	require.Greater(t, b.input.Chain, 5)
	require.Len(t, b.listens, 1, "one listener over all executions")
}

// TestSignalWithSeveralEvents delivers events in signals of three, of which one event is repeated.
func TestSignalWithSeveralEvents(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - l: {listen: {to: {any: [{with: {type: a}}], until: '${ length == 5 }'}}}`, `{}`)
	b.began = func() {
		b.env.RegisterDelayedCallback(func() {
			listener := b.listens[0].Listener
			wake := func(position int64) flow.Wake {
				return flow.Wake{Listener: listener, Position: position,
					Event: json.RawMessage(fmt.Sprintf(`{"type": "a", "data": %d}`, position))}
			}
			for _, positions := range [][]int64{{1, 2, 3}, {3, 4, 5}, {6, 7}} {
				signal := wake(positions[0])
				for _, position := range positions[1:] {
					signal.More = append(signal.More, wake(position))
				}
				b.env.SignalWorkflow(contract.WakeSignal, signal)
			}
		}, time.Second)
	}
	b.completes(`[1,2,3,4,5]`)
}
