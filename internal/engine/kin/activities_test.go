package kin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/kin"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

// household starts and cancels runs, or answers err.
type household struct {
	err     error
	started []child.Request
	ended   []string
}

func (h *household) Start(_ context.Context, req child.Request) (run.Run, error) {
	h.started = append(h.started, req)
	return run.Run{ID: "made"}, h.err
}

func (h *household) Cancel(_ context.Context, project, id, reason string) error {
	h.ended = append(h.ended, project+" "+id+": "+reason)
	return h.err
}

// registry registers activities in an environment for tests.
type registry struct {
	worker.ActivityRegistry

	env *testsuite.TestActivityEnvironment
}

func (r registry) RegisterActivityWithOptions(a any, o activity.RegisterOptions) {
	r.env.RegisterActivityWithOptions(a, o)
}

func (h *household) do(t *testing.T, name string, request any) (started flow.ChildStarted, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	kin.Register(registry{env: env}, h)
	value, err := env.ExecuteActivity(name, request)
	if err == nil && value.HasValue() {
		require.NoError(t, value.Get(&started))
	}
	return started, err
}

func TestChildrenAreStartedAndCanceled(t *testing.T) {
	t.Parallel()
	h := &household{}
	started, err := h.do(t, flow.ChildActivity, flow.ChildRequest{
		Project: "p", Parent: "parent", Path: "/do/0/a", Key: "k", Workflow: "shop/order", Version: "1.0.0", Input: []byte(`1`), Awaited: true,
	})
	require.NoError(t, err)
	require.Equal(t, "made", started.RunID)
	require.Equal(t, []child.Request{{
		Project: "p", Parent: "parent", Path: "/do/0/a", Key: "k", Workflow: "shop/order", Version: "1.0.0", Input: []byte(`1`), Awaited: true,
	}}, h.started)

	_, err = h.do(t, flow.CancelChildActivity, flow.CancelChildRequest{Project: "p", Parent: "parent", RunID: "made"})
	require.NoError(t, err)
	require.Equal(t, []string{"p made: run parent does not wait for it any more"}, h.ended)

	h.err = errors.New("the store is away")
	_, err = h.do(t, flow.CancelChildActivity, flow.CancelChildRequest{Project: "p", Parent: "parent", RunID: "made"})
	require.ErrorContains(t, err, "the store is away")
}

func TestRefusalsAreErrorsOfTheTask(t *testing.T) {
	t.Parallel()
	refusal := func(class fault.Class, reason string) error { return fault.New(class, reason, "because of %s", reason) }
	for name, tt := range map[string]struct {
		err    error
		kind   string // empty: tried again
		status int
		title  string
	}{
		"too deep":           {fmt.Errorf("%w: 8 above", child.ErrTooDeep), dsl.ErrorTypeRuntime, 508, "Too deep"},
		"input too large":    {refusal(fault.Exhausted, fault.InputTooLarge), dsl.ErrorTypeValidation, 413, "Input too large"},
		"input refused":      {refusal(fault.Invalid, fault.InvalidInput), dsl.ErrorTypeValidation, 400, "Input refused"},
		"no such workflow":   {refusal(fault.NotFound, fault.WorkflowNotFound), dsl.ErrorTypeConfiguration, 404, "Not found"},
		"paused":             {refusal(fault.Refused, fault.WorkflowPaused), dsl.ErrorTypeConfiguration, 409, "Workflow paused"},
		"refused":            {refusal(fault.Refused, fault.EngineRefused), dsl.ErrorTypeRuntime, 500, "Not started"},
		"temporal is away":   {refusal(fault.Unavailable, fault.EngineUnavailable), "", 0, ""},
		"the queue is full":  {refusal(fault.Exhausted, fault.QueueFull), "", 0, ""},
		"workers differ":     {refusal(fault.Refused, fault.ContractMismatch), "", 0, ""},
		"the store is away":  {errors.New("connection refused"), "", 0, ""},
		"nobody knows":       {run.ErrUnknownOutcome, "", 0, ""},
		"the caller is slow": {context.DeadlineExceeded, "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &household{err: tt.err}
			_, err := h.do(t, flow.ChildActivity, flow.ChildRequest{Project: "p"})
			require.Error(t, err)
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			if tt.kind == "" {
				require.False(t, app.NonRetryable(), "it is tried again")
				return
			}
			require.True(t, app.NonRetryable())
			var failure flow.CallFailure
			require.NoError(t, app.Details(&failure))
			problem := failure.Error
			require.Equal(t, []any{tt.kind, tt.status, tt.title}, []any{problem.Type, problem.Status, problem.Title})
			if f, ok := fault.From(tt.err); ok {
				require.Equal(t, f.Message, problem.Detail)
			}
		})
	}
}
