package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jellydator/ttlcache/v3"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

const (
	// inspectorTimeout bounds each request.
	inspectorTimeout = 5 * time.Second
	// inspectorPage is the page size of the list of executions with problems, inspectorPages the number of pages that are
	// read.
	inspectorPage, inspectorPages = 1000, 20
	// tail is the number of events from the end of a history that are searched for the failure of a workflow task.
	tail = 20
	// noAnswer is the failure of a workflow task without a reported failure.
	noAnswer = "the worker did not answer in time"
	// reportedProblems is the search attribute in which newer servers list the problems of executions.
	reportedProblems = "TemporalReportedProblems"
)

// Connection implements [diagnose.Engine].
func (e *Engine) Connection() diagnose.Connection {
	status := e.manager.Status()
	_, err := e.manager.Client()
	return diagnose.Connection{
		Usable: err == nil, Address: status.Address, Kind: string(status.Kind), LastError: status.LastError}
}

// Queue implements [diagnose.Engine].
func (e *Engine) Queue(ctx context.Context, project string) (diagnose.QueueState, error) {
	state := diagnose.QueueState{Name: contract.TaskQueue(project)}
	var err error
	if state.Workflow, err = e.line(ctx, state.Name, enumspb.TASK_QUEUE_TYPE_WORKFLOW); err != nil {
		return state, err
	}
	state.Activity, err = e.line(ctx, state.Name, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	return state, err
}

// inspecting returns the client for one request of the budget.
func (e *Engine) inspecting(ctx context.Context) (client.Client, error) {
	if err := e.budget.Take(ctx); err != nil {
		return nil, err
	}
	return e.manager.Client()
}

// describeRun describes the execution of a run; nil if Temporal has none.
func (e *Engine) describeRun(ctx context.Context, runID string) (client.Client,
	*workflowservice.DescribeWorkflowExecutionResponse, error) {
	c, err := e.inspecting(ctx)
	if err != nil {
		return nil, nil, err
	}
	answer, err := c.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: e.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(runID)},
	})
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return c, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("describing run %q: %w", runID, err)
	}
	return c, answer, nil
}

func (e *Engine) line(ctx context.Context, queue string,
	kind enumspb.TaskQueueType) (line diagnose.TaskTypeState, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectorTimeout)
	defer cancel()
	c, err := e.inspecting(ctx)
	if err != nil {
		return line, err
	}
	answer, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: e.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		TaskQueueType: kind, ReportStats: true,
	})
	if err != nil {
		return line, fmt.Errorf("describing task queue %q: %w", queue, err)
	}
	for _, p := range answer.GetPollers() {
		line.Pollers = append(line.Pollers,
			diagnose.Poller{Identity: p.GetIdentity(), LastAccess: p.GetLastAccessTime().AsTime()})
	}
	line.Measured = answer.GetStats() != nil
	line.Backlog = answer.GetStats().GetApproximateBacklogCount()
	line.Age = answer.GetStats().GetApproximateBacklogAge().AsDuration()
	return line, nil
}

// Problems implements [diagnose.Engine].
func (e *Engine) Problems(ctx context.Context) (map[string]string, error) {
	problems := map[string]string{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: e.namespace, PageSize: inspectorPage,
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND %s IS NOT NULL", contract.RunWorkflow,
			reportedProblems),
	}
	for range inspectorPages {
		page, err := e.problemPage(ctx, request)
		if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); unknown {
			return map[string]string{}, nil // an older server has no such list
		}
		if err != nil {
			return problems, fmt.Errorf("listing executions with problems: %w", err)
		}
		for _, x := range page.GetExecutions() {
			problems[x.GetExecution().GetWorkflowId()] = reportedProblem(x)
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.GetNextPageToken()) == 0 {
			break
		}
	}
	return problems, nil
}

func (e *Engine) problemPage(
	ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectorTimeout)
	defer cancel()
	if err := e.budget.Take(ctx); err != nil {
		return nil, err
	}
	c, err := e.manager.Client()
	if err != nil {
		return nil, err
	}
	return c.ListWorkflow(ctx, request)
}

// reportedProblem returns the causes in an execution's list of problems. Entries have the form "category=…" or
// "cause=…".
func reportedProblem(x *workflowpb.WorkflowExecutionInfo) string {
	var entries []string
	payload := x.GetSearchAttributes().GetIndexedFields()[reportedProblems]
	if converter.GetDefaultDataConverter().FromPayload(payload, &entries) != nil {
		return "Temporal reports a problem"
	}
	var causes []string
	for _, e := range entries {
		if cause, ok := strings.CutPrefix(e, "cause="); ok {
			causes = append(causes, cause)
		}
	}
	return strings.Join(causes, ", ")
}

