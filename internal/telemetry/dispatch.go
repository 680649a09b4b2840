package telemetry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// Dispatch returns the metrics handler of the dispatchers (dispatcher_active, dispatcher_takeovers_total, ...). Names
// are exported unchanged. Of the tags, only those that do not grow with restarts become labels: outcome, reason and
// result, and project of the counters whose alert names the project; the SDK adds others when a workflow requests its
// handler. Timers have buckets from a millisecond to two minutes. [Telemetry.ObserveDispatch] exports the gauges per
// project, together with the values from the database.
func (t *Telemetry) Dispatch() client.MetricsHandler {
	for name, description := range descriptions() {
		t.empty.describe(name, description, seconds())
	}
	return dispatch{MetricsHandler: t.handler(scope), active: t.active, empty: t.empty}
}

// countedByProject lists the counters with the label project. The alerts DeadLetters, TerminateErrors and
// WorkerEvictionsHigh count their increases by project, so they exist at 0 before the first event.
func countedByProject() []string {
	return []string{
		"dispatcher_deliveries_total", "dispatcher_terminate_errors_total", "dispatcher_worker_evictions_total"}
}

// dispatch filters tags, and stores the gauges of projects.
type dispatch struct {
	temporalotel.MetricsHandler

	active  *activeDispatchers
	empty   *emptyHistograms
	project string
}

// WithTags returns a handler with additional labels.
func (d dispatch) WithTags(tags map[string]string) client.MetricsHandler {
	labels := map[string]string{}
	for _, name := range []string{"outcome", "reason", "result"} {
		if value, ok := tags[name]; ok {
			labels[name] = value
		}
	}
	d.MetricsHandler = *temporalotel.ExtractMetricsHandler(d.MetricsHandler.WithTags(labels))
	if project, ok := tags["project"]; ok {
		d.project = project
	}
	return d
}

// Counter returns the counter with that name.
func (d dispatch) Counter(name string) client.MetricsCounter {
	if slices.Contains(countedByProject(), name) {
		return d.MetricsHandler.WithTags(map[string]string{"project": d.project}).Counter(name)
	}
	return d.MetricsHandler.Counter(name)
}

// Gauge returns the gauge with that name. Of those that [Telemetry.ObserveDispatch] exports, only dispatcher_active
// takes its value from this process; the others ignore it.
func (d dispatch) Gauge(name string) client.MetricsGauge {
	switch {
	case name == activeGauge:
		return gauge(func(value float64) { d.active.set(d.project, value) })
	case slices.Contains(projectGauges(), name):
		return gauge(func(float64) {})
	}
	return d.MetricsHandler.Gauge(name)
}

// Timer returns the timer with that name; its series exists from now on.
func (d dispatch) Timer(name string) client.MetricsTimer {
	labels := d.GetAttributes()
	d.empty.begin(name, labels)
	return timer{MetricsTimer: d.MetricsHandler.Timer(name), measured: func() { d.empty.measured(name, labels) }}
}

type timer struct {
	client.MetricsTimer

	measured func()
}

// Record implements [client.MetricsTimer].
func (t timer) Record(took time.Duration) {
	t.measured()
	t.MetricsTimer.Record(took)
}

type gauge func(float64)

// Update implements [client.MetricsGauge].
func (g gauge) Update(value float64) { g(value) }

// activeGauge counts the dispatchers that this process owns.
const activeGauge = "dispatcher_active"

// projectGauges lists the gauges that [Telemetry.ObserveDispatch] exports.
func projectGauges() []string {
	return []string{
		activeGauge, "dispatcher_stale", "dispatcher_duplicates", "dispatcher_foreign", "dispatcher_inbox_lag_seconds",
		"dispatcher_inbox_pending",
	}
}

// activeDispatchers are the last values of dispatcher_active by project, as this process's dispatchers reported them.
type activeDispatchers struct {
	mu        sync.Mutex
	byProject map[string]float64
}

func (a *activeDispatchers) set(project string, value float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byProject[project] = value
}

func (a *activeDispatchers) values() map[string]float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.byProject)
}

// conditionsTimeout bounds the query of conditions, which Temporal may answer slowly: a scrape usually has ten seconds,
// and often five.
const conditionsTimeout = 3 * time.Second

