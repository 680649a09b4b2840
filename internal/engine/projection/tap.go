package projection

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	accept func(queue string, update run.Update, at time.Time)
	now    func() time.Time
	wait   func(ctx context.Context, queue string, most time.Duration)
	unsure func(runID string)
	failed func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time)

	mu sync.Mutex
	// tasks are the workflow tasks in this process, by token, open the tokens by execution.
	tasks map[string]*task
	open  map[flow.Execution]string
	// records made by the task in progress of an execution.
	records map[flow.Execution]*run.Update
	// swept is when unanswered completions were last dropped.
	swept time.Time
}

type task struct {
	execution flow.Execution
	queue     string // of the execution, not of the process
	opened    time.Time
	// update is what the task made; set when its completion is first sent. sent is when that was last done.
	update *run.Update
	sent   time.Time
}

const (
	// holdMost bounds how long the completion of a workflow task is held back, and holdUntil the age of the task up to which it is:
	// Temporal gives a task to another worker after ten seconds.
	holdMost  = 2 * time.Second
	holdUntil = 5 * time.Second
	// holdPoll bounds how long a worker does not ask for a next task.
	holdPoll = 5 * time.Second
	// answeredWithin is how long after a completion was last sent its answer may still arrive: the SDK gives a request ten seconds and
	// repeats it every few seconds. A completion that is older is unanswered for good, and its records are dropped.
	answeredWithin = 20 * time.Second
)

// NewTap returns a tap that calls accept for every task that Temporal accepted and that changed something, with the task queue of its
// execution.
func NewTap(now func() time.Time, accept func(queue string, update run.Update, at time.Time)) *Tap {
	return &Tap{
		accept: accept, now: now, wait: func(context.Context, string, time.Duration) {}, unsure: func(string) {},
		tasks: map[string]*task{}, open: map[flow.Execution]string{}, records: map[flow.Execution]*run.Update{},
	}
}

// OnFailure has fn called for every workflow task that fails here, at the first attempt: the SDK lets later ones time out. It is
// called before the tap is used; fn must not block.
func (t *Tap) OnFailure(fn func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time)) {
	t.failed = fn
}

// HoldBack has wait called before a workflow task is completed and before a next one is asked for. It returns when there is room for
// more records of the task queue, or after the given time. It is called before the tap is used.
func (t *Tap) HoldBack(wait func(ctx context.Context, queue string, most time.Duration)) {
	t.wait = wait
}

// OnUnsure has fn called for every run of which Temporal may have accepted a workflow task that was completed here, and whose answer was
// lost: its records are dropped, so its row may be behind. It is called before the tap is used; fn must not block.
func (t *Tap) OnUnsure(fn func(runID string)) { t.unsure = fn }

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
	case *workflowservice.PollWorkflowTaskQueueRequest:
		queue := request.GetTaskQueue()
		t.wait(ctx, cmp.Or(queue.GetNormalName(), queue.GetName()), holdPoll) // the name of a sticky queue is one of the process
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		if queue, most := t.completing(string(request.GetTaskToken())); most > 0 {
			t.wait(ctx, queue, most)
		}
		err := invoke(ctx, method, req, reply, cc, opts...)
		switch {
		case err == nil:
			t.completed(string(request.GetTaskToken()))
			if response, ok := reply.(*workflowservice.RespondWorkflowTaskCompletedResponse); ok {
				t.opened(response.GetWorkflowTask())
			}
		case status.Code(err) == codes.NotFound:
			// Temporal has no such task any more: it accepted an earlier request whose answer was lost, or timed the task out.
			if task := t.forget(string(request.GetTaskToken())); task != nil && task.update != nil {
				t.unsure(task.update.RunID)
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
	now := t.now()
	t.tasks[token] = &task{execution: e, queue: response.GetWorkflowExecutionTaskQueue().GetName(), opened: now}
	t.open[e] = token
	if now.Sub(t.swept) > answeredWithin {
		t.swept = now
		t.dropUnanswered(now)
	}
}

// dropUnanswered drops the completions whose answers cannot arrive any more.
func (t *Tap) dropUnanswered(now time.Time) {
	for token, task := range t.tasks {
		if task.update != nil && !task.awaited(now) {
			t.drop(token, task)
			t.unsure(task.update.RunID)
		}
	}
}

// awaited reports whether the task has been completed here and Temporal's answer may still arrive.
func (t *task) awaited(now time.Time) bool {
	return t.update != nil && now.Sub(t.sent) < answeredWithin
}

// completing takes the task's records aside: the request is about to be sent, so it has made all of them. It returns the task queue, and
// for how long the request may be held back: only the first one is, and only while the task is young.
func (t *Tap) completing(token string) (queue string, most time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	task := t.tasks[token]
	if task == nil {
		return "", 0
	}
	task.sent = t.now()
	if task.update != nil {
		return "", 0
	}
	task.update = t.records[task.execution]
	delete(t.records, task.execution)
	return task.queue, min(holdMost, holdUntil-task.sent.Sub(task.opened))
}

// Holds reports whether a workflow task of a run has been completed here and Temporal's answer is on its way. An answer that was lost
// is not waited for: the row of such a run is behind, and is repaired.
func (t *Tap) Holds(runID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for _, held := range t.tasks {
		if held.awaited(now) && held.update.RunID == runID {
			return true
		}
	}
	return false
}

func (t *Tap) completed(token string) {
	task := t.forget(token)
	if task != nil && task.update != nil {
		t.accept(task.queue, *task.update, t.now())
	}
}

func (t *Tap) forget(token string) *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	task := t.tasks[token]
	if task == nil {
		return nil
	}
	t.drop(token, task)
	return task
}

// drop forgets a task. An execution's open token is the only one of its tokens that is known here.
func (t *Tap) drop(token string, task *task) {
	delete(t.tasks, token)
	delete(t.open, task.execution)
	delete(t.records, task.execution)
}