// Execution implements [diagnose.Engine].
func (e *Engine) Execution(ctx context.Context, runID string) (diagnose.Execution, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectorTimeout)
	defer cancel()
	c, answer, err := e.describeRun(ctx, runID)
	switch {
	case err != nil:
		return diagnose.Execution{}, err
	case answer == nil:
		return diagnose.Execution{Missing: true}, nil
	}
	info := answer.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return diagnose.Execution{Closed: info.GetStatus().String()}, nil
	}
	var x diagnose.Execution
	if t := answer.GetPendingWorkflowTask(); t != nil {
		x.Task = &diagnose.Task{
			Attempt: int(t.GetAttempt()), Started: t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED,
			ScheduledAt: firstTime(t.GetOriginalScheduledTime(), t.GetScheduledTime()),
		}
		if t.GetAttempt() > 1 {
			e.readFailure(ctx, c, info.GetExecution(), &x)
		}
	}
	for _, a := range answer.GetPendingActivities() {
		pending := diagnose.Activity{
			Type: a.GetActivityType().GetName(), Attempt: int(a.GetAttempt()),
			Started:     a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED,
			ScheduledAt: firstTime(a.GetScheduledTime()), NextAt: firstTime(a.GetNextAttemptScheduleTime()),
			Failure: TaskFailureText(e.failures, a.GetLastFailure()),
		}
		if pending.Type == flow.ProgramActivity && !pending.Started {
			project, _ := contract.ProjectOf(info.GetTaskQueue())
			if pending.Runners, err = e.programQueue(ctx, contract.RunnerQueue(project)); err != nil {
				return diagnose.Execution{}, err
			}
		}
		if queue := a.GetActivityOptions().GetTaskQueue().GetName(); pending.Type == flow.FunctionActivity &&
			!pending.Started && queue != "" {
			if pending.Functions, err = e.programQueue(ctx, queue); err != nil {
				return diagnose.Execution{}, err
			}
		}
		x.Activities = append(x.Activities, pending)
	}
	return x, nil
}

// runnersFor is how long the answers of Runners are kept, and maxRunnerQueues of how many projects.
const runnersFor, maxRunnerQueues = 10 * time.Second, 1000

// Runners returns the state of the task queue of a project's programs, up to 10 seconds old: pages and clients read it
// again and again, for many projects.
func (e *Engine) Runners(ctx context.Context, project string) (diagnose.ProgramQueue, error) {
	if cached := e.runnerQueues.Get(project); cached != nil {
		return cached.Value(), nil
	}
	q, err := e.programQueue(ctx, contract.RunnerQueue(project))
	if err == nil {
		e.runnerQueues.Set(project, *q, ttlcache.DefaultTTL)
	}
	return *q, err
}

// programQueue returns the state of a task queue of programs.
func (e *Engine) programQueue(ctx context.Context, name string) (*diagnose.ProgramQueue, error) {
	q := &diagnose.ProgramQueue{Name: name}
	line, err := e.line(ctx, q.Name, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	for _, p := range line.Pollers {
		p.Identity, p.Isolations = contract.ParseRunnerIdentity(p.Identity)
		q.Pollers = append(q.Pollers, p)
	}
	return q, err
}

// readFailure reads from the history why and when the task failed, and on which worker: the first of consecutive
// failures is an event in it. If the history cannot be read, x stays as it is.
func (e *Engine) readFailure(ctx context.Context, c client.Client, execution *commonpb.WorkflowExecution,
	x *diagnose.Execution) {
	if e.budget.Take(ctx) != nil {
		return
	}
	history, err := c.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx,
		&workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: e.namespace, Execution: execution, MaximumPageSize: tail,
		})
	if err != nil {
		return
	}
	x.Failure, x.Cause = noAnswer, run.NoAnswer
	for _, event := range history.GetHistory().GetEvents() {
		at := firstTime(event.GetEventTime())
		switch event.GetEventType() { //nolint:exhaustive // the others are not failures
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
			failed := event.GetWorkflowTaskFailedEventAttributes()
			text := TaskFailureText(e.failures, failed.GetFailure())
			x.Failure, x.FailedAt, x.FailedBy = cmp.Or(text, failed.GetCause().String()), at, failed.GetIdentity()
			x.Cause = TaskFailureCause(failed.GetCause(), failed.GetFailure(), text)
			return
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			x.FailedAt = at
			return
		}
	}
}

// firstTime returns the first valid time.
func firstTime(times ...*timestamppb.Timestamp) time.Time {
	for _, t := range times {
		if t.IsValid() {
			return t.AsTime()
		}
	}
	return time.Time{}
}

// TaskFailureText returns the text of a failure, with the innermost cause. It is empty for nil.
func TaskFailureText(read converter.FailureConverter, f *failurepb.Failure) string {
	if f == nil {
		return ""
	}
	if f.GetEncodedAttributes() != nil {
		return sealedText(read, f)
	}
	text := f.GetMessage()
	for f.GetCause() != nil {
		f = f.GetCause()
	}
	if inner := f.GetMessage(); inner != "" && !strings.Contains(text, inner) {
		text += ": " + inner
	}
	return text
}

// sealedText returns the text of a sealed failure. Without its key the converter panics, which is meant to fail a
// workflow task and must have no effect here.
func sealedText(read converter.FailureConverter, f *failurepb.Failure) (text string) {
	defer func() {
		if recover() != nil {
			text = "the text is sealed with a key that this process does not have"
		}
	}()
	return read.FailureToError(f).Error()
}
