package engine

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// LacksPayload reports whether the newest execution of a run refers to a large value that no store has. It is false for
// a run that Temporal does not have.
func (e *Engine) LacksPayload(ctx context.Context, runID string) (bool, error) {
	c, err := e.temporal()
	if err != nil {
		return false, err
	}
	request := &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: e.namespace, MaximumPageSize: historyPage,
		Execution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(runID)},
	}
	for {
		if err := e.budget.Take(ctx); err != nil {
			return false, err
		}
		page, err := c.WorkflowService().GetWorkflowExecutionHistory(ctx, request)
		if _, notFound := errors.AsType[*serviceerror.NotFound](err); notFound {
			return false, nil
		}
		if err != nil {
			return false, e.unanswered(err)
		}
		if lacks, err := e.payloads.Lacks(ctx, page.GetHistory()); lacks || err != nil {
			return lacks, err
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.GetNextPageToken()) == 0 {
			return false, nil
		}
	}
}
