// Package symptom asks Temporal what it shows of runs that make no progress: who polls their task queues and what waits there,
// which executions have problems, and what a single one is waiting for.
//
//	s := symptom.New(symptom.Options{Client: manager.Client, Status: manager.Status, Namespace: namespace})
//	state, err := s.Queue(ctx, project)
//	x, err := s.Execution(ctx, runID)
//
// It concludes nothing: package stuck does.
package symptom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
)

const (
	// askTimeout bounds each question.
	askTimeout = 5 * time.Second
	// listPage is how many executions with problems are read at a time, listPages how many times.
	listPage, listPages = 1000, 20
	// tail is how many events from the end of a history the reason of a failing task is looked for in.
	tail = 20
	// noAnswer is why a workflow task failed of which nobody has told.
	noAnswer = "the worker did not answer in time"
	// reportedProblems is the search attribute in which newer servers keep what is wrong with executions.
	reportedProblems = "TemporalReportedProblems"
)

// Options say how to reach Temporal.
type Options struct {
	Client    func() (client.Client, error)
	Status    func() conn.Status
	Namespace string
	// Failures reads failures whose texts are sealed.
	Failures converter.FailureConverter
}

// Symptoms asks Temporal. It is safe for concurrent use.
type Symptoms struct{ opts Options }

// New returns a Symptoms; it asks nothing yet.
func New(opts Options) *Symptoms { return &Symptoms{opts} }

// Connection implements [stuck.Engine].
func (s *Symptoms) Connection() verdict.Connection {
	status := s.opts.Status()
	_, err := s.opts.Client()
	return verdict.Connection{Usable: err == nil, Address: status.Address, Kind: string(status.Kind), LastError: status.LastError}
}

// Queue implements [stuck.Engine].
func (s *Symptoms) Queue(ctx context.Context, project string) (stuck.QueueState, error) {
	state := stuck.QueueState{Name: contract.TaskQueue(project)}
	var err error
	if state.Workflow, err = s.line(ctx, state.Name, enumspb.TASK_QUEUE_TYPE_WORKFLOW); err != nil {
		return state, err
	}
	state.Activity, err = s.line(ctx, state.Name, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	return state, err
}

func (s *Symptoms) line(ctx context.Context, queue string, kind enumspb.TaskQueueType) (line stuck.Line, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := s.opts.Client()
	if err != nil {
		return line, err
	}
	answer, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: s.opts.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		TaskQueueType: kind, ReportStats: true,
	})
	if err != nil {
		return line, fmt.Errorf("describing task queue %q: %w", queue, err)
	}
	for _, p := range answer.GetPollers() {
		line.Pollers = append(line.Pollers, verdict.Poller{Identity: p.GetIdentity(), LastAccess: p.GetLastAccessTime().AsTime()})
	}
	line.Backlog = answer.GetStats().GetApproximateBacklogCount()
	line.Age = answer.GetStats().GetApproximateBacklogAge().AsDuration()
	return line, nil
}

// Problems implements [stuck.Engine].
func (s *Symptoms) Problems(ctx context.Context) (map[string]string, error) {
	problems := map[string]string{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: s.opts.Namespace, PageSize: listPage,
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND %s IS NOT NULL", contract.RunWorkflow, reportedProblems),
	}
	for range listPages {
		page, err := s.list(ctx, request)
		if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); unknown {
			return map[string]string{}, nil // an older server keeps no such list
		}
		if err != nil {
			return problems, fmt.Errorf("listing executions with problems: %w", err)
		}
		for _, x := range page.GetExecutions() {
			problems[x.GetExecution().GetWorkflowId()] = reported(x)
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.GetNextPageToken()) == 0 {
			break
		}
	}
	return problems, nil
}

func (s *Symptoms) list(
	ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := s.opts.Client()
	if err != nil {
		return nil, err
	}
	return c.ListWorkflow(ctx, request)
}

// reported is the cause in an execution's list of problems: entries are "category=…" and "cause=…".
func reported(x *workflowpb.WorkflowExecutionInfo) string {
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

// Execution implements [stuck.Engine].
func (s *Symptoms) Execution(ctx context.Context, runID string) (verdict.Execution, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := s.opts.Client()
	if err != nil {
		return verdict.Execution{}, err
	}
	answer, err := c.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: s.opts.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(runID)},
	})
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return verdict.Execution{Missing: true}, nil
	}
	if err != nil {
		return verdict.Execution{}, fmt.Errorf("describing run %q: %w", runID, err)
	}
	info := answer.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return verdict.Execution{Closed: info.GetStatus().String()}, nil
	}
	var x verdict.Execution
	if t := answer.GetPendingWorkflowTask(); t != nil {
		x.Task = &verdict.Task{
			Attempt: int(t.GetAttempt()), Started: t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED,
			ScheduledAt: first(t.GetOriginalScheduledTime(), t.GetScheduledTime()),
		}
		if t.GetAttempt() > 1 {
			s.whyFailed(ctx, c, info.GetExecution(), &x)
		}
	}
	for _, a := range answer.GetPendingActivities() {
		x.Activities = append(x.Activities, verdict.Activity{
			Type: a.GetActivityType().GetName(), Attempt: int(a.GetAttempt()),
			Started:     a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED,
			ScheduledAt: first(a.GetScheduledTime()), NextAt: first(a.GetNextAttemptScheduleTime()), Failure: Text(s.opts.Failures, a.GetLastFailure()),
		})
	}
	return x, nil
}

// whyFailed reads from the history why and when the task failed, and at which worker: the first failure in a row is an event there. That
// it cannot be read takes nothing from what is known.
func (s *Symptoms) whyFailed(ctx context.Context, c client.Client, execution *commonpb.WorkflowExecution, x *verdict.Execution) {
	history, err := c.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: s.opts.Namespace, Execution: execution, MaximumPageSize: tail,
	})
	if err != nil {
		return
	}
	x.Failure, x.Cause = noAnswer, problem.NoAnswer
	for _, e := range history.GetHistory().GetEvents() {
		switch at := first(e.GetEventTime()); e.GetEventType() { //nolint:exhaustive // the others tell of no failure
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
			failed := e.GetWorkflowTaskFailedEventAttributes()
			text := Text(s.opts.Failures, failed.GetFailure())
			x.Failure, x.FailedAt, x.FailedBy = cmp.Or(text, failed.GetCause().String()), at, failed.GetIdentity()
			x.Cause = Cause(failed.GetCause(), failed.GetFailure(), text)
			return
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			x.FailedAt = at
			return
		}
	}
}

// first is the first time that is there.
func first(times ...*timestamppb.Timestamp) time.Time {
	for _, t := range times {
		if t.IsValid() {
			return t.AsTime()
		}
	}
	return time.Time{}
}

// Text is what a failure says, with the innermost cause; empty for none.
func Text(read converter.FailureConverter, f *failurepb.Failure) string {
	if f == nil {
		return ""
	}
	if f.GetEncodedAttributes() != nil {
		return sealed(read, f)
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

// sealed is the text of a failure that is sealed. Without its key the converter panics, which fails a workflow task and is no reason
// for anything here.
func sealed(read converter.FailureConverter, f *failurepb.Failure) (text string) {
	defer func() {
		if recover() != nil {
			text = "what it says is sealed with a key that is not here"
		}
	}()
	return read.FailureToError(f).Error()
}
