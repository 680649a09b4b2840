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
	"github.com/signalbox-dev/signalbox/lease"
)

// leftover is a Temporal with one open dispatcher, of a release without owners, that nobody works for.
type leftover struct {
	client.Client
	ended []string
}

func (l *leftover) info() *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "dispatcher-shop-orders", RunId: "run-1"},
		Type:      &commonpb.WorkflowType{Name: "signalbox.dispatcher"}, TaskQueue: "orders", Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
}

func (l *leftover) ListWorkflow(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{l.info()}}, nil
}

func (l *leftover) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: l.info()}, nil
}

func (l *leftover) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, serviceerror.NewDeadlineExceeded("nobody polls")
}

func (l *leftover) TerminateWorkflow(_ context.Context, _, runID, _ string, _ ...any) error {
	l.ended = append(l.ended, runID)
	return nil
}

// book is a journal that keeps terminations.
type book struct {
	dispatch.Journal
	terminated []dispatch.Termination
}

func (b *book) Terminated(_ context.Context, t dispatch.Termination) error {
	b.terminated = append(b.terminated, t)
	return nil
}

// TestReconcilingWithoutStartIsInTheJournal: a process that serves no dispatcher reconciles too, and may end soon after.
func TestReconcilingWithoutStartIsInTheJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := lease.NewMemory()
		o, temporal, journal := options(leases), &leftover{}, &book{}
		o.Client, o.Journal = func() (client.Client, error) { return temporal, nil }, journal
		d, err := dispatch.New(o)
		require.NoError(t, err)
		name := dispatch.Name{Project: "shop", TaskQueue: "orders"}
		_, err = o.Inbox.Fence(t.Context(), name, "w-2", 0)
		require.NoError(t, err)
		_, _, err = leases.Acquire(t.Context(), "dispatcher:shop:orders", "w-2", nil, lease.Terms{TTL: time.Second, Retention: time.Hour})
		require.NoError(t, err)
		<-time.After(time.Minute)
		_, err = d.Reconcile(t.Context(), false)
		require.NoError(t, err)
		require.Equal(t, []string{"run-1"}, temporal.ended)
		require.Len(t, journal.terminated, 1)
		require.Equal(t, "run-1", journal.terminated[0].RunID)
	})
}
