package flow

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The background function ends only once another goroutine of the workflow has run, so the workflow must have yielded.
func TestRunInBackgroundYields(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, f := range map[string]func() (int, error){
		"result": func() (int, error) { return 7, nil },
		"error":  func() (int, error) { return 0, failed },
		"panic":  func() (int, error) { panic("out of cheese") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 30 * time.Second})
			env.ExecuteWorkflow(func(ctx workflow.Context) (int, error) {
				turn := make(chan struct{})
				workflow.Go(ctx, func(workflow.Context) { close(turn) })
				return runInBackground(ctx, func() (int, error) {
					<-turn
					return f()
				})
			})
			require.True(t, env.IsWorkflowCompleted())
			err := env.GetWorkflowError()
			switch name {
			case "result":
				var got int
				require.NoError(t, env.GetWorkflowResult(&got))
				require.Equal(t, 7, got)
			case "error":
				require.ErrorContains(t, err, "failed")
			default:
				var panicked *temporal.PanicError
				require.ErrorAs(t, err, &panicked)
				require.ErrorContains(t, err, "out of cheese")
			}
		})
	}
}
