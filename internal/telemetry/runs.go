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
		metric.WithDescription("Runs that entered a status: queued at the start, then the final status. A series appears "+
			"with the first run of a project that enters its status."))
	r.start, errs[1] = t.histogram("signalbox.run.start",
		"Time from the request to start a run to Temporal's acceptance, of all projects.", seconds())
	r.queue, errs[2] = t.histogram("signalbox.run.queue_wait",
		"Time from the creation of a run to its first task in a worker, of all projects.", seconds())
	r.lag, errs[3] = t.histogram("signalbox.projection.lag",
		"Time from Temporal's acceptance of a workflow task to its rows in the store.", seconds())
	r.fixed, errs[4] = meter.Int64Counter("signalbox.reconcile.corrections",
		metric.WithDescription("Differences between runs and Temporal that the reconciler found, by kind."))
	r.built, errs[5] = meter.Int64Counter("signalbox.rebuilds",
		metric.WithDescription("Rebuilds of the rows of runs from their histories, by outcome: rebuilt, failed or "+
			"canceled. Only processes with the worker role export it."))
	r.steps, errs[6] = meter.Int64Counter("signalbox.steps",
		metric.WithDescription("Steps of runs that ended in this process, of all projects, by status. Each entry of a task "+
			"is a step, in a loop one for each turn; the attempts of a call are not."))
	r.late, errs[7] = t.histogram("signalbox.timer.lateness",
		"Time from when a timer of a run was due (a wait, the delay of a retry, a timeout) until a worker received "+
			"it, of all projects.", seconds())
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for _, h := range []histogram{r.start, r.queue, r.lag, r.late} {
		h.begin()
	}
	return r, nil
}

// BeginSteps exports the counter of steps with these statuses, at 0.
func (r *Runs) BeginSteps(ctx context.Context, statuses ...string) {
	for _, status := range statuses {
		r.Stepped(ctx, status, 0)
	}
}

// Count counts a run of the project that entered the status (signalbox_runs_total).
func (r *Runs) Count(ctx context.Context, project, status string) {
	r.total.Add(ctx, 1,
		metric.WithAttributes(attribute.String("project", project), attribute.String("status", status)))
}

// Stepped counts steps that ended with the status (signalbox_steps_total).
func (r *Runs) Stepped(ctx context.Context, status string, count int64) {
	r.steps.Add(ctx, count, metric.WithAttributes(attribute.String("status", status)))
}

// Started records the duration of the start of a run (signalbox_run_start_seconds).
func (r *Runs) Started(ctx context.Context, took time.Duration) { r.start.record(ctx, took) }

// Waited records how long a run was queued (signalbox_run_queue_wait_seconds).
func (r *Runs) Waited(ctx context.Context, queued time.Duration) { r.queue.record(ctx, max(0, queued)) }

// Fired records how late a timer of a run was (signalbox_timer_lateness_seconds).
func (r *Runs) Fired(ctx context.Context, late time.Duration) { r.late.record(ctx, late) }

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
