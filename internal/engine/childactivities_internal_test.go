package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

// fakeChildren starts and cancels runs, or returns err.
type fakeChildren struct {
	err     error
	started []child.Request
	ended   []string
}

func (h *fakeChildren) Start(_ context.Context, req child.Request) (run.Run, error) {
	h.started = append(h.started, req)
	return run.Run{ID: "made"}, h.err
}

func (h *fakeChildren) Cancel(_ context.Context, project, id, reason string) error {
	h.ended = append(h.ended, project+" "+id+": "+reason)
	return h.err
}

// activityRegistry registers activities in an environment for tests.
type activityRegistry struct {
	worker.ActivityRegistry

	env *testsuite.TestActivityEnvironment
}

func (r activityRegistry) RegisterActivityWithOptions(a any, o activity.RegisterOptions) {
	r.env.RegisterActivityWithOptions(a, o)
}

func (h *fakeChildren) do(t *testing.T, name string, request any) (started flow.ChildStarted, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	registerChildActivities(activityRegistry{env: env}, h)
	value, err := env.ExecuteActivity(name, request)
	if err == nil && value.HasValue() {
		require.NoError(t, value.Get(&started))
	}
	return started, err
}

func TestChildrenAreStartedAndCanceled(t *testing.T) {
	t.Parallel()
	h := &fakeChildren{}
	started, err := h.do(t, flow.ChildActivity, flow.ChildRequest{
		Project: "p", Parent: "parent", Path: "/do/0/a", Key: "k", Workflow: "shop/order", Version: "1.0.0",
		Input: []byte(`1`), Awaited: true,
	})
	require.NoError(t, err)
	require.Equal(t, "made", started.RunID)
	require.Equal(t, []child.Request{{
		Project: "p", Parent: "parent", Path: "/do/0/a", Key: "k", Workflow: "shop/order", Version: "1.0.0",
		Input: []byte(`1`), Awaited: true,
	}}, h.started)

	_, err = h.do(t, flow.CancelChildActivity, flow.CancelChildRequest{Project: "p", Parent: "parent", RunID: "made"})
	require.NoError(t, err)
	require.Equal(t, []string{"p made: run parent no longer waits for it"}, h.ended)

	h.err = errors.New("the store is away")
	_, err = h.do(t, flow.CancelChildActivity, flow.CancelChildRequest{Project: "p", Parent: "parent", RunID: "made"})
	require.ErrorContains(t, err, "the store is away")
}

func TestRejectionsAreErrorsOfTheTask(t *testing.T) {
	t.Parallel()
	refusal := func(class apperror.Class, reason string) *apperror.Error {
		return apperror.New(class, reason, "because of %s", reason)
	}
	for name, tt := range map[string]struct {
		err    error
		kind   string // empty: retried by Temporal
		status int
		title  string
	}{
		"too many generations": {refusal(apperror.Refused, apperror.GenerationLimit), dsl.ErrorTypeRuntime, 508,
			"Too many generations"},
		"too deep": {fmt.Errorf("%w: 8 above", child.ErrTooDeep), dsl.ErrorTypeRuntime, 508, "Too deep"},
		"parent canceled": {fmt.Errorf("inserting: %w", run.ErrAncestorCanceled), interp.ErrorTypeChildCanceled, 409,
			"Child canceled"},
		"input too large": {refusal(apperror.Exhausted, apperror.InputTooLarge), dsl.ErrorTypeValidation, 413,
			"Input too large"},
		"input refused": {refusal(apperror.Invalid, apperror.InvalidInput), dsl.ErrorTypeValidation, 400,
			"Input refused"},
		"no such workflow": {refusal(apperror.NotFound, apperror.WorkflowNotFound), dsl.ErrorTypeConfiguration, 404,
			"Not found"},
		"paused": {refusal(apperror.Refused, apperror.WorkflowPaused), dsl.ErrorTypeConfiguration, 409,
			"Workflow paused"},
		"refused":            {refusal(apperror.Refused, apperror.EngineRefused), dsl.ErrorTypeRuntime, 500, "Not started"},
		"temporal is away":   {refusal(apperror.Unavailable, apperror.EngineUnavailable), "", 0, ""},
		"the queue is full":  {refusal(apperror.Exhausted, apperror.QueueFull).WithRetry(time.Second), "", 0, ""},
		"workers differ":     {refusal(apperror.Refused, apperror.ContractMismatch), "", 0, ""},
		"the store is away":  {errors.New("connection refused"), "", 0, ""},
		"unknown outcome":    {run.ErrUnknownOutcome, "", 0, ""},
		"the caller is slow": {context.DeadlineExceeded, "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &fakeChildren{err: tt.err}
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
			runError := failure.Error
			require.Equal(t, []any{tt.kind, tt.status, tt.title}, []any{runError.Type, runError.Status, runError.Title})
			if f, ok := apperror.From(tt.err); ok {
				require.Equal(t, f.Message, runError.Detail)
			}
		})
	}
}
