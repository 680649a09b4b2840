package steer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/steer"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// frontend is a Temporal that keeps what it is asked, and answers err.
type frontend struct {
	client.Client

	err   error
	asked []any
	until time.Duration // the caller's patience
}

func (f *frontend) WorkflowService() workflowservice.WorkflowServiceClient { return service{f: f} }

// service is the part of it below the SDK.
type service struct {
	workflowservice.WorkflowServiceClient

	f *frontend
}

func (f *frontend) take(ctx context.Context, request any) error {
	f.asked = append(f.asked, request)
	if deadline, bounded := ctx.Deadline(); bounded {
		f.until = time.Until(deadline)
	}
	return f.err
}

func (s service) RequestCancelWorkflowExecution(
	ctx context.Context, r *workflowservice.RequestCancelWorkflowExecutionRequest, _ ...grpc.CallOption,
) (*workflowservice.RequestCancelWorkflowExecutionResponse, error) {
	return nil, s.f.take(ctx, r)
}

func (s service) TerminateWorkflowExecution(
	ctx context.Context, r *workflowservice.TerminateWorkflowExecutionRequest, _ ...grpc.CallOption,
) (*workflowservice.TerminateWorkflowExecutionResponse, error) {
	return nil, s.f.take(ctx, r)
}

// signal is what a signal was sent with.
type signal struct {
	workflowID, executionID, name string
	arg                           any
}

func (f *frontend) SignalWorkflow(ctx context.Context, workflowID, executionID, name string, arg any) error {
	return f.take(ctx, signal{workflowID, executionID, name, arg})
}

func (f *frontend) requests(absent error) *steer.Requests {
	return steer.New(steer.Options{
		Client: func() (client.Client, error) { return f, nil }, Absent: func(context.Context, string) error { return absent },
		Address: "here:7233", Namespace: "ns", Identity: "server-1",
	})
}

func theRun() run.Run { return run.Run{ID: "r1", ExecutionID: "x1"} }

// all are the requests that there are.
func all(q *steer.Requests) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"cancellation":     func(ctx context.Context) error { return q.Cancel(ctx, theRun(), "why") },
		"termination":      func(ctx context.Context) error { return q.Terminate(ctx, theRun(), "why") },
		"request to pause": func(ctx context.Context) error { return q.Control(ctx, theRun(), "pause", "why") },
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	f := &frontend{}
	for range 2 {
		require.NoError(t, f.requests(nil).Cancel(t.Context(), theRun(), "wrong customer"))
	}
	first, again := f.asked[0].(*workflowservice.RequestCancelWorkflowExecutionRequest), f.asked[1].(*workflowservice.RequestCancelWorkflowExecutionRequest)
	require.Equal(t, []string{"ns", contract.WorkflowID("r1"), "", "server-1", "wrong customer"}, []string{
		first.GetNamespace(), first.GetWorkflowExecution().GetWorkflowId(), first.GetWorkflowExecution().GetRunId(), first.GetIdentity(), first.GetReason(),
	}, "whichever execution is the newest")
	require.NotEmpty(t, first.GetRequestId())
	require.NotEqual(t, first.GetRequestId(), again.GetRequestId(), "each is a request of its own")
}

func TestTerminateTellsWhoseWishItWas(t *testing.T) {
	t.Parallel()
	f := &frontend{}
	ada := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindToken, Name: "ada"})
	for ctx, who := range map[context.Context]string{ada: "ada", t.Context(): auth.System().Name} {
		require.NoError(t, f.requests(nil).Terminate(ctx, theRun(), "runaway"))
		asked := f.asked[len(f.asked)-1].(*workflowservice.TerminateWorkflowExecutionRequest)
		require.Equal(t, []string{"ns", contract.WorkflowID("r1"), "", "runaway"}, []string{
			asked.GetNamespace(), asked.GetWorkflowExecution().GetWorkflowId(), asked.GetWorkflowExecution().GetRunId(), asked.GetReason(),
		})
		name, ours := steer.Terminator(asked.GetIdentity())
		require.True(t, ours)
		require.Equal(t, who, name)
	}
	for _, identity := range []string{"", "temporal-cli:ada@host", "ada"} {
		_, ours := steer.Terminator(identity)
		require.False(t, ours, identity)
	}
}

func TestControlIsASignal(t *testing.T) {
	t.Parallel()
	f := &frontend{}
	require.NoError(t, f.requests(nil).Control(t.Context(), theRun(), "pause", "for later"))
	require.Equal(t, []any{signal{contract.WorkflowID("r1"), "", contract.ControlSignal, flow.Control{Op: "pause", Reason: "for later"}}}, f.asked)
}

func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	f := &frontend{}
	for what, ask := range all(f.requests(nil)) {
		f.until = 0
		require.NoError(t, ask(t.Context()))
		require.InDelta(t, 10*time.Second, f.until, float64(time.Second), what)
	}
}

func TestWhatHasNoOpenExecution(t *testing.T) {
	t.Parallel()
	for _, absent := range []error{run.ErrNotKnown, run.ErrClosed, errors.New("the description was not answered")} {
		f := &frontend{err: serviceerror.NewNotFound("workflow execution already completed")}
		for what, ask := range all(f.requests(absent)) {
			require.Equal(t, absent, ask(t.Context()), "%s: it is asked which of the two it is", what)
		}
	}
}

func TestRequestsThatTemporalDoesNotTake(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{
		serviceerror.NewUnavailable("busy"), context.DeadlineExceeded, serviceerror.NewPermissionDenied("no", ""), serviceerror.NewInvalidArgument("too long"),
	} {
		f := &frontend{err: refusal}
		for what, ask := range all(f.requests(run.ErrNotKnown)) {
			err := ask(t.Context())
			require.ErrorIs(t, err, refusal)
			got, ok := fault.From(err)
			require.True(t, ok)
			require.Equal(t, []any{fault.Unavailable, fault.EngineUnavailable, 5 * time.Second}, []any{got.Class, got.Reason, got.RetryAfter})
			require.ErrorContains(t, err, "temporal at here:7233 did not take the "+what+" of run r1; try again")
		}
	}
}

func TestWithoutTemporalNothingIsSent(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, fault.EngineUnavailable, "temporal is down")
	q := steer.New(steer.Options{Client: func() (client.Client, error) { return nil, away }})
	for what, ask := range all(q) {
		require.ErrorIs(t, ask(t.Context()), away, what)
	}
}
