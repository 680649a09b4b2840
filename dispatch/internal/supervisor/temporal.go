package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// Listed is an open workflow in Temporal's list.
type Listed struct {
	wire.Execution
	StartedAt     time.Time
	HistoryLength int64
}

// Temporal is the part of Temporal that the supervisor uses.
type Temporal interface {
	// List returns all open workflows of the dispatchers' type. The list may be slightly out of date.
	List(ctx context.Context) ([]Listed, error)
	// Describe returns a run if it is open, nil if not. Without a run ID it describes the newest run of the workflow ID.
	Describe(ctx context.Context, workflowID, runID string) (*Listed, error)
	// Ask queries a run and reports whether a worker answered.
	Ask(ctx context.Context, workflowID, runID string) plan.Answer
	// Terminate terminates that run. It returns [remote.ErrGone] if the run is not open.
	Terminate(ctx context.Context, workflowID, runID, reason string) error
}

const (
	// query selects the open dispatchers of all projects.
	query = "WorkflowType='" + wire.WorkflowType + "' AND ExecutionStatus='Running'"
	// pageSize is the largest page that a server returns by default.
	pageSize    = 1000
	callTimeout = 5 * time.Second
)

// Remote implements [Temporal] with the SDK's client.
type Remote struct {
	// Client returns the current client, or an error while there is none.
	Client func() (client.Client, error)
	// Namespace and Converter are those of the clients.
	Namespace string
	Converter converter.DataConverter
}

// List implements [Temporal].
func (r *Remote) List(ctx context.Context) ([]Listed, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	var all []Listed
	var next []byte
	for {
		page, err := listPage(ctx, c, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: r.Namespace, PageSize: pageSize, Query: query, NextPageToken: next,
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", dispatchtype.ErrNotListed, err)
		}
		for _, info := range page.GetExecutions() {
			all = append(all, r.listed(info))
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return all, nil
		}
	}
}

func listPage(
	ctx context.Context, c client.Client, request *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.ListWorkflow(ctx, request)
}

func (r *Remote) listed(info *workflowpb.WorkflowExecutionInfo) Listed {
	memo, err := wire.ReadMemo(r.Converter, info.GetMemo())
	return Listed{
		Execution: wire.Execution{
			WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(),
			Type:      info.GetType().GetName(),
			TaskQueue: info.GetTaskQueue(), Memo: memo, Unread: err != nil,
		},
		StartedAt: info.GetStartTime().AsTime(), HistoryLength: info.GetHistoryLength(),
	}
}

// Describe implements [Temporal].
func (r *Remote) Describe(ctx context.Context, workflowID, runID string) (*Listed, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := c.DescribeWorkflowExecution(ctx, workflowID, runID)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("describe workflow %q, run %q: %w", workflowID, runID, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if s := info.GetStatus(); s != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING &&
		s != enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED {
		return nil, nil
	}
	found := r.listed(info)
	if found.TaskQueue == "" {
		found.TaskQueue = d.GetExecutionConfig().GetTaskQueue().GetName()
	}
	return &found, nil
}

// Ask implements [Temporal]. It waits for the answer until ctx ends.
func (r *Remote) Ask(ctx context.Context, workflowID, runID string) plan.Answer {
	c, err := r.Client()
	if err != nil {
		return plan.Unclear
	}
	_, err = c.QueryWorkflow(ctx, workflowID, runID, wire.StateQuery)
	return answerOf(err)
}

// State returns the run's answer to the state query. It waits for the answer until ctx ends.
func (r *Remote) State(ctx context.Context, workflowID, runID string) (dispatchtype.State, error) {
	var state dispatchtype.State
	c, err := r.Client()
	if err != nil {
		return state, err
	}
	value, err := c.QueryWorkflow(ctx, workflowID, runID, wire.StateQuery)
	if err == nil {
		err = value.Get(&state)
	}
	if err != nil {
		return dispatchtype.State{}, fmt.Errorf("ask dispatcher %q for its state: %w", workflowID, err)
	}
	return state, nil
}

// answerOf classifies the result of a query. A run that rejects the query has a worker as well.
func answerOf(err error) plan.Answer {
	_, refused := errors.AsType[*serviceerror.QueryFailed](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, unpolled := errors.AsType[*serviceerror.FailedPrecondition](err)
	_, unready := errors.AsType[*serviceerror.WorkflowNotReady](err)
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	switch {
	case err == nil || refused:
		return plan.Answered
	case late || unpolled || unready || gone || errors.Is(err, context.DeadlineExceeded):
		return plan.Silent
	default:
		return plan.Unclear
	}
}

// Terminate implements [Temporal].
func (r *Remote) Terminate(ctx context.Context, workflowID, runID, reason string) error {
	c, err := r.Client()
	if err != nil {
		return err
	}
	return remote.Terminate(ctx, c, workflowID, runID, reason)
}
