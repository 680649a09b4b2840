package telemetry

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

// Observed are the sources of the gauges. Every scrape reads them; all but QueuedRuns must not block.
type Observed struct {
	// Connection is this process's connection to Temporal.
	Connection func() conntype.Status
	// SharedWorkers are the names of the worker sets that serve no project; the other sets have the names of projects.
	SharedWorkers []string
	// QueuedRuns counts the runs that were accepted while Temporal was unavailable; an error omits the metric. Its context
	// has a short timeout.
	QueuedRuns func(ctx context.Context) (int64, error)
	// QueueLimit is the maximum of such runs; 0 where queue mode is off.
	QueueLimit int64
	// StuckRuns counts the stuck runs by code; false in a process that leaves diagnosis to another one.
	StuckRuns func() (map[string]int64, bool)
	// Mismatch reports whether the runs, or live workers, are in another Temporal than this process.
	Mismatch func() bool
	// Maintenance reports whether the platform is in maintenance; false, false before the process has read it.
	Maintenance func() (on, known bool)
	// Memory returns the memory in use and its limit, in bytes; false for a process without a limit.
	Memory func() (used, limit int64, ok bool)
	// CertificateEnds returns the expiry of the client certificate for Temporal; false if there is none or it cannot be
	// read.
	CertificateEnds func() (time.Time, bool)
}

// readTimeout bounds a read of the database: a scrape must not hang on it.
const readTimeout = time.Second

// gauges are the instruments of the connection and its dependents.
type gauges struct {
	status, running, breaker, queued, stuck, pollers metric.Int64ObservableGauge
	degraded, mismatch, maintenance                  metric.Int64ObservableGauge
	memoryUsed, memoryLimit, queueLimit              metric.Int64ObservableGauge
	attempts                                         metric.Int64ObservableCounter
	uptime, pollAge, certificateEnds                 metric.Float64ObservableGauge
}

// Observe registers the gauges of the connection (temporal_connection_status, temporal_connection_degraded,
// temporal_reconnection_attempts_total, temporal_connection_uptime_seconds, temporal_workers_running,
// temporal_circuit_breaker_state), its pollers (signalbox_queue_pollers, signalbox_queue_last_poll_age_seconds), the
// queue and its limit (signalbox_queue_mode_runs, signalbox_queue_mode_max_runs), the stuck runs
// (signalbox_runs_stuck), the use of different Temporals by processes (signalbox_temporal_mismatch), the maintenance
// mode (signalbox_maintenance), and the memory in use and its limit (signalbox_memory_used_bytes,
// signalbox_memory_limit_bytes). It is called once.
//
// Labels are the address, the namespace and the projects that this process serves: none of them grows with time.
func (t *Telemetry) Observe(seen Observed) error {
	meter := t.Meter(scope)
	g, err := newGauges(meter)
	if err != nil {
		return err
	}
	queued := readStored(t, readTimeout, "queue", seen.QueuedRuns)
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		g.observe(o, seen, t.now())
		if runs, known := queued.last(); known {
			o.ObserveInt64(g.queued, runs)
		}
		if seen.QueueLimit > 0 {
			o.ObserveInt64(g.queueLimit, seen.QueueLimit)
		}
		if counts, ok := seen.StuckRuns(); ok {
			for code, runs := range counts {
				o.ObserveInt64(g.stuck, runs, metric.WithAttributes(attribute.String("code", code)))
			}
		}
		o.ObserveInt64(g.mismatch, oneIf(seen.Mismatch()))
		if on, known := seen.Maintenance(); known {
			o.ObserveInt64(g.maintenance, oneIf(on))
		}
		if used, limit, ok := seen.Memory(); ok {
			o.ObserveInt64(g.memoryUsed, used)
			o.ObserveInt64(g.memoryLimit, limit)
		}
		if ends, ok := seen.CertificateEnds(); ok {
			o.ObserveFloat64(g.certificateEnds, float64(ends.Unix()))
		}
		return nil
	}, g.memoryUsed, g.memoryLimit, g.queueLimit, g.status, g.degraded, g.mismatch, g.maintenance, g.running, g.breaker,
		g.queued, g.stuck, g.pollers, g.attempts, g.uptime, g.pollAge, g.certificateEnds)
	return err
}

func oneIf(condition bool) int64 {
	if condition {
		return 1
	}
	return 0
}

