package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Migration counts runs copied from an older engine's database.
type Migration struct {
	runs     metric.Int64Counter
	failures metric.Int64Counter
}

func newMigration(meter metric.Meter) (*Migration, error) {
	runs, err := meter.Int64Counter("signalbox.migration.runs",
		metric.WithDescription("Runs copied from the older engine's database in migration.from, by outcome: new, changed, "+
			"settled. Only a process with this setting exports it."))
	if err != nil {
		return nil, err
	}
	failures, err := meter.Int64Counter("signalbox.migration.failures",
		metric.WithDescription("Passes over the older engine's database in migration.from that failed. Only a process with "+
			"this setting exports it."))
	if err != nil {
		return nil, err
	}
	return &Migration{runs: runs, failures: failures}, nil
}

// Begin exports all series, at 0: in a process that follows an older engine's database.
func (c *Migration) Begin(ctx context.Context) {
	for _, kind := range []string{"new", "changed", "settled"} {
		c.Imported(ctx, kind, 0)
	}
	c.failures.Add(ctx, 0)
}

// Imported adds runs by outcome (signalbox_migration_runs_total).
func (c *Migration) Imported(ctx context.Context, kind string, runs int64) {
	c.runs.Add(ctx, runs, metric.WithAttributes(attribute.String("kind", kind)))
}

// Failed counts a failed pass (signalbox_migration_failures_total).
func (c *Migration) Failed(ctx context.Context) { c.failures.Add(ctx, 1) }
