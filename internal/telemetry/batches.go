package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Batches counts the outcomes of the runs that batches started.
type Batches struct{ ended metric.Int64Counter }

func newBatches(meter metric.Meter) (*Batches, error) {
	ended, err := meter.Int64Counter("signalbox.batch.runs_ended",
		metric.WithDescription("Runs that batches of replays started and that have ended, by outcome: completed, "+
			"failed_same_cause (as the run that was replayed), failed_other_cause, canceled, terminated, unknown. The process "+
			"that observes them counts them."))
	return &Batches{ended}, err
}

// Begin begins the series of a project at 0.
func (b *Batches) Begin(ctx context.Context, project string, outcomes ...string) {
	for _, outcome := range outcomes {
		b.RunsEnded(ctx, project, outcome, 0)
	}
}

// RunsEnded counts n runs (signalbox_batch_runs_ended_total).
func (b *Batches) RunsEnded(ctx context.Context, project string, outcome string, n int64) {
	b.ended.Add(ctx, n, metric.WithAttributes(attribute.String("project", project), attribute.String("outcome", outcome)))
}
