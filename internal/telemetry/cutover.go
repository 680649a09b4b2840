package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Cutover counts what comes from an older engine's database that is followed.
type Cutover struct {
	runs     metric.Int64Counter
	failures metric.Int64Counter
}

func newCutover(meter metric.Meter) (*Cutover, error) {
	runs, err := meter.Int64Counter("signalbox.migration.runs",
		metric.WithDescription("Runs that came from the older engine's database in migration.from, by what became of them: new, changed, settled."))
	if err != nil {
		return nil, err
	}
	failures, err := meter.Int64Counter("signalbox.migration.failures",
		metric.WithDescription("Looks at the older engine's database in migration.from that could not be completed."))
	if err != nil {
		return nil, err
	}
	return &Cutover{runs: runs, failures: failures}, nil
}

// Imported adds runs by what became of them (signalbox_migration_runs_total).
func (c *Cutover) Imported(ctx context.Context, kind string, runs int64) {
	c.runs.Add(ctx, runs, metric.WithAttributes(attribute.String("kind", kind)))
}

// Failed adds a pass that could not be completed (signalbox_migration_failures_total).
func (c *Cutover) Failed(ctx context.Context) { c.failures.Add(ctx, 1) }