// Dispatching are the sources of the dispatcher gauges, read on every scrape.
type Dispatching struct {
	// Dispatchers reads, with a context that ends soon, the dispatchers of all projects from state that all processes
	// share. Those of parked projects are not exported. After an error, the conditions stay as they were; so do those of a
	// project with an unknown state.
	Dispatchers func(ctx context.Context) ([]dispatchtype.Dispatcher, error)
	// Backlogs reads, with a context that ends soon, the pending work of all projects. After an error, lag and backlog
	// stay as they were.
	Backlogs func(ctx context.Context) ([]event.Backlog, error)
	// Begin creates the series of a project, at 0. It is called once per project, before the first scrape that includes
	// it.
	Begin func(project string)
	// Usable reports whether Temporal can be used: without it, no dispatcher counts as active.
	Usable func() bool
}

// ObserveDispatch registers the gauges of dispatchers by project, on every process, whether or not it serves the
// project (dispatcher_inbox_lag_seconds, dispatcher_inbox_pending, dispatcher_stale, dispatcher_active,
// dispatcher_duplicates, dispatcher_foreign). All but dispatcher_active are the same on all processes, and are queried
// with "max by (project)". It is called once, before the first scrape.
func (t *Telemetry) ObserveDispatch(seen Dispatching) error {
	meter := t.Meter(scope)
	described := descriptions()
	gauges := map[string]metric.Float64ObservableGauge{}
	var instruments []metric.Observable
	var errs []error
	for _, name := range projectGauges() {
		made, err := meter.Float64ObservableGauge(name, metric.WithDescription(described[name]))
		gauges[name], errs = made, append(errs, err)
		instruments = append(instruments, made)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	kept := keptConditions{read: seen.Dispatchers}
	dispatchers := readStored(t, conditionsTimeout, "dispatchers", kept.next)
	begun := beginning{begin: seen.Begin}
	backlogs := readStored(t, readTimeout, "inbox", func(ctx context.Context) ([]event.Backlog, error) {
		list, err := seen.Backlogs(ctx)
		begun.add(list)
		return list, err
	})
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		counted, _ := dispatchers.last()
		waiting, _ := backlogs.last()
		for name, values := range t.active.gather(waiting, counted, seen.Usable()) {
			for project, value := range values {
				o.ObserveFloat64(gauges[name], value, metric.WithAttributes(attribute.String("project", project)))
			}
		}
		return nil
	}, instruments...)
	return err
}

// beginning creates the series of projects, once for each.
type beginning struct {
	begin func(project string)
	mu    sync.Mutex
	begun map[string]bool
}

func (b *beginning) add(backlogs []event.Backlog) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun == nil {
		b.begun = map[string]bool{}
	}
	for _, one := range backlogs {
		if !b.begun[one.Project] {
			b.begun[one.Project] = true
			b.begin(one.Project)
		}
	}
}

// conditions counts the unhealthy dispatchers of a project.
type conditions struct{ stale, duplicates, foreign int }

// keptConditions keeps the last known conditions of projects whose state is not known.
type keptConditions struct {
	read func(context.Context) ([]dispatchtype.Dispatcher, error)
	mu   sync.Mutex
	last map[string]conditions
}

func (k *keptConditions) next(ctx context.Context) (map[string]conditions, error) {
	found, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	counts, unknown := countConditions(found)
	k.mu.Lock()
	defer k.mu.Unlock()
	for project := range unknown {
		if before, known := k.last[project]; known {
			counts[project] = before
		}
	}
	k.last = counts
	return counts, nil
}

// countConditions counts the unhealthy dispatchers by project, and returns the projects with an unknown state, which
// are left out.
func countConditions(found []dispatchtype.Dispatcher) (counts map[string]conditions, unknown map[string]bool) {
	counts, unknown = map[string]conditions{}, map[string]bool{}
	for i := range found {
		d := &found[i]
		project := d.Name.Project
		if d.Unserved {
			continue // a parked project has no series
		}
		if len(d.Errors) > 0 || d.Status == dispatchtype.Unknown && d.Execution != nil {
			unknown[project] = true
		}
		c := counts[project]
		c.stale += d.Stale
		c.duplicates += len(d.Others)
		if d.Execution == nil && len(d.Others) > 0 {
			c.duplicates--
		}
		c.foreign += len(d.Unknown)
		if d.Status == dispatchtype.Foreign {
			c.foreign++
		}
		counts[project] = c
	}
	maps.DeleteFunc(counts, func(project string, _ conditions) bool { return unknown[project] })
	return counts, unknown
}

