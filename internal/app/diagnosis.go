package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

// diagnoseEngine adapts Temporal to [diagnose.Engine].
type diagnoseEngine struct {
	*engine.Engine

	runs  runService
	marks redactor
}

// Behind implements [diagnose.Engine]. Reading a run detects that its rows are behind and requests the repair. A read
// that the budget refuses to compare detects nothing.
func (e diagnoseEngine) Behind(ctx context.Context, project, runID string) (bool, error) {
	began := time.Now()
	r, err := e.runs.Get(ctx, project, runID)
	if err == nil && r.Behind == nil && e.Budget().RefusedSince(began) {
		return false, diagnose.ErrLimited
	}
	return r.Behind != nil && r.Behind.Failure == "", err
}

// redactor replaces sensitive values in texts about runs by marks, so that values that Temporal holds sealed are not
// written in clear.
type redactor interface {
	Text(ctx context.Context, runID, text string) (string, error)
}

// Execution implements [diagnose.Engine]. It redacts failure messages before a verdict truncates them: a sensitive text
// that is cut off would not be found.
func (e diagnoseEngine) Execution(ctx context.Context, runID string) (diagnose.Execution, error) {
	x, err := e.Engine.Execution(ctx, runID)
	if err != nil {
		return x, err
	}
	return redactExecution(ctx, e.marks, runID, x)
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
}

func newDiagnosis(c *components) *diagnosis {
	verdicts, runs, temporal := c.storage.sealed.verdicts, c.runs.service, c.connection.engine
	failures := diagnose.NewFailures(verdicts)
	temporal.OnTaskFailure(func(f diagnose.TaskFailure) { failures.Note(f.Under(c.serverID, c.processor.State())) })
	return &diagnosis{failures: failures,
		watcher: diagnose.New(verdicts, c.storage, diagnoseEngine{temporal, runs, c.storage.sealed},
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
