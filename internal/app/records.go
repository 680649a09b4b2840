package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// records reports changes of rows, by any writer, to watches, metrics and the components that react to the end of a
// run.
type records struct {
	changes *pubsub.Notifier
	// projected notifies of the runs of which the writer has written updates.
	projected *pubsub.Notifier
	metrics   *telemetry.Runs
	ended     []func(project, runID string)
}

func newRecords(metrics *telemetry.Runs) *records {
	return &records{changes: pubsub.NewNotifier(), projected: pubsub.NewNotifier(), metrics: metrics}
}

// onEnded adds a function that is called for each run that has ended. It must not be called after the start.
func (r *records) onEnded(call func(project, runID string)) { r.ended = append(r.ended, call) }

// endedSteps counts the steps of projects that have ended, by their status.
func (r *records) endedSteps(ctx context.Context, steps map[interp.Status]int64) {
	for status, count := range steps {
		r.metrics.Stepped(ctx, string(status), count)
	}
}

// Written implements the observer of [engine.Options].
func (r *records) Written(ctx context.Context, runIDs []string, transitions []run.Transition, lag time.Duration) {
	for _, id := range runIDs {
		r.projected.Notify(id)
		r.changes.Notify(id)
	}
	r.changed(ctx, transitions)
	r.metrics.Projected(ctx, lag)
}

// changed reports status transitions from any writer.
func (r *records) changed(ctx context.Context, transitions []run.Transition) {
	for _, t := range transitions {
		if t.From == run.Queued && !t.StartedAt.IsZero() {
			r.metrics.Waited(ctx, t.StartedAt.Sub(t.CreatedAt))
		}
		if !t.To.Terminal() {
			continue
		}
		r.metrics.Count(ctx, t.Project, string(t.To))
		for _, ended := range r.ended {
			ended(t.Project, t.RunID)
		}
	}
}
