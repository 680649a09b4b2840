package projection

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Tap collects the records of workflow tasks and passes them on once Temporal has accepted the task that made them.
//
// It sits at two places in one worker process. As the workflow's [flow.Sink] it takes the records of the task in
// progress. As an interceptor of the client it learns which execution a task token belongs to, and sees the answer
// to the task's completion: only then are the records facts.
//
// A task that is refused, or whose answer is lost, is interpreted again from the beginning by whoever gets it next; its
// records are dropped here and made again there.
type Tap struct {
	accept func(update run.Update, at time.Time)
	now    func() time.Time
	failed func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time)

	mu sync.Mutex
	// tasks are the workflow tasks in this process, by token, open the tokens by execution.
	tasks map[string]*task
	open  map[flow.Execution]string
	// records made by the task in progress of an execution.
	records map[flow.Execution]*run.Update
}

type task struct {
	execution flow.Execution
	// update is what the task made; set when its completion is first sent.
	update *run.Update
}

// NewTap returns a tap that calls accept for every task that Temporal accepted and that changed something.
func NewTap(now func() time.Time, accept func(update run.Update, at time.Time)) *Tap {
	return &Tap{
		accept: accept, now: now,
		tasks: map[string]*task{}, open: map[flow.Execution]string{}, records: map[flow.Execution]*run.Update{},
	}
}

// OnFailure has fn called for every workflow task that fails here, at the first attempt: the SDK lets later ones time out. It is
// called before the tap is used; fn must not block.
func (t *Tap) OnFailure(fn func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time)) {
	t.failed = fn
}

var _ flow.Sink = (*Tap)(nil)

// Records implements [flow.Sink].
func (t *Tap) Records(e flow.Execution, position int64, r *interp.RunRecord, steps []interp.StepRecord, sensitive []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.records[e]
	if u == nil {
		u = &run.Update{RunID: e.WorkflowID, ExecutionID: e.RunID}
		t.records[e] = u
	}
	u.Sensitive = sensitive
	add(u, position, r, steps)
}

// Intercept is the client's unary interceptor.
func (t *Tap) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	switch request := req.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		t.completing(string(request.GetTaskToken()))
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil {
			t.completed(string(request.GetTaskToken()))
			if response, ok := reply.(*workflowservice.RespondWorkflowTaskCompletedResponse); ok {
				t.opened(response.GetWorkflowTask())
			}
		}
		return err
	case *workflowservice.RespondWorkflowTaskFailedRequest:
		if task := t.forget(string(request.GetTaskToken())); task != nil && t.failed != nil {
			t.failed(task.execution.WorkflowID, request, t.now())
		}
	case *workflowservice.RespondQueryTaskCompletedRequest:
		t.forget(string(request.GetTaskToken()))
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		return err
	}
	switch response := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		t.opened(response)
	case *workflowservice.StartWorkflowExecutionResponse:
		t.opened(response.GetEagerWorkflowTask())
	}
	return nil
}

// opened notes a new workflow task. Whatever is left of an earlier one of the same execution was never accepted as far
// as this process knows, and will be made again.
func (t *Tap) opened(response *workflowservice.PollWorkflowTaskQueueResponse) {
	token := string(response.GetTaskToken())
	if token == "" {
		return
	}
	e := flow.Execution{
		WorkflowID: response.GetWorkflowExecution().GetWorkflowId(), RunID: response.GetWorkflowExecution().GetRunId(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.open[e]; ok {
		delete(t.tasks, before)
	}
	delete(t.records, e)
	t.tasks[token] = &task{execution: e}
	t.open[e] = token
}

// completing takes the task's records aside: the request is about to be sent, so it has made all of them.
func (t *Tap) completing(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if task := t.tasks[token]; task != nil && task.update == nil {
		task.update = t.records[task.execution]
		delete(t.records, task.execution)
	}
}

func (t *Tap) completed(token string) {
	task := t.forget(token)
	if task != nil && task.update != nil {
		t.accept(*task.update, t.now())
	}
}

func (t *Tap) forget(token string) *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	task := t.tasks[token]
	if task == nil {
		return nil
	}
	// An execution's open token is the only one of its tokens that is known here.
	delete(t.tasks, token)
	delete(t.open, task.execution)
	delete(t.records, task.execution)
	return task
}
