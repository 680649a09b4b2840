package flow_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// fakeFunctions executes Go functions and records them.
type fakeFunctions struct {
	requests []flow.FunctionRequest
	queues   []string
	execute  func(n int) (flow.FunctionResult, error)
}

func (f *fakeFunctions) register(b *testRun) {
	b.env.RegisterActivityWithOptions(func(ctx context.Context, r flow.FunctionRequest) (flow.FunctionResult, error) {
		b.mu.Lock()
		f.requests, f.queues = append(f.requests, r), append(f.queues, activity.GetInfo(ctx).TaskQueue)
		n := len(f.requests)
		b.mu.Unlock()
		return f.execute(n)
	}, activity.RegisterOptions{Name: flow.FunctionActivity})
}

const price = `{call: go, with: {program: pricing, function: price, version: 1.0.0}`

func TestGoFunctionIsExecutedByItsProgram(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{p: `+price+`, timeout: {after: {seconds: 30}}}}]`, `{"n": 5}`)
	f := &fakeFunctions{execute: func(int) (flow.FunctionResult, error) {
		return flow.FunctionResult{Output: json.RawMessage(`{"amount":7}`)}, nil
	}}
	b.began = func() { f.register(b) }
	b.completes(`{"amount": 7}`)
	require.Len(t, f.requests, 1)
	r := f.requests[0]
	require.JSONEq(t, `{"n": 5}`, string(r.Input))
	require.Equal(t, "pricing price 1.0.0", r.Program+" "+r.Function+" "+r.Version)
	require.Equal(t, 32*time.Second, r.Timeout)
	require.Equal(t, []string{"signalbox.function-p/pricing"}, f.queues)
}

// A function that a process does not have was not executed, so another process may have it.
func TestMissingGoFunctionIsAskedForAgain(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{p: `+price+`}}]`, `{}`)
	f := &fakeFunctions{execute: func(n int) (flow.FunctionResult, error) {
		if n < 3 {
			return flow.FunctionResult{}, temporal.NewApplicationError("no such function", flow.FunctionMissing)
		}
		return flow.FunctionResult{Output: json.RawMessage(`7`)}, nil
	}}
	b.began = func() { f.register(b) }
	b.completes(`7`)
	require.Len(t, f.requests, 3)
}

// A lost program: only a function that is idempotent, or that the task allows to repeat, is executed again.
func TestLostProgramOfAGoFunction(t *testing.T) {
	t.Parallel()
	for task, want := range map[string]struct {
		output string
		times  int
	}{
		price + `}`: {`"Outcome unknown"`, 1},
		price + `, metadata: {signalbox.repeat: allowed}}`:                                                                   {`"third"`, 3},
		`{call: go, with: {program: p, function: f, version: 1.0.0, idempotent: true}}`:                                      {`"third"`, 3},
		`{call: go, with: {program: p, function: f, version: 1.0.0, idempotent: true}, metadata: {signalbox.repeat: never}}`: {`"Outcome unknown"`, 1},
	} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, `do:
  - p:
      try: [{q: `+task+`}]
      catch: {as: e, do: [{s: {set: '${ $e.title }'}}]}`, `{}`)
			f := &fakeFunctions{execute: func(n int) (flow.FunctionResult, error) {
				if n < 3 {
					// the test environment repeats timeouts, which Temporal does not
					return flow.FunctionResult{}, flow.Interrupted("the program has stopped")
				}
				return flow.FunctionResult{Output: json.RawMessage(`"third"`)}, nil
			}}
			b.began = func() { f.register(b) }
			b.completes(want.output)
			require.Len(t, f.requests, want.times)
			if want.times > 1 {
				for _, step := range b.recorder.steps {
					if step.Task == "q" {
						require.Len(t, step.Attempts, 3)
					}
				}
			}
		})
	}
}

func TestErrorOfAGoFunctionIsThatOfTheTask(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do:
  - p:
      try: [{q: `+price+`}}]
      catch: {as: e, do: [{s: {set: '${ $e | {type, status, title, detail} }'}}]}`, `{}`)
	f := &fakeFunctions{execute: func(int) (flow.FunctionResult, error) {
		return flow.FunctionResult{}, flow.CallError(flow.CategoryAnswered,
			dsl.Error{Type: "https://example.com/sold-out", Status: 409, Title: "Sold out", Detail: "no more"}, nil)
	}}
	b.began = func() { f.register(b) }
	b.completes(`{"type": "https://example.com/sold-out", "status": 409, "title": "Sold out", "detail": "no more"}`)
}

func TestInputOfAGoFunctionThatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do:
  - p:
      try: [{q: {call: go, with: {program: p, function: f, version: 1.0.0, input: '${ "x" * 900000 }'}}}]
      catch: {as: e, do: [{s: {set: '${ $e.status }'}}]}`, `{}`)
	f := &fakeFunctions{}
	b.began = func() { f.register(b) }
	b.completes(`413`)
	require.Empty(t, f.requests)
}
