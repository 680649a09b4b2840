package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// records writes the records of workflow tasks as rows after Temporal has acknowledged the tasks. It reports changes of
// rows, by any writer, to watches, metrics and the components that react to the end of a run.
type records struct {
	changes *pubsub.Notifier
	// projected notifies of the runs of which the writer has written updates.
	projected *pubsub.Notifier
	tap       *projection.Tap
	writer    *projection.Writer
	metrics   *telemetry.Runs
	ended     []func(project, runID string)
}

func newRecords(p *process, s *storage) *records {
	r := &records{changes: pubsub.NewNotifier(), projected: pubsub.NewNotifier(), metrics: p.telemetry.Runs}
	r.writer = projection.NewWriter(s.sealed.rows, r, time.Now)
	r.tap = projection.NewTap(time.Now, r.writer.Accept)
	r.tap.HoldBack(r.writer.Wait)
	r.tap.OnUnsure(r.writer.Unsure)
	r.tap.OnEnded(r.endedSteps)
	return r
}

// onEnded adds a function that is called for each run that has ended. It must not be called after the start.
func (r *records) onEnded(call func(project, runID string)) { r.ended = append(r.ended, call) }

// endedSteps counts the steps of projects that have ended, by their status.
func (r *records) endedSteps(ctx context.Context, queue string, steps map[interp.Status]int64) {
	if _, ours := contract.ProjectOf(queue); !ours {
		return
	}
	for status, count := range steps {
		r.metrics.Stepped(ctx, string(status), count)
	}
}

// holds reports whether this process has records of a run that are not written yet.
func (r *records) holds(runID string) bool { return r.tap.Holds(runID) || r.writer.Holds(runID) }

// Written implements [projection.Observer].
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
