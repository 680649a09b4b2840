package engine

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

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// frontend is a fake Temporal client that records requests and returns err.
type frontend struct {
	client.Client

	err       error
	requested []any
	until     time.Duration // the time until the request's deadline
}

func (f *frontend) WorkflowService() workflowservice.WorkflowServiceClient { return service{f: f} }

// service is the gRPC service below the SDK client.
type service struct {
	workflowservice.WorkflowServiceClient

	f *frontend
}

func (f *frontend) record(ctx context.Context, request any) error {
	f.requested = append(f.requested, request)
	if deadline, bounded := ctx.Deadline(); bounded {
		f.until = time.Until(deadline)
	}
	return f.err
}

func (s service) RequestCancelWorkflowExecution(
	ctx context.Context, r *workflowservice.RequestCancelWorkflowExecutionRequest, _ ...grpc.CallOption,
) (*workflowservice.RequestCancelWorkflowExecutionResponse, error) {
	return nil, s.f.record(ctx, r)
}

func (s service) TerminateWorkflowExecution(
	ctx context.Context, r *workflowservice.TerminateWorkflowExecutionRequest, _ ...grpc.CallOption,
) (*workflowservice.TerminateWorkflowExecutionResponse, error) {
	return nil, s.f.record(ctx, r)
}

// signal holds the arguments of a signal.
type signal struct {
	workflowID, executionID, name string
	arg                           any
}

func (f *frontend) SignalWorkflow(ctx context.Context, workflowID, executionID, name string, arg any) error {
	return f.record(ctx, signal{workflowID, executionID, name, arg})
}

func (f *frontend) requests(absent error) *requests {
	return newRequests(requestOptions{
		Client: func() (client.Client, error) {
			return f, nil
		}, Absent: func(context.Context, string) error { return absent },
		Address: "here:7233", Namespace: "ns", Identity: "server-1",
	})
}

func theRun() run.Run { return run.Run{ID: "r1", ExecutionID: "x1"} }

// all returns every request by its name in error messages.
func all(q *requests) map[string]func(context.Context) error {
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
	first, again := f.requested[0].(*workflowservice.RequestCancelWorkflowExecutionRequest),
		f.requested[1].(*workflowservice.RequestCancelWorkflowExecutionRequest)
	require.Equal(t, []string{"ns", contract.WorkflowID("r1"), "", "server-1", "wrong customer"}, []string{
		first.GetNamespace(), first.GetWorkflowExecution().GetWorkflowId(), first.GetWorkflowExecution().GetRunId(),
		first.GetIdentity(), first.GetReason(),
	}, "the newest execution")
	require.NotEmpty(t, first.GetRequestId())
	require.NotEqual(t, first.GetRequestId(), again.GetRequestId(), "each request has its own ID")
}

func TestTerminateCarriesTheActor(t *testing.T) {
	t.Parallel()
	f := &frontend{}
	ada := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindToken, Name: "ada"})
	for ctx, actor := range map[context.Context]string{ada: "ada", t.Context(): auth.System().Name} {
		require.NoError(t, f.requests(nil).Terminate(ctx, theRun(), "runaway"))
		asked := f.requested[len(f.requested)-1].(*workflowservice.TerminateWorkflowExecutionRequest)
		require.Equal(t, []string{"ns", contract.WorkflowID("r1"), "", "runaway"}, []string{
			asked.GetNamespace(), asked.GetWorkflowExecution().GetWorkflowId(), asked.GetWorkflowExecution().GetRunId(),
			asked.GetReason(),
		})
		name, ok := terminator(asked.GetIdentity())
		require.True(t, ok)
		require.Equal(t, actor, name)
	}
	for _, identity := range []string{"", "temporal-cli:ada@host", "ada"} {
		_, ok := terminator(identity)
		require.False(t, ok, identity)
	}
}

func TestControlIsASignal(t *testing.T) {
	t.Parallel()
	f := &frontend{}
	require.NoError(t, f.requests(nil).Control(t.Context(), theRun(), "pause", "for later"))
	require.Equal(t, []any{signal{
		contract.WorkflowID("r1"), "", contract.ControlSignal, flow.Control{Op: "pause", Reason: "for later"}}}, f.requested)
}

func TestRequestsHaveATimeLimit(t *testing.T) {
	t.Parallel()
	f := &frontend{}
	for what, send := range all(f.requests(nil)) {
		f.until = 0
		require.NoError(t, send(t.Context()))
		require.InDelta(t, 10*time.Second, f.until, float64(time.Second), what)
	}
}

func TestRequestsWithoutAnOpenExecution(t *testing.T) {
	t.Parallel()
	for _, absent := range []error{run.ErrNotKnown, run.ErrClosed, errors.New("the description was not answered")} {
		f := &frontend{err: serviceerror.NewNotFound("workflow execution already completed")}
		for what, send := range all(f.requests(absent)) {
			require.Equal(t, absent, send(t.Context()), "%s: the error of Absent", what)
		}
	}
}

func TestRequestsThatTemporalRejects(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{
		serviceerror.NewUnavailable("busy"), context.DeadlineExceeded, serviceerror.NewPermissionDenied("no", ""),
		serviceerror.NewInvalidArgument("too long"),
	} {
		f := &frontend{err: refusal}
		for what, send := range all(f.requests(run.ErrNotKnown)) {
			err := send(t.Context())
			require.ErrorIs(t, err, refusal)
			got, ok := apperror.From(err)
			require.True(t, ok)
			require.Equal(t, []any{apperror.Unavailable, apperror.EngineUnavailable, 5 * time.Second},
				[]any{got.Class, got.Reason, got.RetryAfter})
			require.ErrorContains(t, err, "temporal did not accept the "+what+" of run r1; try again")
		}
	}
}

func TestRequestsWithoutAConnection(t *testing.T) {
	t.Parallel()
	away := apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is down")
	q := newRequests(requestOptions{Client: func() (client.Client, error) { return nil, away }})
	for what, send := range all(q) {
		require.ErrorIs(t, send(t.Context()), away, what)
	}
}
