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
	workflowpb "go.temporal.io/api/workflow/v1"
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
