package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/internal/engine"
)

// server answers polls with tasks of one run, and counts the reports that reach it.
type server struct {
	guard *engine.AttemptGuard
	now   time.Time
	costs bool

	attempt int32
	failed  int
}

func newServer() *server {
	s := &server{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), costs: true}
	s.guard = engine.NewAttemptGuard(engine.AttemptGuardOptions{
		Now: func() time.Time {
			return s.now
		}, Expensive: func(*workflowservice.RespondWorkflowTaskFailedRequest) bool { return s.costs },
	})
	return s
}

func (s *server) call(t *testing.T, req, reply any) {
	t.Helper()
	require.NoError(t, s.guard.Intercept(t.Context(), "m", req, reply, nil,
		func(_ context.Context, _ string, req, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			switch req.(type) {
			case *workflowservice.PollWorkflowTaskQueueRequest:
				s.attempt++
				into, ok := reply.(*workflowservice.PollWorkflowTaskQueueResponse)
				if !ok {
					return errors.New("not a poll's reply")
				}
				into.TaskToken, into.Attempt = []byte{byte(s.attempt)}, s.attempt
				into.WorkflowExecution = &commonpb.WorkflowExecution{WorkflowId: "r1", RunId: "x"}
			case *workflowservice.RespondWorkflowTaskFailedRequest:
				s.failed++
			}
			return nil
		}))
}

// poll returns the task's token and the attempt number that the SDK receives. The token is nil if the poll found no
// task.
func (s *server) poll(t *testing.T) ([]byte, int32) {
	t.Helper()
	var task workflowservice.PollWorkflowTaskQueueResponse
	s.call(t, &workflowservice.PollWorkflowTaskQueueRequest{}, &task)
	return task.GetTaskToken(), task.GetAttempt()
}

func (s *server) fail(t *testing.T, token []byte) {
	t.Helper()
	s.call(t, &workflowservice.RespondWorkflowTaskFailedRequest{TaskToken: token},
		&workflowservice.RespondWorkflowTaskFailedResponse{})
}

func TestOnlyTheFirstFailureReachesTemporal(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.costs = false
	for range 5 {
		token, attempt := s.poll(t)
		require.Equal(t, int32(1), attempt, "the SDK answers first attempts only")
		s.fail(t, token)
	}
	require.Equal(t, 1, s.failed)
}

func TestExpensiveFailuresWithholdTheRun(t *testing.T) {
	t.Parallel()
	s := newServer()
	tried := func() bool {
		token, _ := s.poll(t)
		if token != nil {
			s.fail(t, token)
		}
		return token != nil
	}
	require.True(t, tried())
	require.True(t, tried(), "the second attempt comes at once")
	for _, wait := range []time.Duration{
		30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		s.now = s.now.Add(wait - time.Second)
		require.False(t, tried(), wait)
		s.now = s.now.Add(time.Second)
		require.True(t, tried(), wait)
	}
	s.now = s.now.Add(5 * time.Minute)
	token, _ := s.poll(t)
	s.call(t, &workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: token},
		&workflowservice.RespondWorkflowTaskCompletedResponse{})
	require.True(t, tried(), "a success ends the delay")
	require.False(t, tried())

	s.now = s.now.Add(30 * time.Second)
	s.costs = false
	require.True(t, tried())
	require.True(t, tried(), "a failure that costs nothing keeps nothing away")
}
