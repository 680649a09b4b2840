package language_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// interpreterOnly is an interpreter with custom limits on the shared Temporal, without a platform: the test acts as its
// database and its dispatcher.
type interpreterOnly struct {
	t         *testing.T
	client    client.Client
	doc       *dsl.Document
	input     flow.Input
	listeners chan flow.ListenRequest
	mu        sync.Mutex
	emitted   []json.RawMessage
	left      []string
}

func newInterpreterOnly(t *testing.T, name, tasks string, limits flow.Limits) *interpreterOnly {
	t.Helper()
	doc, violations := dsl.Parse([]byte(platform.Document(name, tasks)))
	require.Empty(t, violations)
	a := &interpreterOnly{t: t, client: platform.DialTemporal(t, shared.Get(t).temporal.Address), doc: doc,
		listeners: make(chan flow.ListenRequest, 100)}
	a.input = flow.Input{
		RunID: name, Project: "alone", Workflow: "test/" +
			name, Version: "1.0.0", DocumentHash: doc.Hash(), Input: json.RawMessage(`{}`),
		Interpreter: interp.Version,
	}
	w := worker.New(a.client, name, worker.Options{WorkerStopTimeout: 5 * time.Second})
	w.RegisterWorkflowWithOptions(flow.New(t.Context(), a, a, limits).Run,
		workflow.RegisterOptions{Name: contract.RunWorkflow})
	w.RegisterActivityWithOptions(flow.Barrier, activity.RegisterOptions{Name: flow.BarrierActivity})
	w.RegisterActivityWithOptions(a.listen, activity.RegisterOptions{Name: flow.ListenActivity})
	w.RegisterActivityWithOptions(a.unlisten, activity.RegisterOptions{Name: flow.UnlistenActivity})
	w.RegisterActivityWithOptions(a.emit, activity.RegisterOptions{Name: flow.EmitActivity})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return a
}

func (a *interpreterOnly) Document(context.Context, string) (*dsl.Document, error) { return a.doc, nil }

func (a *interpreterOnly) Records(flow.Execution, int64, *interp.RunRecord, []interp.StepRecord, []flow.ProgramLog,
	[]string) {
}

func (a *interpreterOnly) listen(_ context.Context, r flow.ListenRequest) error {
	a.listeners <- r
	return nil
}

func (a *interpreterOnly) unlisten(_ context.Context, r flow.UnlistenRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = append(a.left, r.Listener)
	return nil
}

func (a *interpreterOnly) emit(_ context.Context, r flow.EmitRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.emitted = append(a.emitted, r.Event)
	return nil
}

func (a *interpreterOnly) start() client.WorkflowRun {
	a.t.Helper()
	handle, err := a.client.ExecuteWorkflow(a.t.Context(),
		client.StartWorkflowOptions{ID: a.input.RunID, TaskQueue: a.input.RunID}, contract.RunWorkflow, a.input)
	require.NoError(a.t, err)
	return handle
}

// result waits for the run's output: a run that lacks an event would wait forever.
func (a *interpreterOnly) result(handle client.WorkflowRun) string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Minute)
	defer cancel()
	var output json.RawMessage
	require.NoError(a.t, handle.Get(ctx, &output))
	return string(output)
}

// wake delivers an event as a dispatcher does.
func (a *interpreterOnly) wake(listener string, position int, event string) {
	a.t.Helper()
	require.NoError(a.t, a.client.SignalWorkflow(a.t.Context(), a.input.RunID, "", contract.WakeSignal,
		flow.Wake{Listener: listener, Position: int64(position), Event: json.RawMessage(event)}))
}

// The test sends a run events while it continues as new repeatedly, between its workflow
// tasks and during them: one branch receives the events, the other computes so much that executions end without
// ever having waited.
func TestNoEventIsLostAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	events := size(200, 2000)
	limits := flow.DefaultLimits()
	limits.SoftEvents, limits.HardEvents, limits.ExecutionFuel = 100, 200, 20_000
	limits.Machine.AdvanceFuel = 5_000
	a := newInterpreterOnly(t, "events-moving", fmt.Sprintf(`  - both:
      fork:
        branches:
          - hear:
              listen: {to: {any: [{with: {type: n}}], until: '(. | length) == %[1]d'}}
              foreach:
                do:
                  - pause: {if: $index %% 20 == 0, wait: {milliseconds: 5}}
                  - keep: {set: {n: '${ $item }'}}
                output: {as: .n}
          - compute:
              for: {in: '[range(%[2]d)]'}
              do:
                - breathe: {if: $index %% 10 == 0, wait: {milliseconds: 20}}
                - inner:
                    for: {in: '[range(30)]'}
                    do: [{work: {set: {n: '${ $index }'}}}]
  - result: {set: {events: '${ .[0] | length }', sorted: '${ .[0] == (.[0] | sort) }', sum: '${ .[0] | add }', computed: '${ .[1].n }'}}
`, events, events/16), limits)
	handle := a.start()
	listener := <-a.listeners
	// Temporal leaves a second between two executions: the events arrive during several of them, and in between.
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for i := range events {
		<-pace.C
		a.wake(listener.Listener, i+1, fmt.Sprintf(`{"id": "%d", "type": "n", "data": %d}`, i, i))
		if i%10 == 0 { // a dispatcher that is uncertain delivers again
			a.wake(listener.Listener, i+1, fmt.Sprintf(`{"id": "%d", "type": "n", "data": -1}`, i))
		}
	}
	output := a.result(handle)
	require.JSONEq(t, fmt.Sprintf(`{"events": %d, "sorted": true, "sum": %d, "computed": 29}`, events,
		events*(events-1)/2), output)
	executions := len(platform.Histories(t, a.client, a.input.RunID))
	require.Greater(t, executions, 4)
	t.Logf("%d events over %d executions", events, executions)
	require.Empty(t, a.listeners, "one listener over all executions")
}

// A loop sends a request and waits for the answer, which arrives at once and so often before the run
// has the confirmation that its listener is committed.
func TestEachEntryHasItsOwnListener(t *testing.T) {
	t.Parallel()
	rounds := size(20, 200)
	a := newInterpreterOnly(t, "events-asking",
		loop(rounds, `        - ask: {emit: {event: {with: {type: question, data: {n: '${ $n }'}}}}}
        - hear: {listen: {to: {one: {with: {type: answer}, correlate: {n: {from: .data.n, expect: '${ $n | tostring }'}}}}}}
        - keep: {set: {n: '${ .[0].n }', same: '${ .[0].n == ($n | tostring) }'}}
`), flow.DefaultLimits())
	handle := a.start()
	seen := map[string]bool{}
	for n := range rounds {
		listener := <-a.listeners
		require.False(t, seen[listener.Listener])
		seen[listener.Listener] = true
		a.wake(listener.Listener, 2*n+1, `{"type": "answer", "data": {"n": "another"}}`)
		a.wake(listener.Listener, 2*n+2, fmt.Sprintf(`{"type": "answer", "data": {"n": "%d"}}`, n))
	}
	output := a.result(handle)
	require.JSONEq(t, fmt.Sprintf(`{"n": "%d", "same": true}`, rounds-1), output)
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Len(t, a.emitted, rounds)
	require.GreaterOrEqual(t, len(a.left), rounds-1, "the last listener ends with the run")
	ids := map[string]bool{}
	for _, text := range a.emitted {
		var event struct{ ID, Source string }
		require.NoError(t, json.Unmarshal(text, &event))
		ids[event.ID] = true
		require.Equal(t, "/projects/alone/workflows/test/events-asking/runs/events-asking", event.Source)
	}
	require.Len(t, ids, rounds)
}
