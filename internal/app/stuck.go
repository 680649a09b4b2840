package app

import (
	"context"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/engine/symptom"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// examiner is Temporal as the watcher sees it.
type examiner struct {
	marking
	*engine.Engine

	runs *control.Service
}

// Behind implements [stuck.Engine]: each read of a run finds that out, and requests its repair.
func (e examiner) Behind(ctx context.Context, project, runID string) (bool, error) {
	r, err := e.runs.Get(ctx, project, runID)
	return r.Behind != nil && r.Behind.Problem == "", err
}

// marker puts marks into texts about runs: what Temporal holds sealed is not written in clear.
type marker interface {
	Text(ctx context.Context, runID, text string) (string, error)
}

// marking puts marks into what failures say before a verdict shortens it: a sensitive text that is cut off would not be found.
type marking struct {
	*symptom.Symptoms

	marks marker
}

func (m marking) Execution(ctx context.Context, runID string) (verdict.Execution, error) {
	x, err := m.Symptoms.Execution(ctx, runID)
	if err != nil {
		return x, err
	}
	return marked(ctx, m.marks, runID, x)
}

func marked(ctx context.Context, marks marker, runID string, x verdict.Execution) (_ verdict.Execution, err error) {
	if x.Failure, err = marks.Text(ctx, runID, x.Failure); err != nil {
		return verdict.Execution{}, err
	}
	for i := range x.Activities {
		if x.Activities[i].Failure, err = marks.Text(ctx, runID, x.Activities[i].Failure); err != nil {
			return verdict.Execution{}, err
		}
	}
	return x, nil
}

// stuck makes what finds runs without progress. Each process takes part, with or without workers: that there are none is one of
// the reasons.
func (a *App) stuck(
	manager *conn.Manager, tap *projection.Tap, changes *notice.Board, events *event.Service, fingerprint func() worker.Fingerprint, safe *sealing,
	runs *control.Service,
) (*stuck.Watcher, *stuck.Failures) {
	failures, read := stuck.NewFailures(safe.verdicts), payload.FailureConverter(a.keys)
	tap.OnFailure(func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time) {
		text := symptom.Text(read, why.GetFailure())
		failures.Note(stuck.TaskFailure{
			RunID: workflowID, At: at, Text: text, Cause: symptom.Cause(why.GetCause(), why.GetFailure(), text),
			Build: why.GetDeployment().GetBuildId(), //nolint:staticcheck // the SDK computes it from the binary; its successor needs versioning
		})
	})
	symptoms := symptom.New(symptom.Options{
		Client: manager.Client, Status: manager.Status, Namespace: a.cfg.Temporal.Namespace, Failures: read,
	})
	return stuck.New(safe.verdicts, a.store, examiner{marking{symptoms, safe}, a.engine, runs}, stuck.Options{
		After: a.cfg.Runs.StuckAfter, PoisonAfter: a.cfg.Runs.PoisonAfter, Now: time.Now, Suspended: a.shedding, Fingerprint: fingerprint,
		Changes: changes, Committed: events.Committed,
		End: func(ctx context.Context, project, id, reason string) error {
			_, err := runs.Terminate(ctx, project, id, reason)
			return err
		},
	}), failures
}
