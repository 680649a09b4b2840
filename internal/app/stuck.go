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
	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// examiner is Temporal as the watcher sees it.
type examiner struct {
	marking
	*engine.Engine
}

// marker puts marks into texts about runs: what Temporal holds sealed is not written in clear.
type marker interface {
	Text(ctx context.Context, runID, text string) (string, error)
}

// marking tells what failures say with marks.
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

// noting writes failed workflow tasks with marks.
type noting struct {
	stuck.Store

	marks marker
}

func (n noting) NoteFailures(ctx context.Context, failures []stuck.TaskFailure) error {
	for i := range failures {
		text, err := n.marks.Text(ctx, failures[i].RunID, failures[i].Text)
		if err != nil {
			return err
		}
		failures[i].Text = text
	}
	return n.Store.NoteFailures(ctx, failures)
}

// stuck makes what finds runs without progress. Each process takes part, with or without workers: that there are none is one of
// the reasons.
func (a *App) stuck(
	manager *conn.Manager, tap *projection.Tap, changes *notice.Board, events *event.Service, fingerprint func() worker.Fingerprint, marks marker,
) (*stuck.Watcher, *stuck.Failures) {
	failures, read := stuck.NewFailures(noting{a.store.Verdicts(), marks}), payload.FailureConverter(a.keys)
	tap.OnFailure(func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time) {
		failures.Note(stuck.TaskFailure{RunID: workflowID, At: at, Text: symptom.Text(read, why.GetFailure())})
	})
	symptoms := symptom.New(symptom.Options{
		Client: manager.Client, Status: manager.Status, Namespace: a.cfg.Temporal.Namespace, Failures: read,
	})
	return stuck.New(a.store.Verdicts(), a.store, examiner{marking{symptoms, marks}, a.engine}, stuck.Options{
		After: a.cfg.Runs.StuckAfter, Now: time.Now, Fingerprint: fingerprint, Changes: changes, Committed: events.Committed,
	}), failures
}
