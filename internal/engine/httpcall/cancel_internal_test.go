package httpcall

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// TestSlowRequestIsCanceledSoon measures, by the clock of the test, the time from the request of a cancellation to the
// end of the HTTP request. The cancellation is requested right after the activity begins, so that the time includes the
// whole interval between two heartbeats: Temporal reports a cancellation in its response to a heartbeat.
func TestSlowRequestIsCanceledSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requested, ended := time.Now(), time.Time{}
		c := &Caller{exchanges: newExchanges("queue")}
		done := make(chan struct{})
		end := sync.OnceFunc(func() {
			ended = time.Now()
			close(done)
		})
		id := c.exchanges.handOver(&exchange{cancel: end, done: done}).ID

		canceled, cancel := context.WithCancel(t.Context())
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.SetTestTimeout(time.Hour)
		env.SetWorkerOptions(worker.Options{BackgroundActivityContext: canceled})
		env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
			cancel()
		}) // as the SDK does on Temporal's response
		env.RegisterActivityWithOptions(c.Attach, activity.RegisterOptions{Name: flow.AttachActivity})
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				StartToCloseTimeout: time.Hour, HeartbeatTimeout: flow.DefaultLimits().Heartbeat,
				RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
			})
			return workflow.ExecuteActivity(ctx, flow.AttachActivity, flow.AttachRequest{ID: id}).Get(ctx, nil)
		})
		require.ErrorContains(t, env.GetWorkflowError(), "the request was ended with its activity")
		took := ended.Sub(requested) + flow.HeartbeatsWithin // a worker, unlike this environment, may delay a heartbeat
		require.Greater(t, took, flow.HeartbeatsWithin)
		require.LessOrEqual(t, took, 2*time.Second)
	})
}
