package app

import (
	"context"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/inspect"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// diagnoseEngine adapts Temporal to [diagnose.Engine].
type diagnoseEngine struct {
	redactedInspector
	*engine.Engine

	runs *control.Service
}

// Behind implements [diagnose.Engine]. Reading a run detects that its rows are behind and requests the repair.
func (e diagnoseEngine) Behind(ctx context.Context, project, runID string) (bool, error) {
	r, err := e.runs.Get(ctx, project, runID)
	return r.Behind != nil && r.Behind.Problem == "", err
}

// redactor replaces sensitive values in texts about runs by marks, so that values that Temporal holds sealed are not written in clear.
type redactor interface {
	Text(ctx context.Context, runID, text string) (string, error)
}

// redactedInspector redacts failure messages before a verdict truncates them: a sensitive text that is cut off would not be found.
type redactedInspector struct {
	*inspect.Inspector

	marks redactor
}

func (m redactedInspector) Execution(ctx context.Context, runID string) (diagnose.Execution, error) {
	x, err := m.Inspector.Execution(ctx, runID)
	if err != nil {
		return x, err
	}
	return redactExecution(ctx, m.marks, runID, x)
}

func redactExecution(ctx context.Context, marks redactor, runID string, x diagnose.Execution) (_ diagnose.Execution, err error) {
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

// newDiagnosis creates the parts that find runs without progress. Every process takes part, including those without workers, because missing
// workers are one of the causes.
func (a *App) newDiagnosis(
	manager *conn.Manager, tap *projection.Tap, changes *pubsub.Notifier, events *event.Service, fingerprint func() worker.Fingerprint, stores *sealedStores,
	runs *control.Service,
) (*diagnose.Watcher, *diagnose.Failures) {
	failures, read := diagnose.NewFailures(stores.verdicts), codec.FailureConverter(a.keys)
	tap.OnFailure(func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time) {
		text := inspect.Text(read, why.GetFailure())
		failures.Note(diagnose.TaskFailure{
			RunID: workflowID, At: at, Text: text, Cause: inspect.Cause(why.GetCause(), why.GetFailure(), text),
			Build: why.GetDeployment().GetBuildId(), //nolint:staticcheck // the SDK computes it from the binary; its successor needs versioning
		})
	})
	inspector := inspect.New(inspect.Options{
		Client: manager.Client, Status: manager.Status, Namespace: a.cfg.Temporal.Namespace, Failures: read,
	})
	return diagnose.New(stores.verdicts, a.store, diagnoseEngine{redactedInspector{inspector, stores}, a.engine, runs}, diagnose.Options{
		After: a.cfg.Runs.StuckAfter, PoisonAfter: a.cfg.Runs.PoisonAfter, Now: time.Now, Suspended: a.shedsLoad, Fingerprint: fingerprint,
		Changes: changes, Committed: events.Committed,
		End: func(ctx context.Context, project, id, reason string) error {
			_, err := runs.Terminate(ctx, project, id, reason)
			return err
		},
	}), failures
}