// gather merges the values of this process with those that all processes share, by name and project.
func (a *activeDispatchers) gather(backlogs []event.Backlog, counted map[string]conditions,
	usable bool) map[string]map[string]float64 {
	active, stale, lag, pending := a.values(), map[string]float64{}, map[string]float64{}, map[string]float64{}
	duplicates, foreign := map[string]float64{}, map[string]float64{}
	for project, c := range counted {
		stale[project], duplicates[project], foreign[project] = float64(c.stale), float64(c.duplicates), float64(c.foreign)
	}
	listed := make(map[string]bool, len(backlogs))
	for _, b := range backlogs {
		listed[b.Project] = true
		active[b.Project] += 0
		if b.Orphan {
			stale[b.Project] = max(stale[b.Project], 1)
		}
		lag[b.Project], pending[b.Project] = b.Oldest.Seconds(), float64(b.Pending)
	}
	// A parked project has no owner, which the alert DispatcherMissing would report.
	maps.DeleteFunc(active, func(project string, value float64) bool { return value == 0 && !listed[project] })
	if !usable {
		for project := range active {
			active[project] = 0
		}
	}
	return map[string]map[string]float64{
		activeGauge: active, "dispatcher_stale": stale, "dispatcher_duplicates": duplicates, "dispatcher_foreign": foreign,
		"dispatcher_inbox_lag_seconds": lag, "dispatcher_inbox_pending": pending,
	}
}

// dispatchers sets the buckets and descriptions of the dispatchers' metrics, which the SDK's handlers cannot set.
func dispatchers() sdkmetric.View {
	described := descriptions()
	return func(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
		if !strings.HasPrefix(i.Name, "dispatcher_") {
			return sdkmetric.Stream{}, false
		}
		stream := sdkmetric.Stream{Name: i.Name, Description: described[i.Name], Unit: i.Unit}
		if i.Kind == sdkmetric.InstrumentKindHistogram {
			stream.Aggregation = sdkmetric.AggregationExplicitBucketHistogram{Boundaries: seconds()}
		}
		return stream, true
	}
}

// descriptions returns the descriptions of the dispatchers' metrics, by name.
func descriptions() map[string]string {
	return map[string]string{
		"dispatcher_active": "Dispatchers that this process owns, by project; 0 while it " +
			"cannot use Temporal.",
		"dispatcher_stale": "Dispatchers that a supervisor has to clean up, or whose " +
			"owner is gone while work is due, of all processes.",
		"dispatcher_terminations_total":   "Dispatchers that were terminated, by reason.",
		"dispatcher_cleanup_errors_total": "Failures to remove what stale dispatchers left behind.",
		"dispatcher_takeovers_total":      "Attempts to own a dispatcher, by outcome.",
		"dispatcher_takeover_seconds": "Time until a dispatcher has its next owner: from the last " +
			"renewal of one that crashed, otherwise from when the lease was won.",
		"dispatcher_stale_cleanups_total": "Stale dispatchers and entries that were cleaned up.",
		"dispatcher_cleanup_seconds": "Time from the last heartbeat of a stale dispatcher or entry " +
			"until it was cleaned up.",
		"dispatcher_worker_evictions_total": "Workers that dispatchers evicted.",
		"dispatcher_duplicates": "Dispatchers that are open beside the one that should be, of " +
			"the same project and task queue, of all processes.",
		"dispatcher_terminate_errors_total": "Failures to terminate a dispatcher.",
		"dispatcher_supervisor_last_cycle_timestamp_seconds": "When the supervisor of this process last ended a cycle, in " +
			"seconds since 1970. Absent before the end of the first one, and in a process without the worker role.",
		"dispatcher_supervisor_cycles_total":  "Cycles of the supervisor, by result.",
		"dispatcher_supervisor_cycle_seconds": "Duration of the cycles of the supervisor.",
		"dispatcher_inbox_lag_seconds": "Age of the oldest event that is not matched, or has a delivery that is " +
			"neither done nor dead, of all processes. Deliveries that are retried count.",
		"dispatcher_inbox_pending": "Events that are not matched yet, and deliveries that are neither done nor given " +
			"up, of all processes.",
		"dispatcher_foreign": "Dispatchers whose workflow ID a foreign workflow uses, and foreign dispatchers on " +
			"the task queues of projects, of all processes.",
		"dispatcher_deliveries_total": "Attempts to deliver an event, by outcome.",
	}
}
