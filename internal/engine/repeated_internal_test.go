package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

func TestRepeatedWorkflowTasks(t *testing.T) {
	t.Parallel()
	r := newRepeated()
	of := func(run string, attempt int32) *workflowservice.PollWorkflowTaskQueueResponse {
		return &workflowservice.PollWorkflowTaskQueueResponse{
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "w", RunId: run}, Attempt: attempt,
		}
	}
	task := func(attempt int32) *workflowservice.PollWorkflowTaskQueueResponse { return of("r1", attempt) }
	receive := func(reply any, err error) {
		invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err }
		require.Equal(t, err, r.Intercept(t.Context(), "poll", nil, reply, nil, invoke))
	}
	receive(task(1), nil)
	require.False(t, r.Has("r1"))
	receive(&workflowservice.PollWorkflowTaskQueueResponse{}, nil)
	receive(task(2), errors.New("cut"))
	require.False(t, r.Has("r1"))
	receive(task(2), nil)
	require.True(t, r.Has("r1"))
	require.False(t, r.Has("r2"))
	receive(&workflowservice.RespondWorkflowTaskCompletedResponse{WorkflowTask: task(1)}, nil)
	require.False(t, r.Has("r1"), "the next workflow task is given out for the first time")

	// It drops old executions, and none of the last 10,000.
	for i := range 25_000 {
		receive(of(fmt.Sprint(i), 2), nil)
	}
	for i := 15_000; i < 25_000; i++ {
		require.True(t, r.Has(fmt.Sprint(i)), i)
	}
	require.False(t, r.Has("0"))
}
