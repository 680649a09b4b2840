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

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// inspectTimeout bounds each request except those that read whole histories.
	inspectTimeout = 10 * time.Second
	// clusterIDTimeout bounds the request for the namespace.
	clusterIDTimeout = 1500 * time.Millisecond
	// listPage is the page size of lists of executions: Temporal's own limit.
	listPage = 1000
	// tailPage is the number of events that the search for the last accepted workflow task reads first, from the end of
	// a history. The task is among the last few events unless hundreds of calls have ended since. Then the search reads
	// pages of wholePage events, up to as many pages as the longest history has.
	tailPage, wholePage, tailPages = 20, 1000, 250
)

var _ run.Inspector = (*Engine)(nil)

// ClusterID implements [run.Inspector].
func (e *Engine) ClusterID(ctx context.Context) (run.ClusterID, error) {
	found, err := e.describeNamespace(ctx)
	if err != nil {
		return run.ClusterID{}, err
	}
	return run.ClusterID{Address: e.address, Namespace: e.namespace, NamespaceID: found.GetNamespaceInfo().GetId()}, nil
}

func (e *Engine) describeNamespace(ctx context.Context) (*workflowservice.DescribeNamespaceResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterIDTimeout)
	defer cancel()
	c, err := e.temporal()
	if err != nil {
		return nil, err
	}
	found, err := c.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: e.namespace})
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		return nil, noNamespace(e.address, e.namespace, err)
	}
	if err != nil {
		return nil, e.unanswered(err)
	}
	return found, nil
}

// unanswered returns the fault for a request that Temporal did not answer.
func (e *Engine) unanswered(err error) error {
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal does not answer").WithDetail("%s: %v",
		e.address, err).
		WithRetry(retryAfter).WithCause(err)
}

// Executions implements [run.Inspector]. It queries visibility, which lags by seconds.
func (e *Engine) Executions(ctx context.Context, closedSince time.Time) iter.Seq2[run.Execution, error] {
	return func(yield func(run.Execution, error) bool) {
		_ = e.list(ctx, ofRuns+"ExecutionStatus = 'Running'", yield) &&
			e.list(ctx, endings+"CloseTime >= "+moment(closedSince), yield)
	}
}

// EndedExecutions implements [run.Inspector].
func (e *Engine) EndedExecutions(ctx context.Context, from, to time.Time) iter.Seq2[run.Execution, error] {
	return func(yield func(run.Execution, error) bool) {
		e.list(ctx, endings+"CloseTime >= "+moment(from)+" AND CloseTime < "+moment(to), yield)
	}
}

// The beginnings of queries of visibility.
const (
	ofRuns = "WorkflowType = '" + contract.RunWorkflow + "' AND "
	// An execution that was continued is not the end of a run.
	endings = ofRuns + "ExecutionStatus != 'ContinuedAsNew' AND "
)

// moment is a time in a query of visibility.
func moment(t time.Time) string { return "'" + t.UTC().Format(time.RFC3339Nano) + "'" }

// Retention implements [run.Inspector].
func (e *Engine) Retention(ctx context.Context) (time.Duration, error) {
	found, err := e.describeNamespace(ctx)
	return found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), err
}

// list yields the results of a query. It returns false when the consumer has stopped.
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

func (e *Engine) page(ctx context.Context,
	request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	if err := e.budget.Take(ctx); err != nil {
		return nil, err
	}
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

// Inspect implements [run.Inspector].
func (e *Engine) Inspect(ctx context.Context, r run.Run) (run.Execution, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	if err := e.budget.Take(ctx); err != nil {
		return run.Execution{}, err
	}
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

// relate returns the relation of the newest execution to the one in a row and, after a reset, the executions that it
// replaced.
//
// Executions that continue each other refer to the preceding one. A reset keeps the predecessors of the execution that
// was reset. So an execution that is not a predecessor of the newest one was replaced, and so were its own predecessors
// up to the first common one.
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

// before returns the execution that one continues. It is empty for the first one, or if Temporal has deleted the
// history.
func (e *Engine) before(ctx context.Context, runID, executionID string) (string, error) {
	first, err := e.first(ctx, runID, executionID)
	if errors.Is(err, run.ErrNotKnown) {
		return "", nil
	}
	return first.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(), err
}

// first returns the first event of an execution, or of the newest execution if executionID is empty.
func (e *Engine) first(ctx context.Context, runID, executionID string) (*historypb.HistoryEvent, error) {
	if err := e.budget.Take(ctx); err != nil {
		return nil, err
	}
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

// accepted finds the last workflow task of an execution that Temporal accepted, from the end of its history. It returns
// the length of the history at the task's start, which determines the position of records, and the time of acceptance.
// Both are zero if there was none.
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
		if err := e.budget.Take(ctx); err != nil {
			return 0, time.Time{}, err
		}
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
	return 0, time.Time{}, fmt.Errorf("reading the end of the history of run %q (execution %q): it is longer than any "+
		"history may be", x.RunID, x.ExecutionID)
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
	started := event.GetWorkflowExecutionStartedEventAttributes()
	o := run.Origin{StartedAt: event.GetEventTime().AsTime()}
	if o.Identity, err = e.identity(runID, started.GetMemo()); err != nil ||
		started.GetWorkflowType().GetName() != contract.RunWorkflow ||
		started.GetTaskQueue().GetName() != contract.TaskQueue(o.Project) {
		return run.Origin{}, run.ErrNotKnown
	}
	switch err := e.payloads.Resolve(ctx, event); {
	case errors.Is(err, codec.ErrMissing):
		o.InputMissing, o.Secrecy.All = "the input is lost: "+err.Error(), true
		return o, nil
	case err != nil:
		return run.Origin{}, err
	}
	var in flow.Input
	if err := codec.For(e.keys, runID).FromPayloads(started.GetInput(), &in); err != nil || in.RunID != runID {
		return run.Origin{}, run.ErrNotKnown
	}
	o.Input, o.Secrecy = in.Input, in.Sensitive
	return o, nil
}

// identity reads the identity of a run from the memo of its execution.
func (e *Engine) identity(runID string, memo *commonpb.Memo) (identity run.Identity, err error) {
	err = codec.For(e.keys, runID).FromPayload(memo.GetFields()[contract.IdentityMemo], &identity)
	return identity, err
}
