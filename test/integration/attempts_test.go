package integration_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// One workflow occupies a processor in each attempt and never yields, and one panics, beside others on the same worker.
// The test observes each attempt, Temporal receives one response, and the first workflow is blocked after its second.
func TestFailingTaskDoesNotSlowOtherRuns(t *testing.T) {
	t.Parallel()
	var (
		seen, answered, spins atomic.Int64
		release               atomic.Bool
	)
	count := func(n *atomic.Int64) grpc.UnaryClientInterceptor {
		return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
			opts ...grpc.CallOption) error {
			if _, failed := req.(*workflowservice.RespondWorkflowTaskFailedRequest); failed {
				n.Add(1)
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}
	}
	guard := engine.NewAttemptGuard(engine.AttemptGuardOptions{
		Now: time.Now, Expensive: func(r *workflowservice.RespondWorkflowTaskFailedRequest) bool {
			return engine.TaskFailureCause(r.GetCause(), r.GetFailure(), r.GetFailure().GetMessage()) == run.Deadlock
		}})
	c, err := client.Dial(client.Options{
		HostPort: platform.StartTemporal(t).Address, DataConverter: converter.GetDefaultDataConverter(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(count(&seen), guard.Intercept, count(&answered)),
		}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := worker.New(c, "q", worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error {
		spins.Add(1)
		for !release.Load() {
			continue
		}
		return nil
	}, workflow.RegisterOptions{Name: "spins"})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error {
		panic("out of cheese")
	}, workflow.RegisterOptions{Name: "panics"})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "quick"})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		release.Store(true)
		w.Stop()
	})
	start := func(kind, id string) client.WorkflowRun {
		r, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "q"}, kind)
		require.NoError(t, err)
		return r
	}
	start("spins", "spins")
	start("panics", "panics")
	platform.Eventually(t, soon, func() string {
		if n := seen.Load(); n < 4 {
			return fmt.Sprintf("%d attempts have failed", n)
		}
		return ""
	})
	require.Equal(t, int64(2), answered.Load(), "Temporal has received the first failure of each")
	var slowest time.Duration
	for i, until := 0, time.Now().Add(25*time.Second); time.Now().Before(until); i++ {
		began := time.Now()
		require.NoError(t, start("quick", fmt.Sprintf("quick-%d", i)).Get(t.Context(), nil))
		slowest = max(slowest, time.Since(began))
	}
	require.Equal(t, int64(2), spins.Load(), "later attempts of the workflow that occupies the processor wait")
	require.GreaterOrEqual(t, seen.Load(), int64(5), "the panic is retried at Temporal's intervals")
	t.Logf("the slowest of the others took %s", slowest)
	promise.Within(t, "an unrelated run", slowest, time.Second)
}
