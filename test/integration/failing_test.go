package integration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Workers panic at a run, and then one cannot interpret the run's history. Each time the diagnosis
// reports the reason, and the run that can continue does so with a worker that supports it.
func TestFailingWorkflowTasksAreDiagnosed(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t), Roles: []string{platform.API},
		Env: []string{stuckAfter}}
	s := platform.StartServer(t, options)
	awaitConnected(t, s)
	c := platform.DialTemporal(t, temporal.Address)
	foreign := func(f func(workflow.Context) error) worker.Worker {
		w := worker.New(c, "signalbox-default", worker.Options{Identity: "stranger"})
		w.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: contract.RunWorkflow})
		require.NoError(t, w.Start())
		return w
	}
	id := s.Start(t, s.Publish(t, platform.Document("hello", hello)), "").GetId()
	panics := foreign(func(workflow.Context) error { panic("out of cheese") })
	require.Contains(t, awaitStuck(t, s, id, "TASK_FAILING", stuckWithin).GetDetail(), "out of cheese")
	panics.Stop()

	// The foreign workflow makes a call where the document waits.
	calls := foreign(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx,
			workflow.ActivityOptions{StartToCloseTimeout: time.Hour, TaskQueue: "nobody's"})
		return workflow.ExecuteActivity(ctx, "nothing").Get(ctx, nil)
	})
	other := s.Start(t, s.Publish(t, platform.Document("long", waits(600))), "").GetId()
	platform.Eventually(t, soon, func() string {
		if len(platform.History(t, c, other).GetEvents()) < 5 {
			return "no call yet"
		}
		return ""
	})
	calls.Stop()
	s.Terminate()
	_, ended := s.WaitFor(soon)
	require.True(t, ended)
	options.Roles = nil
	s = platform.StartServer(t, options)
	require.NoError(t, c.SignalWorkflow(t.Context(), other, "", "something", nil))
	require.Contains(t, awaitStuck(t, s, other, "TASK_FAILING", 2*stuckWithin).GetDetail(), "TMPRL1100",
		"the SDK's code for nondeterminism")
	s.Await(t, id, 2*soon, "completed")
}
