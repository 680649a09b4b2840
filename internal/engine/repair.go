package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

const (
	// describeTimeout bounds the request for the description of a run.
	describeTimeout = 10 * time.Second
	// maxChain bounds the number of executions of one run that are read.
	maxChain = 10_000
	// historyPage is the number of events that Temporal returns in one response by default.
	historyPage = 256
	// maxHistoryBytes bounds the history that is held in memory; Temporal's own limit is 50 MiB.
	maxHistoryBytes = 64 << 20
)

// describe returns Temporal's description of a run's newest execution, nil if it has none.
func (e *Engine) describe(ctx context.Context, runID string) (*workflowpb.WorkflowExecutionInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	c, err := e.temporal()
	if err != nil {
		return nil, err
	}
	response, err := c.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: e.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(runID)},
	})
	if _, notFound := errors.AsType[*serviceerror.NotFound](err); notFound {
		return nil, nil //nolint:nilnil // nil: no execution
	}
	if err != nil {
		return nil, fmt.Errorf("asking Temporal for run %q: %w", runID, err)
	}
	return response.GetWorkflowExecutionInfo(), nil
}

// IsOpen reports whether Temporal has an open execution of a run.
func (e *Engine) IsOpen(ctx context.Context, runID string) (bool, error) {
	found, err := e.describe(ctx, runID)
	return found.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}

