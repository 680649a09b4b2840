package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// inspectTimeout bounds each question but those that read whole histories.
	inspectTimeout = 10 * time.Second
	// placeTimeout bounds the question for the namespace.
	placeTimeout = 1500 * time.Millisecond
	// listPage is how many executions are listed at a time: Temporal's own limit.
	listPage = 1000
	// tailPage is how many events are read first in the search for the last accepted workflow task from the end of a history. It is
	// among the last few unless hundreds of calls have ended since; then whole pages are read, up to as many as a history may have.
	tailPage, wholePage, tailPages = 20, 1000, 250
)

var _ run.Inspector = (*Engine)(nil)

// Place implements [run.Inspector].
func (e *Engine) Place(ctx context.Context) (run.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	c, err := e.temporal()
	if err != nil {
		return run.Place{}, err
	}
	found, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: e.namespace})
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		return run.Place{}, noNamespace(e.address, e.namespace, err)
	}
	if err != nil {
		return run.Place{}, e.unanswered(err)
	}
	return run.Place{Address: e.address, Namespace: e.namespace, NamespaceID: found.GetNamespaceInfo().GetId()}, nil
}

// unanswered is the fault for a question that Temporal did not answer.
func (e *Engine) unanswered(err error) error {
	return fault.New(fault.Unavailable, fault.EngineUnavailable, "temporal at %s does not answer: %v", e.address, err).
		WithRetry(retryAfter).WithCause(err)
}

// Executions implements [run.Inspector]. It asks visibility, which follows within seconds.
func (e *Engine) Executions(ctx context.Context, closedSince time.Time) iter.Seq2[run.Execution, error] {
	ours := fmt.Sprintf("WorkflowType = '%s' AND ", contract.RunWorkflow)
	queries := []string{
		ours + "ExecutionStatus = 'Running'",
		// An execution that was continued is no end of a run.
		ours + "ExecutionStatus != 'ContinuedAsNew' AND CloseTime >= '" + closedSince.UTC().Format(time.RFC3339Nano) + "'",
	}
	return func(yield func(run.Execution, error) bool) {
		for _, query := range queries {
			if !e.list(ctx, query, yield) {
				return
			}
		}
	}
}

// list yields what a query finds; false when no more is wanted.
func (e *Engine) list(ctx context.Context, query string, yield func(run.Execution, error) bool) bool {
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: e.namespace, PageSize: listPage, Query: query}
	for {
		page, err := e.page(ctx, request)
		if err != nil {
			yield(run.Execution{}, err)
			return false
		}
		for _, info := range page.GetExecutions() {
			if strings.HasPrefix(info.GetTaskQueue(), contract.TaskQueue("")) && !yield(execution(info), nil) {
				return false
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.GetNextPageToken()) == 0 {
			return true
		}
	}
}

func (e *Engine) page(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	c, err := e.temporal()
	if err != nil {
		return nil, err
	}
	page, err := c.ListWorkflow(ctx, request)
	if err != nil {
		return nil, e.unanswered(err)
	}
	return page, nil
}

func execution(info *workflowpb.WorkflowExecutionInfo) run.Execution {
	x := run.Execution{
		RunID: info.GetExecution().GetWorkflowId(), ExecutionID: info.GetExecution().GetRunId(),
		Open: info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, StartedAt: info.GetStartTime().AsTime(),
	}
	if !x.Open {
		x.ClosedAt = info.GetCloseTime().AsTime()
	}
	return x
}

// Look implements [run.Inspector].
func (e *Engine) Look(ctx context.Context, r run.Run) (run.Execution, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	info, err := e.describe(ctx, r.ID)
	if err != nil {
		return run.Execution{}, e.unanswered(err)
	}
	if info == nil {
		return run.Execution{}, run.ErrNotKnown
	}
	x := execution(info)
	if x.Relation, x.Left, err = e.relate(ctx, r, x.ExecutionID); err != nil {
		return run.Execution{}, err
	}
	if x.Relation != run.RelationReset {
		x.Accepted, x.AcceptedAt, err = e.accepted(ctx, x)
	}
	return x, err
}

