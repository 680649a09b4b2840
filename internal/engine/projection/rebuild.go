package projection

import (
	"fmt"

	historypb "go.temporal.io/api/history/v1"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

// collector is the sink of a rebuild.
type collector struct{ update run.Update }

func (c *collector) Records(_ flow.Execution, position int64, r *interp.RunRecord, steps []interp.StepRecord, sensitive []string) {
	c.update.Sensitive = sensitive
	add(&c.update, position, r, steps)
}

// Rebuild interprets the history of one execution of a run again and returns the records it made. newWorkflow makes
// the workflow function over a sink; name is its registered type, and keys open the history.
func Rebuild(
	history *historypb.History, execution flow.Execution, name string, keys *seal.Ring, log sdklog.Logger, newWorkflow func(flow.Sink) any,
) (run.Update, error) {
	c := &collector{update: run.Update{RunID: execution.WorkflowID, ExecutionID: execution.RunID}}
	// The interpreter's fuel bounds what it computes; how long that takes is the machine's affair, not a deadlock.
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: payload.Converter(keys), FailureConverter: payload.FailureConverter(keys), DisableDeadlockDetection: true,
	})
	if err != nil {
		return run.Update{}, fmt.Errorf("making a replayer: %w", err)
	}
	replayer.RegisterWorkflowWithOptions(newWorkflow(c), workflow.RegisterOptions{Name: name})
	err = replayer.ReplayWorkflowHistoryWithOptions(log, history, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: execution.WorkflowID, RunID: execution.RunID},
	})
	if err != nil {
		return run.Update{}, fmt.Errorf("interpreting the history of run %q (execution %q) again: %w", execution.WorkflowID, execution.RunID, err)
	}
	compact(&c.update)
	return c.update, nil
}
