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

// Tap collects the records of workflow tasks and passes them on once Temporal has accepted their task.
//
// It has two roles in one worker process. As the workflow's [flow.Sink] it receives the records of the task in
// progress. As an interceptor of the client it learns the execution of each task token, and observes the response to
// the task's completion: only then are the records valid.
//
// If a task is rejected, or its response is lost, the next worker interprets it again from the beginning. Its records
// are dropped here and created again there.
type Tap struct {
	accept func(queue string, update run.Update, at time.Time)
	now    func() time.Time
	wait   func(ctx context.Context, queue string, most time.Duration)
	unsure func(runID string)
	ended  func(ctx context.Context, queue string, steps map[interp.Status]int64)
	failed func(workflowID string, failure *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time)

	mu sync.Mutex
	// tasks holds the workflow tasks in this process by token, open the tokens by execution.
	tasks map[string]*task
	open  map[flow.Execution]string
	// records of the task in progress of an execution.
	records map[flow.Execution]*records
	// swept is the time when unanswered completions were last dropped.
	swept time.Time
}

// records are those of a workflow task: the update, and the number of steps that ended in the task itself, without
// those of earlier tasks, whose records a replay creates again.
type records struct {
	run.Update

	ended map[interp.Status]int64
}

type task struct {
	execution flow.Execution
	queue     string // of the execution, not of the process
	opened    time.Time
	// replayed is the position in the history of the execution up to which a replay creates the records of earlier tasks.
	replayed int64
	// update holds the records of the task. It is set when its completion is first sent. sent is the time of the last
	// try.
	update *records
	sent   time.Time
	// reporting reports the run as started while its first task takes long; nil for other tasks.
	reporting *time.Timer
}

const (
	// startedAfter is the time after which the run of a first workflow task that is still in this process is reported as
	// started. Most first tasks end sooner, and their records report it without a write of their own.
	startedAfter = 300 * time.Millisecond
	// startedPosition is the position of that report. The records of every workflow task are beyond it: the first task
	// of an execution starts at the third event of its history.
	startedPosition = 1
	// maxHold bounds the time for which the completion of a workflow task is held back, and holdUntil the age of the
	// task up to which it is: Temporal gives a task to another worker after ten seconds.
	maxHold   = 2 * time.Second
	holdUntil = 5 * time.Second
	// holdPoll bounds the time for which a worker does not poll for a next task.
	holdPoll = 5 * time.Second
	// answeredWithin is the time after the last try of a completion within which its response may still arrive: the SDK
	// gives a request ten seconds and repeats it every few seconds. An older completion stays unanswered, and its
	// records are dropped.
	answeredWithin = 20 * time.Second
)

// NewTap returns a tap that calls accept for every accepted task with changes, with the task queue of its execution.
func NewTap(now func() time.Time, accept func(queue string, update run.Update, at time.Time)) *Tap {
	return &Tap{
		accept: accept, now: now, wait: func(context.Context, string, time.Duration) {}, unsure: func(string) {},
		ended: func(context.Context, string, map[interp.Status]int64) {},
		tasks: map[string]*task{}, open: map[flow.Execution]string{}, records: map[flow.Execution]*records{},
	}
}

// OnFailure registers fn for every workflow task that fails here, at the first attempt: the SDK lets later ones time
// out. It must be called before the tap is used. fn must not block.
func (t *Tap) OnFailure(fn func(workflowID string, failure *workflowservice.RespondWorkflowTaskFailedRequest,
	at time.Time)) {
	t.failed = fn
}

// HoldBack registers wait, which is called before a workflow task is completed and before the next one is polled. It
// must return when there is room for more records of the task queue, or after the given time. HoldBack must be called
// before the tap is used.
func (t *Tap) HoldBack(wait func(ctx context.Context, queue string, most time.Duration)) {
	t.wait = wait
}

// OnUnsure registers fn for every run with a workflow task that was completed here and may have been accepted, but
// without a response. The records of the task are dropped, so the run's row may be behind. OnUnsure must be called
// before the tap is used. fn must not block.
func (t *Tap) OnUnsure(fn func(runID string)) { t.unsure = fn }

// OnEnded registers fn for the steps that have ended in an accepted workflow task, with the task queue of the
// execution. It must be called before the tap is used. fn must not block.
func (t *Tap) OnEnded(fn func(ctx context.Context, queue string, steps map[interp.Status]int64)) {
	t.ended = fn
}

var _ flow.Sink = (*Tap)(nil)