// relate tells what an execution has to do with the one that a row shows, and with a reset, which executions it left.
//
// Executions that continue each other know the one before; a reset keeps what the execution that was reset knew of its
// past. So one that is not in the newest one's past was left behind, and so was its own past up to where both agree.
func (e *Engine) relate(ctx context.Context, r run.Run, newest string) (run.Relation, []string, error) {
	if r.ExecutionID == "" || r.ExecutionID == newest {
		return run.RelationSame, nil, nil
	}
	past := []string{newest}
	for id := newest; len(past) < maxChain; {
		before, err := e.before(ctx, r.ID, id)
		if err != nil {
			return 0, nil, err
		}
		if before == r.ExecutionID {
			return run.RelationSuccessor, nil, nil
		}
		if before == "" {
			break
		}
		past, id = append(past, before), before
	}
	var left []string
	for id := r.ExecutionID; id != "" && !slices.Contains(past, id) && len(left) < maxChain; {
		left = append(left, id)
		before, err := e.before(ctx, r.ID, id)
		if err != nil {
			return 0, nil, err
		}
		id = before
	}
	return run.RelationReset, left, nil
}

// before returns the execution that one continues, empty when it is the first, or when Temporal has forgotten.
func (e *Engine) before(ctx context.Context, runID, executionID string) (string, error) {
	first, err := e.first(ctx, runID, executionID)
	if errors.Is(err, run.ErrNotKnown) {
		return "", nil
	}
	return first.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(), err
}

// first returns the first event of an execution, of the newest one when executionID is empty.
func (e *Engine) first(ctx context.Context, runID, executionID string) (*historypb.HistoryEvent, error) {
	c, err := e.temporal()
	if err != nil {
		return nil, err
	}
	page, err := c.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: e.namespace, MaximumPageSize: 1,
		Execution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(runID), RunId: executionID},
	})
	if _, notFound := errors.AsType[*serviceerror.NotFound](err); notFound {
		return nil, run.ErrNotKnown
	}
	if err != nil {
		return nil, e.unanswered(err)
	}
	if len(page.GetHistory().GetEvents()) == 0 {
		return nil, fmt.Errorf("reading the history of run %q (execution %q): it is empty", runID, executionID)
	}
	return page.GetHistory().GetEvents()[0], nil
}

// accepted finds the last workflow task of an execution that Temporal accepted, from the end of its history: how long
// the history was at its start, which is what records are placed by, and when it was accepted. It is zero when there
// was none.
func (e *Engine) accepted(ctx context.Context, x run.Execution) (int64, time.Time, error) {
	c, err := e.temporal()
	if err != nil {
		return 0, time.Time{}, err
	}
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: e.namespace, MaximumPageSize: tailPage,
		Execution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(x.RunID), RunId: x.ExecutionID},
	}
	for range tailPages {
		page, err := c.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if err != nil {
			return 0, time.Time{}, e.unanswered(err)
		}
		for _, event := range page.GetHistory().GetEvents() {
			if task := event.GetWorkflowTaskCompletedEventAttributes(); task != nil {
				return task.GetStartedEventId(), event.GetEventTime().AsTime(), nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.GetNextPageToken()) == 0 {
			return 0, time.Time{}, nil
		}
		request.MaximumPageSize = wholePage
	}
	return 0, time.Time{}, fmt.Errorf("reading the end of the history of run %q (execution %q): it is longer than any history may be", x.RunID, x.ExecutionID)
}

// Origin implements [run.Inspector].
func (e *Engine) Origin(ctx context.Context, runID string) (run.Origin, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	event, err := e.first(ctx, runID, "")
	if err != nil {
		return run.Origin{}, err
	}
	// A continued execution carries a snapshot instead of the input.
	newest := event.GetWorkflowExecutionStartedEventAttributes()
	if first := newest.GetFirstExecutionRunId(); newest.GetContinuedExecutionRunId() != "" {
		if event, err = e.first(ctx, runID, first); err != nil {
			return run.Origin{}, err
		}
	}
	if err := e.payloads.Resolve(ctx, event); err != nil {
		return run.Origin{}, err
	}
	started := event.GetWorkflowExecutionStartedEventAttributes()
	var in flow.Input
	if err := payload.For(e.keys, runID).FromPayloads(started.GetInput(), &in); err != nil || in.RunID != runID ||
		started.GetWorkflowType().GetName() != contract.RunWorkflow || started.GetTaskQueue().GetName() != contract.TaskQueue(in.Project) {
		return run.Origin{}, run.ErrNotKnown
	}
	return run.Origin{
		Project: in.Project, Workflow: in.Workflow, Version: in.Version, DocumentHash: in.DocumentHash, Input: in.Input,
		Interpreter: in.Interpreter, StartedAt: event.GetEventTime().AsTime(),
	}, nil
}
