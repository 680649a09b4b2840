package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/lease"
)

// leftover is a Temporal with one open dispatcher of a release without owners, and without a worker.
type leftover struct {
	client.Client
	ended []string
}

func (l *leftover) info() *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "dispatcher-shop-orders", RunId: "run-1"},
		Type:      &commonpb.WorkflowType{Name: "signalbox.dispatcher"}, TaskQueue: "orders",
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
}

func (l *leftover) ListWorkflow(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{l.info()}}, nil
}

func (l *leftover) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: l.info()}, nil
}

func (l *leftover) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, serviceerror.NewDeadlineExceeded("no poller")
}

func (l *leftover) TerminateWorkflow(_ context.Context, _, runID, _ string, _ ...any) error {
	l.ended = append(l.ended, runID)
	return nil
}

// journal stores terminations.
type journal struct {
	dispatchtype.Journal
	terminated []dispatchtype.Termination
}

func (j *journal) Terminated(_ context.Context, t dispatchtype.Termination) error {
	j.terminated = append(j.terminated, t)
	return nil
}

// TestReconcileWithoutStartWritesJournal: a process that serves no dispatcher can reconcile, and may end soon after.
func TestReconcileWithoutStartWritesJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := lease.NewMemory()
		o, temporal, written := options(leases), &leftover{}, &journal{}
		o.Client, o.Journal = func() (client.Client, error) { return temporal, nil }, written
		d, err := dispatch.New(o)
		require.NoError(t, err)
		name := dispatch.Name{Project: "shop", TaskQueue: "orders"}
		_, err = o.Inbox.Fence(t.Context(), name, "w-2", 0)
		require.NoError(t, err)
		_, _, err = leases.Acquire(t.Context(), "dispatcher:shop:orders", "w-2", nil,
			lease.Lifetime{TTL: time.Second, Retention: time.Hour})
		require.NoError(t, err)
		<-time.After(time.Minute)
		_, err = d.Reconcile(t.Context(), false)
		require.NoError(t, err)
		require.Equal(t, []string{"run-1"}, temporal.ended)
		require.Len(t, written.terminated, 1)
		require.Equal(t, "run-1", written.terminated[0].RunID)
	})
}
