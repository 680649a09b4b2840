package engine

import (
	"context"
	"sync"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// maxRepeated is of how many executions at least a [Repeated] remembers the last. It remembers at most twice as many.
const maxRepeated = 10_000

// Repeated knows the executions whose present workflow task was given out before: to a worker that was lost, or that failed it. What
// that try did in local activities is in no history. It is safe for concurrent use.
type Repeated struct {
	mu           sync.Mutex
	runs, before map[string]struct{}
}

// NewRepeated returns one that knows of no execution.
func NewRepeated() *Repeated { return &Repeated{runs: map[string]struct{}{}} }

// Has returns whether the present workflow task of an execution was given out before.
func (r *Repeated) Has(runID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, now := r.runs[runID]
	_, before := r.before[runID]
	return now || before
}

// Intercept watches the workflow tasks that come over a connection.
func (r *Repeated) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		return err
	}
	switch reply := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		r.note(reply)
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		r.note(reply.GetWorkflowTask())
	}
	return nil
}

func (r *Repeated) note(task *workflowservice.PollWorkflowTaskQueueResponse) {
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
