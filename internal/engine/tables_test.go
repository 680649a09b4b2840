package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func TestStartFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		err    error
		class  fault.Class // zero: the outcome is not known
		reason string
		retry  bool
	}{
		{"invalid", serviceerror.NewInvalidArgument("blob too large"), fault.Refused, fault.EngineRefused, false},
		{"denied", serviceerror.NewPermissionDenied("no", "role"), fault.Refused, fault.EngineRefused, false},
		{"no namespace", serviceerror.NewNamespaceNotFound("ns"), fault.Unavailable, fault.EngineUnavailable, true},
		{"exhausted", serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "rps"), fault.Exhausted, fault.EngineRefused, true},
		{"wrapped", fmt.Errorf("start: %w", serviceerror.NewInvalidArgument("x")), fault.Refused, fault.EngineRefused, false},
		{"unavailable", serviceerror.NewUnavailable("cut"), 0, "", false},
		{"deadline", serviceerror.NewDeadlineExceeded("late"), 0, "", false},
		{"canceled", serviceerror.NewCanceled("gone"), 0, "", false},
		{"internal", serviceerror.NewInternal("panic"), 0, "", false},
		{"the caller's deadline", context.DeadlineExceeded, 0, "", false},
		{"a plain status", status.Error(codes.Unknown, "?"), 0, "", false},
		{"anything", errors.New("anything"), 0, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := startFault(tt.err, "host:7233", "ns")
			require.ErrorIs(t, err, tt.err, "the cause is kept for the log")
			require.ErrorContains(t, err, "host:7233")
			f, ok := fault.From(err)
			require.Equal(t, tt.class == 0, errors.Is(err, run.ErrUnknownOutcome))
			require.Equal(t, tt.class != 0, ok)
			if ok {
				require.Equal(t, []any{tt.class, tt.reason, tt.retry}, []any{f.Class, f.Reason, f.RetryAfter > 0})
			}
		})
	}
}

func TestAway(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		serviceerror.NewUnavailable("cut"):         true,
		status.Error(codes.Unavailable, "refused"): true,
		serviceerror.NewNotFound("no such run"):    false,
		serviceerror.NewInternal("panic"):          false,
		context.Canceled:                           false,
	} {
		require.Equal(t, want, away(err), err)
	}
}

func TestClosedFromOutside(t *testing.T) {
	t.Parallel()
	history := &historypb.History{Events: []*historypb.HistoryEvent{{}, {
		Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Identity: "ada", Reason: "runaway"},
		},
	}}}
	closed := noon().Add(time.Hour)
	info := &workflowpb.WorkflowExecutionInfo{StartTime: timestamppb.New(noon()), CloseTime: timestamppb.New(closed)}
	outside := map[enumspb.WorkflowExecutionStatus]run.Problem{
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: {
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Terminated", Instance: "/", Detail: `the execution was terminated in Temporal by "ada": runaway`,
		},
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: {
			Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out", Instance: "/", Detail: "the execution timed out in Temporal",
		},
	}
	statuses := map[enumspb.WorkflowExecutionStatus]run.Status{
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: run.Terminated, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: run.TimedOut,
	}
	for number, name := range enumspb.WorkflowExecutionStatus_name {
		info.Status = enumspb.WorkflowExecutionStatus(number)
		state := closedFromOutside(info, history)
		problem, ended := outside[info.GetStatus()]
		if !ended {
			require.Nil(t, state, name)
			continue
		}
		require.Equal(t, &run.State{
			Status: statuses[info.GetStatus()], Since: closed, StartedAt: noon(), EndedAt: closed, Error: &problem,
		}, state, name)
	}
}

// poll lets a poll of a queue be answered, while it is held open what happens in between.
func poll(ctx context.Context, p *pollers, queue *taskqueuepb.TaskQueue, answer error, meanwhile ...func()) error {
	return p.intercept(ctx, "poll", &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: queue}, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			for _, fn := range meanwhile {
				fn()
			}
			return answer
		})
}

func TestPollers(t *testing.T) {
	t.Parallel()
	now := noon()
	p := newPollers(func() time.Time { return now })
	queue := &taskqueuepb.TaskQueue{Name: "q"}
	require.EqualError(t, p.check("q"), `task queue "q" is not polled yet`)

	require.NoError(t, poll(t.Context(), p, queue, nil, func() {
		require.NoError(t, p.check("q"), "a poll that Temporal holds open is one")
		require.Error(t, p.check("other"))
	}))
	now = now.Add(pollGrace)
	require.NoError(t, p.check("q"), "the next poll is about to be sent")
	now = now.Add(time.Millisecond)
	require.EqualError(t, p.check("q"), `task queue "q" has not been polled for 10s`)

	cut := errors.New("cut")
	require.ErrorIs(t, poll(t.Context(), p, queue, cut), cut)
	require.ErrorIs(t, p.check("q"), cut)
	require.ErrorContains(t, p.check("q"), `polling task queue "q"`)
	require.ErrorIs(t, poll(t.Context(), p, queue, cut, func() {
		require.ErrorIs(t, p.check("q"), cut, "a poll that is only being tried proves nothing yet")
		now = now.Add(pollGrace)
		require.NoError(t, p.check("q"), "one that has been held for so long does")
	}), cut)
}

func TestPollersForgetAFailureThatWasMended(t *testing.T) {
	t.Parallel()
	now := noon()
	p := newPollers(func() time.Time { return now })
	queue := &taskqueuepb.TaskQueue{Name: "q"}
	require.Error(t, poll(t.Context(), p, queue, errors.New("cut")))
	now = now.Add(time.Second)
	require.NoError(t, poll(t.Context(), p, queue, nil))
	require.NoError(t, p.check("q"))
}

func TestPollersThatAreStoppedHaveNotFailed(t *testing.T) {
	t.Parallel()
	now := noon()
	p := newPollers(func() time.Time { return now })
	queue := &taskqueuepb.TaskQueue{Name: "q"}
	require.NoError(t, poll(t.Context(), p, queue, nil))
	now = now.Add(time.Second)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, poll(stopped, p, queue, context.Canceled))
	require.NoError(t, p.check("q"), "a worker that stops polls no more, and that is all")
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	require.Error(t, poll(late, p, queue, context.DeadlineExceeded))
	require.ErrorIs(t, p.check("q"), context.DeadlineExceeded, "a poll that nobody answered has failed")
}

func TestPollersCountStickyQueuesByTheirOwn(t *testing.T) {
	t.Parallel()
	p := newPollers(noon)
	sticky := &taskqueuepb.TaskQueue{Name: "worker-1:abc", NormalName: "q", Kind: enumspb.TASK_QUEUE_KIND_STICKY}
	require.NoError(t, poll(t.Context(), p, sticky, nil))
	require.NoError(t, p.check("q"))
	require.Error(t, p.check("worker-1:abc"))
}

func TestPollersPassOtherCalls(t *testing.T) {
	t.Parallel()
	p := newPollers(noon)
	want := errors.New("as it is")
	err := p.intercept(t.Context(), "m", &workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}}, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return want })
	require.Equal(t, want, err)
	require.ErrorContains(t, p.check("q"), "not polled yet", "activities are another queue's pollers")
}
