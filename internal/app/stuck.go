package app

import (
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/engine/symptom"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// examiner is Temporal as the watcher sees it.
type examiner struct {
	*symptom.Symptoms
	*engine.Engine
}

// stuck makes what finds runs without progress. Each process takes part, with or without workers: that there are none is one of
// the reasons.
func (a *App) stuck(
	manager *conn.Manager, tap *projection.Tap, changes *notice.Board, events *event.Service, fingerprint func() worker.Fingerprint,
) (*stuck.Watcher, *stuck.Failures) {
	failures, read := stuck.NewFailures(a.store.Verdicts()), payload.FailureConverter(a.keys)
	tap.OnFailure(func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time) {
		failures.Note(stuck.TaskFailure{RunID: workflowID, At: at, Text: symptom.Text(read, why.GetFailure())})
	})
	symptoms := symptom.New(symptom.Options{
		Client: manager.Client, Status: manager.Status, Namespace: a.cfg.Temporal.Namespace, Failures: read,
	})
	return stuck.New(a.store.Verdicts(), a.store, examiner{symptoms, a.engine}, stuck.Options{
		After: a.cfg.Runs.StuckAfter, Now: time.Now, Fingerprint: fingerprint, Changes: changes, Committed: events.Committed,
	}), failures
}