// Rebuild implements [run.Rebuilder].
func (e *Engine) Rebuild(ctx context.Context, r run.Run, after string, w run.RebuildWriter) error {
	if err := e.budget.Take(ctx); err != nil {
		return err
	}
	info, err := e.describe(ctx, r.ID)
	if err != nil {
		return e.unanswered(err)
	}
	if info == nil {
		return run.ErrNotKnown
	}
	chain, err := e.chain(ctx, r.ID, info.GetExecution().GetRunId(), after)
	if err != nil {
		return err
	}
	var last *run.State
	position := r.Position
	for i, id := range slices.Backward(chain) {
		history, err := e.history(ctx, r.ID, id)
		if errors.Is(err, run.ErrNotKnown) && i > 0 {
			// Temporal has deleted the history of this execution, because the run is older than the retention. Later
			// executions start with all the state they need.
			if err := w.Done(ctx, id); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		final := closedFromOutside(history)
		listen := e.restoreListeners
		if i > 0 || final != nil {
			listen = nil // later executions have carried its listeners over, or it has ended
		}
		state, at, err := e.interpret(ctx, flow.Execution{WorkflowID: r.ID, RunID: id}, history, w.Write, listen)
		if err != nil && i == 0 && strings.Contains(err.Error(), contract.PayloadMissing) {
			if final = closedUnread(history); final != nil {
				err = nil // nothing but its end can be known, now and later
			}
		}
		if err != nil {
			return err
		}
		position = max(position, at)
		if state != nil {
			last = state
		}
		switch {
		case i > 0:
			err = w.Done(ctx, id)
		case final != nil:
			err = w.Write(ctx, ended(r, id, position+1, last, *final))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ended returns the update that ends a run if the interpreter did not end its last execution. Its position is beyond
// all records of the interpreter.
func ended(r run.Run, executionID string, position int64, last *run.State, final run.State) run.Update {
	final.StepsTotal, final.EndsSteps = r.StepsTotal, true
	if last != nil {
		final.StepsTotal, final.StartedAt = last.StepsTotal, last.StartedAt
	}
	final.StepsDone = final.StepsTotal
	return run.Update{RunID: r.ID, ExecutionID: executionID, Position: position, State: &final}
}

// chain returns the IDs of the executions of a run that continued each other, newest first, down to the successor of
// after.
func (e *Engine) chain(ctx context.Context, runID, newest, after string) ([]string, error) {
	var ids []string
	for id := newest; id != "" && id != after; {
		if len(ids) == maxChain {
			return nil, fmt.Errorf("run %q has more than %d executions: its rows cannot be rebuilt", runID, maxChain)
		}
		ids = append(ids, id)
		before, err := e.before(ctx, runID, id)
		if err != nil {
			return nil, err
		}
		id = before
	}
	return ids, nil
}

// restoreListeners commits the listeners of an open run that its database lacks: those that the run committed after the
// backup that the database was restored from. One that the run removes at the same time stays until the run ends;
// events that it matches have no effect.
func (e *Engine) restoreListeners(ctx context.Context, listeners []flow.ListenRequest) error {
	if e.listeners == nil {
		return nil
	}
	for _, l := range listeners {
		if err := e.listeners.Listen(ctx, listenerOf(l)); err != nil && !apperror.Is(err, apperror.RunEnded) {
			return fmt.Errorf("restore a listener of run %q: %w", l.RunID, err)
		}
	}
	return nil
}

func (e *Engine) interpret(
	ctx context.Context, execution flow.Execution, history *historypb.History, write projection.Write,
	listen func(context.Context, []flow.ListenRequest) error,
) (*run.State, int64, error) {
	rebuilding := e.rebuilding(ctx, execution, history)
	rebuilding.Listen = listen
	return projection.Rebuild(ctx, rebuilding, write)
}

func (e *Engine) rebuilding(ctx context.Context, execution flow.Execution,
	history *historypb.History) projection.Rebuilding {
	return projection.Rebuilding{
		History: history, Execution: execution, Name: contract.RunWorkflow, Keys: e.keys, External: e.payloads.External(),
		Log:      logger.ForTemporal(e.log.With("rebuilding", execution.WorkflowID)),
		Workflow: func(sink flow.Sink) any { return flow.New(ctx, e.documents, sink, e.limits).Run },
	}
}

// history reads the complete history of one execution, as the replayer requires. Temporal bounds its size. The error is
// [run.ErrNotKnown] if Temporal has none.
func (e *Engine) history(ctx context.Context, runID, executionID string) (*historypb.History, error) {
	c, err := e.temporal()
	if err != nil {
		return nil, err
	}
	if err := e.budget.Take(ctx); err != nil {
		return nil, err
	}
	history, size := &historypb.History{}, 0
	events := c.GetWorkflowHistory(ctx, contract.WorkflowID(runID), executionID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, e.unread(runID, executionID, err)
		}
		if size += event.Size(); size > maxHistoryBytes {
			return nil, fmt.Errorf("the history of run %q (execution %q) has more than %d bytes: its rows cannot be rebuilt",
				runID, executionID, maxHistoryBytes)
		}
		history.Events = append(history.Events, event)
		if len(history.GetEvents())%historyPage == 0 {
			if err := e.budget.Take(ctx); err != nil {
				return nil, err
			}
		}
	}
	if len(history.GetEvents()) == 0 {
		return nil, fmt.Errorf("reading the history of run %q (execution %q): it is empty", runID, executionID)
	}
	return history, nil
}

// unread returns the error of a history that could not be read. An unavailable Temporal is distinguished from errors of
// the run.
func (e *Engine) unread(runID, executionID string, err error) error {
	code := serviceerror.ToStatus(err).Code()
	if code == codes.NotFound {
		err = run.ErrNotKnown
	}
	err = fmt.Errorf("reading the history of run %q (execution %q): %w", runID, executionID, err)
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return e.unanswered(err)
	default:
		return err
	}
}

// closedUnread returns the end of a run that ended in Temporal and whose history cannot be interpreted, because one of
// its large values is lost. It returns nil for an open run.
func closedUnread(history *historypb.History) *run.State {
	if state := closedFromOutside(history); state != nil {
		return state
	}
	events := history.GetEvents()
	last := events[len(events)-1]
	at := last.GetEventTime().AsTime()
	state := &run.State{Since: at, StartedAt: events[0].GetEventTime().AsTime(), EndedAt: at}
	switch last.GetEventType() { //nolint:exhaustive // the others are open, or continue in another execution
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		state.Status = run.Completed
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		state.Status = run.Canceled
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		state.Status = run.Failed
		state.Error = &run.Error{
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Error lost", Instance: "/",
			Detail: "the run failed, and its steps and error cannot be read from Temporal, because one of its large values is " +
				"lost",
		}
	default:
		return nil
	}
	return state
}

// closedFromOutside returns the state of a run if the interpreter did not end its execution: terminated, or timed out
// by Temporal. It returns nil otherwise.
func closedFromOutside(history *historypb.History) *run.State {
	events := history.GetEvents()
	last := events[len(events)-1]
	at := last.GetEventTime().AsTime()
	state := &run.State{Since: at, StartedAt: events[0].GetEventTime().AsTime(), EndedAt: at}
	switch last.GetEventType() { //nolint:exhaustive // the others are the interpreter's own endings, or open
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		state.Status = run.Terminated
		terminated := last.GetWorkflowExecutionTerminatedEventAttributes()
		if actor, ok := terminator(terminated.GetIdentity()); ok {
			state.Error = control.TerminatedBy(actor, terminated.GetReason())
			return state
		}
		state.Error = &run.Error{
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Terminated", Instance: "/",
			Detail: fmt.Sprintf("the execution was terminated in Temporal by %q: %s", terminated.GetIdentity(),
				terminated.GetReason()),
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		state.Status = run.TimedOut
		state.Error = &run.Error{
			Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Timed out", Instance: "/",
			Detail: "the execution timed out in Temporal",
		}
	default:
		return nil
	}
	return state
}