func newGauges(meter metric.Meter) (g gauges, err error) {
	var errs []error
	gauge := func(name, description string) metric.Int64ObservableGauge {
		made, err := meter.Int64ObservableGauge(name, metric.WithDescription(description))
		errs = append(errs, err)
		return made
	}
	seconds := func(name, description string) metric.Float64ObservableGauge {
		made, err := meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
		errs = append(errs, err)
		return made
	}
	g.status = gauge("temporal.connection.status", "Whether Temporal can be used: 1 or 0.")
	g.degraded = gauge("temporal.connection.degraded", "Whether Temporal can be used but has a problem, by kind: 1 or 0.")
	g.mismatch = gauge("signalbox.temporal.mismatch",
		"Whether the runs, or live workers, are in another Temporal than this process: 1 or 0.")
	g.maintenance = gauge("signalbox.maintenance",
		"Whether the platform is in maintenance, so that no new runs start: 1 or 0.")
	g.running = gauge("temporal.workers.running", "Worker sets of this process that run.")
	g.breaker = gauge("temporal.circuit_breaker.state", "State of the circuit breaker: 0 closed, 1 half open, 2 open.")
	g.queued = gauge("signalbox.queue_mode.runs",
		"Runs accepted while Temporal was unavailable that are not submitted yet, of all processes.")
	g.queueLimit = gauge("signalbox.queue_mode.max_runs", "Maximum of runs that queue mode accepts while Temporal is "+
		"unavailable, over all projects. Absent where queue mode is off.")
	g.stuck = gauge("signalbox.runs.stuck",
		"Runs without progress, by the code of the verdict. Only the process that diagnoses runs exports it.")
	g.memoryUsed = gauge("signalbox.memory.used_bytes",
		"Memory in use after the last garbage collection. Only a process with a memory limit exports it.")
	g.memoryLimit = gauge("signalbox.memory.limit_bytes", "Soft memory limit of the process. Absent where it has none.")
	g.pollers = gauge("signalbox.queue.pollers",
		"Task queues that this process polls, for a project, for handed-over calls or for the fires of schedules.")
	g.uptime = seconds("temporal.connection.uptime",
		"Duration of the current connection to Temporal; 0 while there is none.")
	g.pollAge = seconds("signalbox.queue.last_poll.age",
		"Time since this process last polled the task queue that it has not polled for the longest time, of all projects, "+
			"for handed-over calls or for the fires of schedules. Absent before the first poll.")
	g.certificateEnds = seconds("signalbox.temporal.certificate.expiry.timestamp",
		"Expiry of the client certificate for Temporal, in seconds since 1970. Absent if there is none, or it cannot be "+
			"read.")
	var counterErr error
	g.attempts, counterErr = meter.Int64ObservableCounter("temporal.reconnection.attempts",
		metric.WithDescription("Attempts to connect to Temporal since the process started."))
	return g, errors.Join(append(errs, counterErr)...)
}

func (g gauges) observe(o metric.Observer, seen Observed, now time.Time) {
	c := seen.Connection()
	labels := endpointLabels(c.Address, c.Namespace)
	var status, running, breaker int64
	var uptime float64
	if c.State.Up() {
		status = 1
		uptime = age(now, c.Statistics.ConnectedSince)
	}
	switch c.Breaker.State {
	case conntype.BreakerHalfOpen:
		breaker = 1
	case conntype.BreakerOpen:
		breaker = 2
	}
	ages := map[string]float64{}
	for _, set := range c.Workers {
		serves, project := "project", set.Name
		if slices.Contains(seen.SharedWorkers, set.Name) {
			serves, project = set.Name, ""
		}
		var polled int64
		if set.Running {
			running++
		}
		if set.Polling {
			polled = int64(len(set.TaskQueues))
		}
		o.ObserveInt64(g.pollers, polled,
			metric.WithAttributes(attribute.String("serves", serves), attribute.String("project", project)))
		if !set.LastPoll.IsZero() { // before the first poll there is no age
			ages[serves] = max(ages[serves], age(now, set.LastPoll))
		}
	}
	for serves, oldest := range ages {
		o.ObserveFloat64(g.pollAge, oldest, metric.WithAttributes(attribute.String("serves", serves)))
	}
	o.ObserveInt64(g.status, status, labels)
	for _, kind := range []conntype.Kind{conntype.Slow, conntype.Limited, conntype.NotPolling} {
		var degraded int64
		if c.State == conntype.Degraded && c.Kind == kind {
			degraded = 1
		}
		o.ObserveInt64(g.degraded, degraded, labels, metric.WithAttributes(attribute.String("kind", string(kind))))
	}
	o.ObserveInt64(g.attempts, c.Attempts, labels)
	o.ObserveFloat64(g.uptime, uptime, labels)
	o.ObserveInt64(g.running, running, labels)
	o.ObserveInt64(g.breaker, breaker, labels)
}

// age is never negative: clocks differ and can be set back.
func age(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since).Seconds())
}
