package app

import (
	"context"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

// diagnoseEngine adapts Temporal to [diagnose.Engine].
type diagnoseEngine struct {
	redactedInspector
	*engine.Engine

	runs   *control.Service
	budget *engine.Budget
}

// Behind implements [diagnose.Engine]. Reading a run detects that its rows are behind and requests the repair. A read
// that the budget refuses to compare detects nothing.
func (e diagnoseEngine) Behind(ctx context.Context, project, runID string) (bool, error) {
	began := time.Now()
	r, err := e.runs.Get(ctx, project, runID)
	if err == nil && r.Behind == nil && e.budget.RefusedSince(began) {
		return false, diagnose.ErrLimited
	}
	return r.Behind != nil && r.Behind.Failure == "", err
}

// redactor replaces sensitive values in texts about runs by marks, so that values that Temporal holds sealed are not
// written in clear.
type redactor interface {
	Text(ctx context.Context, runID, text string) (string, error)
}

// redactedInspector redacts failure messages before a verdict truncates them: a sensitive text that is cut off would
// not be found.
type redactedInspector struct {
	*engine.Inspector

	marks redactor
}

func (m redactedInspector) Execution(ctx context.Context, runID string) (diagnose.Execution, error) {
	x, err := m.Inspector.Execution(ctx, runID)
	if err != nil {
		return x, err
	}
	return redactExecution(ctx, m.marks, runID, x)
}

func redactExecution(ctx context.Context, marks redactor, runID string,
	x diagnose.Execution) (_ diagnose.Execution, err error) {
	if x.Failure, err = marks.Text(ctx, runID, x.Failure); err != nil {
		return diagnose.Execution{}, err
	}
	for i := range x.Activities {
		if x.Activities[i].Failure, err = marks.Text(ctx, runID, x.Activities[i].Failure); err != nil {
			return diagnose.Execution{}, err
		}
	}
	return x, nil
}

// diagnosis finds runs without progress. Every process takes part, including those without workers, because missing
// workers are one of the causes.
type diagnosis struct {
	watcher  *diagnose.Watcher
	failures *diagnose.Failures
	// queue describes the task queue of a project.
	queue func(ctx context.Context, project string) (diagnose.QueueState, error)
}

func newDiagnosis(c *components) *diagnosis {
	verdicts, manager, runs := c.storage.sealed.verdicts, c.connection.manager, c.runs.service
	failures, read := diagnose.NewFailures(verdicts), codec.FailureConverter(c.keys)
	c.records.tap.OnFailure(func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time) {
		text := engine.TaskFailureText(read, why.GetFailure())
		failures.Note(diagnose.TaskFailure{
			RunID: workflowID, At: at, Text: text, Cause: engine.TaskFailureCause(why.GetCause(), why.GetFailure(), text),
			Build: why.GetDeployment().
				GetBuildId(), //nolint:staticcheck // the SDK computes it from the binary; its successor needs versioning
		}.Under(c.serverID, c.processor.State()))
	})
	inspector := redactedInspector{engine.NewInspector(engine.InspectorOptions{
		Client: manager.Client, Status: manager.Status, Namespace: c.cfg.Temporal.Namespace, Failures: read,
		Budget: c.connection.budget,
	}), c.storage.sealed}
	return &diagnosis{failures: failures, queue: inspector.Queue,
		watcher: diagnose.New(verdicts, c.storage, diagnoseEngine{inspector, c.connection.engine, runs, c.connection.budget},
			diagnose.Options{
				After: c.cfg.Runs.StuckAfter, PoisonAfter: c.cfg.Runs.PoisonAfter, Now: time.Now, Suspended: c.shedsLoad,
				Fingerprint: c.connection.fingerprint, Elsewhere: c.connection.placement.Elsewhere, Changes: c.records.changes,
				Committed: c.events.service.Committed,
				End: func(ctx context.Context, project, id, reason string) error {
					_, err := runs.Terminate(ctx, project, id, reason)
					return err
				},
			})}
}
