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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func TestStartFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		err    error
		class  apperror.Class // zero: the outcome is unknown
		reason string
		retry  bool
	}{
		{"invalid", serviceerror.NewInvalidArgument("blob too large"), apperror.Refused, apperror.EngineRefused, false},
		{"denied", serviceerror.NewPermissionDenied("no", "role"), apperror.Refused, apperror.EngineRefused, false},
		{"no namespace", serviceerror.NewNamespaceNotFound("ns"), apperror.Unavailable, apperror.EngineUnavailable, true},
		{"exhausted", serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "rps"),
			apperror.Exhausted, apperror.EngineRefused, true},
		{"wrapped", fmt.Errorf("start: %w", serviceerror.NewInvalidArgument("x")), apperror.Refused, apperror.EngineRefused,
			false},
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
			f, ok := apperror.From(err)
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
	closed := noon().Add(time.Hour)
	history := &historypb.History{Events: []*historypb.HistoryEvent{{EventTime: timestamppb.New(noon())}, {
		EventTime: timestamppb.New(closed),
		Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{
				Identity: "ada", Reason: "runaway"},
		},
	}}}
	outside := map[enumspb.EventType]run.Error{
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: {
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Terminated", Instance: "/",
			Detail: `the execution was terminated in Temporal by "ada": runaway`,
		},
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: {
			Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out", Instance: "/",
			Detail: "the execution timed out in Temporal",
		},
	}
	statuses := map[enumspb.EventType]run.Status{
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: run.Terminated,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:  run.TimedOut,
	}
	for number, name := range enumspb.EventType_name {
		last := history.GetEvents()[1]
		last.EventType = enumspb.EventType(number)
		state := closedFromOutside(history)
		problem, ended := outside[last.GetEventType()]
		if !ended {
			require.Nil(t, state, name)
			continue
		}
		require.Equal(t, &run.State{
			Status: statuses[last.GetEventType()], Since: closed, StartedAt: noon(), EndedAt: closed, Error: &problem,
		}, state, name)
	}
}
