package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Runs measures runs.
type Runs struct {
	total metric.Int64Counter
	start metric.Float64Histogram
	lag   metric.Float64Histogram
	fixed metric.Int64Counter
	built metric.Int64Counter
}

func newRuns(meter metric.Meter) (*Runs, error) {
	total, err1 := meter.Int64Counter("signalbox.runs",
		metric.WithDescription("Runs that entered a status: queued at the start, then the final status."))
	start, err2 := meter.Float64Histogram("signalbox.run.start", metric.WithUnit("s"),
		metric.WithDescription("Time from the request to start a run to Temporal's acceptance."),
		metric.WithExplicitBucketBoundaries(seconds()...))
	lag, err3 := meter.Float64Histogram("signalbox.projection.lag", metric.WithUnit("s"),
		metric.WithDescription("Time from Temporal's acceptance of a workflow task to its rows in the store."),
		metric.WithExplicitBucketBoundaries(seconds()...))
	fixed, err4 := meter.Int64Counter("signalbox.reconcile.corrections",
		metric.WithDescription("Differences between runs and Temporal that the reconciler found, by kind."))
	built, err5 := meter.Int64Counter("signalbox.rebuilds",
		metric.WithDescription("Rebuilds of the rows of runs from their histories, by outcome: rebuilt, failed or canceled."))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	return &Runs{total: total, start: start, lag: lag, fixed: fixed, built: built}, nil
}

// Count counts a run of the project that entered the status (signalbox_runs_total).
func (r *Runs) Count(ctx context.Context, project, status string) {
	r.total.Add(ctx, 1, metric.WithAttributes(
		attribute.String("project", project), attribute.String("status", status)))
}

// Started records the duration of the start of a run (signalbox_run_start_seconds).
func (r *Runs) Started(ctx context.Context, project string, took time.Duration) {
	r.start.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("project", project)))
}

// Projected records how far the store lagged behind Temporal (signalbox_projection_lag_seconds).
func (r *Runs) Projected(ctx context.Context, lag time.Duration) {
	r.lag.Record(ctx, lag.Seconds())
}

// BeginCorrections creates the counter of corrections of the kind, at 0.
func (r *Runs) BeginCorrections(ctx context.Context, kind string) {
	r.fixed.Add(ctx, 0, metric.WithAttributes(attribute.String("kind", kind)))
}

// Corrected counts a correction of the kind (signalbox_reconcile_corrections_total).
func (r *Runs) Corrected(ctx context.Context, kind string) {
	r.fixed.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind)))
}

// Rebuilt adds n rebuilds by outcome (signalbox_rebuilds_total).
func (r *Runs) Rebuilt(ctx context.Context, outcome string, n int64) {
	r.built.Add(ctx, n, metric.WithAttributes(attribute.String("outcome", outcome)))
}
