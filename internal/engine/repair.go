package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/engine/steer"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

const (
	// repairTimeout bounds each thing that a repair asks of Temporal: what the run is, and all of its history. How long it takes
	// to interpret that is the machine's affair: a run that takes long would never be repaired.
	repairTimeout = 10 * time.Second
	// maxVerified is how many open runs are remembered as compared.
	maxVerified = 10_000
	// maxChain bounds how many executions of one run are read.
	maxChain = 10_000
)

// verified is what a run looked like in Temporal when its row was last compared with it.
type verified struct {
	executionID string
	history     int64
	status      enumspb.WorkflowExecutionStatus
}

// Repair implements [run.Engine]: it compares a run with Temporal and, when Temporal has moved since they were last
// compared, interprets the history again and writes what it says. It changes nothing for a run that Temporal does not
// know.
func (e *Engine) Repair(ctx context.Context, r run.Run) (bool, error) {
	info, err := e.describe(ctx, r.ID)
	if err != nil || info == nil {
		return false, err
	}
	seen := verified{executionID: info.GetExecution().GetRunId(), history: info.GetHistoryLength(), status: info.GetStatus()}
	e.mu.Lock()
	known := e.verified[r.ID] == seen
	e.mu.Unlock()
	if known {
		return false, nil
	}
	update, err := e.rebuild(ctx, r.ID, info)
	if err != nil {
		return false, err
	}
	transitions, err := e.store.ApplyUpdates(ctx, []run.Update{update})
	if err != nil {
		return false, fmt.Errorf("writing what Temporal has of run %q: %w", r.ID, err)
	}
	e.changed(ctx, transitions)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.verified) >= maxVerified {
		e.verified = map[string]verified{}
	}
	e.verified[r.ID] = seen
	return true, nil
}

// describe returns what Temporal has of a run's newest execution, nil when it does not know it.
func (e *Engine) describe(ctx context.Context, runID string) (*workflowpb.WorkflowExecutionInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	c, err := e.temporal()
	if err != nil {
		return nil, err
	}
	response, err := c.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: e.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(runID)},
	})
	if _, notFound := errors.AsType[*serviceerror.NotFound](err); notFound {
		return nil, nil //nolint:nilnil // "not known" is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("asking Temporal for run %q: %w", runID, err)
	}
	return response.GetWorkflowExecutionInfo(), nil
}

// rebuild interprets the histories of all executions of a run again, oldest first.
func (e *Engine) rebuild(ctx context.Context, runID string, info *workflowpb.WorkflowExecutionInfo) (run.Update, error) {
	chain, ids, err := e.chain(ctx, runID, info)
	if err != nil {
		return run.Update{}, err
	}
	var whole run.Update
	for i, history := range slices.Backward(chain) {
		part, err := e.interpret(ctx, flow.Execution{WorkflowID: runID, RunID: ids[i]}, history)
		if err != nil {
			return run.Update{}, err
		}
		whole = projection.Join(whole, part)
	}
	if state := closedFromOutside(info, chain[0]); state != nil {
		whole = projection.Close(whole, *state)
	}
	return whole, nil
}

// chain reads the histories of all executions of a run, the newest first, and their IDs.
func (e *Engine) chain(ctx context.Context, runID string, info *workflowpb.WorkflowExecutionInfo) (chain []*historypb.History, ids []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	for id := info.GetExecution().GetRunId(); id != "" && len(chain) < maxChain; {
		history, err := e.history(ctx, runID, id)
		if err != nil {
			return nil, nil, err
		}
		chain, ids = append(chain, history), append(ids, id)
		id = history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return chain, ids, nil
}

func (e *Engine) interpret(ctx context.Context, execution flow.Execution, history *historypb.History) (run.Update, error) {
	return projection.Rebuild(history, execution, contract.RunWorkflow, e.keys, logger.ForTemporal(e.log.With("rebuilding", execution.WorkflowID)),
		func(sink flow.Sink) any { return flow.New(ctx, e.documents, sink, e.limits).Run })
}

func (e *Engine) history(ctx context.Context, runID, executionID string) (*historypb.History, error) {
	c, err := e.temporal()
	if err != nil {
		return nil, err
	}
	history := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, contract.WorkflowID(runID), executionID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("reading the history of run %q (execution %q): %w", runID, executionID, err)
		}
		history.Events = append(history.Events, event)
	}
	if len(history.GetEvents()) == 0 {
		return nil, fmt.Errorf("reading the history of run %q (execution %q): it is empty", runID, executionID)
	}
	return history, nil
}

// closedFromOutside returns the state of a run whose execution was ended by something else than the interpreter:
// terminated, or timed out by Temporal.
func closedFromOutside(info *workflowpb.WorkflowExecutionInfo, history *historypb.History) *run.State {
	at := info.GetCloseTime().AsTime()
	state := &run.State{Since: at, StartedAt: info.GetStartTime().AsTime(), EndedAt: at}
	last := history.GetEvents()[len(history.GetEvents())-1]
	switch info.GetStatus() { //nolint:exhaustive // the others are the interpreter's own endings, or open
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		state.Status = run.Terminated
		terminated := last.GetWorkflowExecutionTerminatedEventAttributes()
		if who, ours := steer.Terminator(terminated.GetIdentity()); ours {
			state.Error = control.TerminatedBy(who, terminated.GetReason())
			return state
		}
		state.Error = &run.Problem{
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Terminated", Instance: "/",
			Detail: fmt.Sprintf("the execution was terminated in Temporal by %q: %s", terminated.GetIdentity(), terminated.GetReason()),
		}
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		state.Status = run.TimedOut
		state.Error = &run.Problem{
			Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out", Instance: "/", Detail: "the execution timed out in Temporal",
		}
	default:
		return nil
	}
	return state
}
