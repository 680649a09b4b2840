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
	steps metric.Int64Counter
	start histogram
	queue histogram
	lag   histogram
	late  histogram
	fixed metric.Int64Counter
	built metric.Int64Counter
}

func newRuns(t *Telemetry) (_ *Runs, err error) {
	meter, r := t.Meter(scope), &Runs{}
	var errs [8]error
	r.total, errs[0] = meter.Int64Counter("signalbox.runs",
		metric.WithDescription("Runs that entered a status: queued at the start, then the final status."))
	r.start, errs[1] = t.histogram("signalbox.run.start", "Time from the request to start a run to Temporal's acceptance.",
		seconds())
	r.queue, errs[2] = t.histogram("signalbox.run.queue_wait",
		"Time from the creation of a run to its first task in a worker.", seconds())
	r.lag, errs[3] = t.histogram("signalbox.projection.lag",
		"Time from Temporal's acceptance of a workflow task to its rows in the store.", seconds())
	r.fixed, errs[4] = meter.Int64Counter("signalbox.reconcile.corrections",
		metric.WithDescription("Differences between runs and Temporal that the reconciler found, by kind."))
	r.built, errs[5] = meter.Int64Counter("signalbox.rebuilds",
		metric.WithDescription("Rebuilds of the rows of runs from their histories, by outcome: rebuilt, failed or "+
			"canceled. Only processes with the worker role export it."))
	r.steps, errs[6] = meter.Int64Counter("signalbox.steps",
		metric.WithDescription("Steps of runs that ended in this process, by status. Each entry of a task is a step, in a "+
			"loop one for each turn; the attempts of a call are not."))
	r.late, errs[7] = t.histogram("signalbox.timer.lateness",
		"Time from when a timer of a run was due (a wait, the delay of a retry, a timeout) until a worker received "+
			"it.", seconds())
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	r.lag.begin()
	return r, nil
}

// Counted lists the statuses of runs and of steps that are counted.
type Counted struct{ Runs, Steps []string }

// Begin exports the series of a project with these statuses, at 0.
func (r *Runs) Begin(ctx context.Context, project string, of Counted) {
	for _, status := range of.Runs {
		r.total.Add(ctx, 0, runLabels(project, status))
	}
	for _, status := range of.Steps {
		r.Stepped(ctx, project, status, 0)
	}
	r.start.begin(attribute.String("project", project))
	r.queue.begin(attribute.String("project", project))
	r.late.begin(attribute.String("project", project))
}

func runLabels(project, status string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("project", project), attribute.String("status", status))
}

// Count counts a run of the project that entered the status (signalbox_runs_total).
func (r *Runs) Count(ctx context.Context, project, status string) {
	r.total.Add(ctx, 1, runLabels(project, status))
}

// Stepped counts steps of the project's runs that ended with the status (signalbox_steps_total).
func (r *Runs) Stepped(ctx context.Context, project, status string, count int64) {
	r.steps.Add(ctx, count, runLabels(project, status))
}

// Started records the duration of the start of a run (signalbox_run_start_seconds).
func (r *Runs) Started(ctx context.Context, project string, took time.Duration) {
	r.start.record(ctx, took, attribute.String("project", project))
}

// Waited records how long a run was queued (signalbox_run_queue_wait_seconds).
func (r *Runs) Waited(ctx context.Context, project string, queued time.Duration) {
	r.queue.record(ctx, max(0, queued), attribute.String("project", project))
}

// Fired records how late a timer of a run was (signalbox_timer_lateness_seconds).
func (r *Runs) Fired(ctx context.Context, project string, late time.Duration) {
	r.late.record(ctx, late, attribute.String("project", project))
}

// Projected records how far the store lagged behind Temporal (signalbox_projection_lag_seconds).
func (r *Runs) Projected(ctx context.Context, lag time.Duration) {
	r.lag.record(ctx, lag)
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
