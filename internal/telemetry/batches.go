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
		metric.WithDescription("Runs that batches of replays started and that have ended, of all projects, by outcome: "+
			"completed, "+
			"failed_same_cause (as the run that was replayed), failed_other_cause, canceled, terminated, unknown. The process "+
			"that observes them counts them."))
	return &Batches{ended}, err
}

// Begin exports the series with these outcomes, at 0.
func (b *Batches) Begin(ctx context.Context, outcomes ...string) {
	for _, outcome := range outcomes {
		b.RunsEnded(ctx, outcome, 0)
	}
}

// RunsEnded counts n runs (signalbox_batch_runs_ended_total).
func (b *Batches) RunsEnded(ctx context.Context, outcome string, n int64) {
	b.ended.Add(ctx, n, metric.WithAttributes(attribute.String("outcome", outcome)))
}
