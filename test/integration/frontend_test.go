package integration_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The test frontend forwards requests to a real Temporal unchanged, and injects the faults that
// the connection tests use.
func TestFrontendForwardsToTemporal(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	f := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
	direct, through := platform.DialTemporal(t, temporal.Address), platform.DialTemporal(t, f.Addr())
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
	defer cancel()

	var runs atomic.Int64
	w := worker.New(through, "orders", worker.Options{WorkerStopTimeout: time.Second})
	w.RegisterActivityWithOptions(func(_ context.Context, name string) (string, error) {
		runs.Add(1)
		return "hello " + name, nil
	}, activity.RegisterOptions{Name: "greet"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, name string) (string, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: soon})
		var greeting string
		err := workflow.ExecuteActivity(ctx, "greet", name).Get(ctx, &greeting)
		return greeting, err
	}, workflow.RegisterOptions{Name: "order"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	require.NoError(t, f.AwaitPollers(ctx, "orders", 3))

	order := func(id string) {
		t.Helper()
		run, err := through.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "orders"}, "order", id)
		require.NoError(t, err)
		var greeting string
		require.NoError(t, run.Get(ctx, &greeting))
		require.Equal(t, "hello "+id, greeting)
	}
	order("plain")
	faults := map[string]func(){
		"cut":     f.CutConnections,
		"go away": f.GoAway,
		"restart": func() { f.Stop(); require.NoError(t, f.Restart()) },
		"thaw":    func() { f.Freeze(); f.Thaw() },
	}
	for name, happen := range faults {
		happen()
		require.Eventually(t, func() bool {
			attempt, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := through.CheckHealth(attempt, nil)
			return err == nil
		}, soon, 10*time.Millisecond, "after %s", name)
		order(name)
	}
	require.EqualValues(t, len(faults)+1, runs.Load())
	require.Len(t, f.Starts(), len(faults)+1)

	// Errors arrive as Temporal sent them, with their details.
	for _, c := range []client.Client{direct, through} {
		_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "missing"})
		var missing *serviceerror.NamespaceNotFound
		require.ErrorAs(t, err, &missing)
		require.Equal(t, "missing", missing.Namespace)
	}

	// A start whose answer is lost has been executed.
	f.Blackhole(conntest.ToClient)
	patient, lose := context.WithCancel(ctx)
	defer lose()
	lost := make(chan error, 1)
	go func() {
		_, err := through.ExecuteWorkflow(patient, client.StartWorkflowOptions{ID: "unknown outcome", TaskQueue: "orders"},
			"order", "unknown")
		lost <- err
	}()
	require.Eventually(t, func() bool {
		_, err := direct.DescribeWorkflowExecution(ctx, "unknown outcome", "")
		return err == nil
	}, soon, 10*time.Millisecond)
	lose()
	require.Error(t, <-lost)
	f.Restore()
	var greeting string
	require.NoError(t, through.GetWorkflow(ctx, "unknown outcome", "").Get(ctx, &greeting))
	require.Equal(t, "hello unknown", greeting)
}
