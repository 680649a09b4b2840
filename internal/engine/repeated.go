package engine

import (
	"context"
	"sync"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// maxRepeated is the number of executions that a [Repeated] remembers at least. It remembers at most twice as many.
const maxRepeated = 10_000

// Repeated records the executions whose current workflow task was dispatched before: to a worker that was lost, or that
// failed it. No history contains the local activities of that try. It is safe for concurrent use.
type Repeated struct {
	mu           sync.Mutex
	runs, before map[string]struct{}
}

// NewRepeated returns an empty Repeated.
func NewRepeated() *Repeated { return &Repeated{runs: map[string]struct{}{}} }

// Has reports whether the current workflow task of an execution was dispatched before.
func (r *Repeated) Has(runID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, now := r.runs[runID]
	_, before := r.before[runID]
	return now || before
}

// Intercept records the workflow tasks that arrive over a connection.
func (r *Repeated) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
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

func (r *Repeated) record(task *workflowservice.PollWorkflowTaskQueueResponse) {
	id := task.GetWorkflowExecution().GetRunId()
	if id == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if task.GetAttempt() <= 1 {
		delete(r.runs, id)
		delete(r.before, id)
		return
	}
	if len(r.runs) >= maxRepeated {
		r.runs, r.before = map[string]struct{}{}, r.runs
	}
	r.runs[id] = struct{}{}
}
