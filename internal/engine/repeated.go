package engine

import (
	"context"

	"github.com/jellydator/ttlcache/v3"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// maxRepeated is the number of executions that a [repeated] remembers.
const maxRepeated = 20_000

// repeated records the executions whose current workflow task was dispatched before: to a worker that was lost, or that
// failed it. No history contains the local activities of that try. It is safe for concurrent use.
type repeated struct {
	runs *ttlcache.Cache[string, struct{}]
}

// newRepeated returns one without executions.
func newRepeated() *repeated {
	return &repeated{ttlcache.New(ttlcache.WithCapacity[string, struct{}](maxRepeated))}
}

// Has reports whether the current workflow task of an execution was dispatched before.
func (r *repeated) Has(runID string) bool { return r.runs.Has(runID) }

// Intercept records the workflow tasks that arrive over a connection.
func (r *repeated) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		return err
	}
	switch reply := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		r.record(reply)
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		r.record(reply.GetWorkflowTask())
	}
	return nil
}

func (r *repeated) record(task *workflowservice.PollWorkflowTaskQueueResponse) {
	id := task.GetWorkflowExecution().GetRunId()
	switch {
	case id == "":
	case task.GetAttempt() <= 1:
		r.runs.Delete(id)
	default:
		r.runs.Set(id, struct{}{}, ttlcache.NoTTL)
	}
}