// Records implements [flow.Sink].
func (t *Tap) Records(e flow.Execution, position int64, r *interp.RunRecord, steps []interp.StepRecord,
	logs []flow.ProgramLog, sensitive []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.records[e]
	if u == nil {
		u = &records{Update: run.Update{RunID: e.WorkflowID, ExecutionID: e.RunID}, ended: map[interp.Status]int64{}}
		t.records[e] = u
	}
	u.Sensitive = sensitive
	add(&u.Update, position, r, steps, logs)
	if task := t.tasks[t.open[e]]; task != nil && position&^chainMask > task.replayed {
		u.count(steps)
	}
}

// count counts the steps that have ended. The last record of a step is the one in which it has.
func (u *records) count(steps []interp.StepRecord) {
	for i := range steps {
		if steps[i].EndedAt != nil {
			u.ended[steps[i].Status]++
		}
	}
}

// Intercept is the client's unary interceptor.
func (t *Tap) Intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	switch request := req.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		queue := request.GetTaskQueue()
		t.wait(ctx, cmp.Or(queue.GetNormalName(), queue.GetName()), holdPoll) // a sticky queue has a name of the process
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		if queue, most := t.completing(string(request.GetTaskToken())); most > 0 {
			t.wait(ctx, queue, most)
		}
		err := invoke(ctx, method, req, reply, cc, opts...)
		switch {
		case err == nil:
			t.completed(ctx, string(request.GetTaskToken()))
			if response, ok := reply.(*workflowservice.RespondWorkflowTaskCompletedResponse); ok {
				t.opened(response.GetWorkflowTask())
			}
		case status.Code(err) == codes.NotFound:
			// The task no longer exists in Temporal: it accepted an earlier request and its response was lost, or timed
			// the task out.
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

// opened records a new workflow task. The records of an earlier task of the same execution were never accepted as far
// as this process can determine, and will be created again.
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
		t.drop(before, t.tasks[before])
	}
	delete(t.records, e)
	now := t.now()
	opened := &task{
		execution: e, queue: response.GetWorkflowExecutionTaskQueue().GetName(), opened: now,
		replayed: response.GetPreviousStartedEventId(),
	}
	if opened.replayed == 0 {
		started := now
		if at := response.GetStartedTime(); at != nil {
			started = at.AsTime() // as in the records of the task
		}
		opened.reporting = time.AfterFunc(startedAfter, func() { t.reportStarted(token, started) })
	}
	t.tasks[token] = opened
	t.open[e] = token
	if now.Sub(t.swept) > answeredWithin {
		t.swept = now
		t.dropUnanswered(now)
	}
}

// reportStarted reports that a run has started: Temporal gave its first workflow task to this process, which still has
// it. The report holds nothing that depends on the task's acceptance, so the records of the next try cannot contradict
// it. Without it, a run would be queued until the end of its first task: seconds, if the task makes many calls or waits
// for processor time. In a later execution of a run's chain it has no effect, because the row is ahead of it.
func (t *Tap) reportStarted(token string, started time.Time) {
	t.mu.Lock()
	task := t.tasks[token]
	waits := task != nil && task.update == nil
	t.mu.Unlock()
	if !waits {
		return
	}
	t.accept(task.queue, run.Update{
		RunID: task.execution.WorkflowID, ExecutionID: task.execution.RunID, Position: startedPosition,
		State: &run.State{Status: run.Running, Since: started, StartedAt: started},
	}, t.now())
}

// dropUnanswered drops the completions without a response that cannot receive one any more.
func (t *Tap) dropUnanswered(now time.Time) {
	for token, task := range t.tasks {
		if task.update != nil && !task.awaited(now) {
			t.drop(token, task)
			t.unsure(task.update.RunID)
		}
	}
}

// awaited reports whether the task has been completed here and Temporal's response may still arrive.
func (t *task) awaited(now time.Time) bool {
	return t.update != nil && now.Sub(t.sent) < answeredWithin
}

// completing moves the records to the task: its completion is about to be sent, so there will be no more. It returns
// the task queue, and the time for which the request may be held back: only the first request of a young task may.
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
	return task.queue, min(maxHold, holdUntil-task.sent.Sub(task.opened))
}

// Holds reports whether a workflow task of a run has been completed here and Temporal's response is outstanding. It
// does not wait for a lost response: the row of such a run is behind, and is repaired.
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

// Executes reports whether a workflow task of an execution is in this process.
func (t *Tap) Executes(runID, executionID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, open := t.open[flow.Execution{WorkflowID: runID, RunID: executionID}]
	return open
}

func (t *Tap) completed(ctx context.Context, token string) {
	task := t.forget(token)
	if task != nil && task.update != nil {
		t.accept(task.queue, task.update.Update, t.now())
		t.ended(ctx, task.queue, task.update.ended)
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

// drop removes a task. Only one token of an execution is open in this process.
func (t *Tap) drop(token string, task *task) {
	if task.reporting != nil {
		task.reporting.Stop()
	}
	delete(t.tasks, token)
	delete(t.open, task.execution)
	delete(t.records, task.execution)
}
