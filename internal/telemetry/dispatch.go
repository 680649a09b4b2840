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
)

// Dispatch is the metrics handler of the dispatchers (dispatcher_active, dispatcher_takeovers_total, ...). Names go out as they
// come in. Of the tags, those alone become labels that do not grow with restarts: outcome, project, reason and result; the SDK adds
// others where a workflow asks for its handler. Timers have buckets from a millisecond to two minutes. The gauges that describe projects
// are shown by [Telemetry.ObserveDispatch], beside what the database has of them.
func (t *Telemetry) Dispatch() client.MetricsHandler {
	return dispatch{MetricsHandler: t.handler(scope), figures: t.figures}
}

// dispatch lets some tags through, and keeps the gauges of projects.
type dispatch struct {
	client.MetricsHandler

	figures *figures
	project string
}

// WithTags returns a handler with more labels.
func (d dispatch) WithTags(tags map[string]string) client.MetricsHandler {
	labels := map[string]string{}
	for _, name := range []string{"outcome", "project", "reason", "result"} {
		if value, ok := tags[name]; ok {
			labels[name] = value
		}
	}
	d.MetricsHandler = d.MetricsHandler.WithTags(labels)
	if project, ok := tags["project"]; ok {
		d.project = project
	}
	return d
}

// Gauge returns the gauge of that name.
func (d dispatch) Gauge(name string) client.MetricsGauge {
	if !slices.Contains(projectGauges(), name) {
		return d.MetricsHandler.Gauge(name)
	}
	return gauge(func(value float64) { d.figures.set(name, d.project, value) })
}

type gauge func(float64)

// Update implements [client.MetricsGauge].
func (g gauge) Update(value float64) { g(value) }

// projectGauges are the gauges that this process and the database have parts of.
func projectGauges() []string {
	return []string{
		"dispatcher_active", "dispatcher_stale", "dispatcher_duplicates", "dispatcher_foreign", "dispatcher_inbox_lag_seconds", "dispatcher_inbox_pending",
	}
}

// figures are the last values of gauges of projects, by name and project, as this process's dispatchers reported them.
type figures struct {
	mu     sync.Mutex
	values map[string]map[string]float64
}

func (f *figures) set(name, project string, value float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.values[name] == nil {
		f.values[name] = map[string]float64{}
	}
	f.values[name][project] = value
}

func (f *figures) of(name string) map[string]float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.values[name])
}

// Backlog is what a project has to do, as the database has it.
type Backlog struct {
	Project string
	// Pending counts events and deliveries that wait, Lag is the age of the oldest that is due.
	Pending int64
	Lag     time.Duration
	// Orphan: work is due, and the last owner of the project's dispatcher is gone.
	Orphan bool
}

// Dispatching is what is read of dispatchers whenever the metrics are scraped.
type Dispatching struct {
	// Backlogs reads what all projects have to do, with a context that ends soon. An error leaves lag and backlog out: they are not known.
	Backlogs func(ctx context.Context) ([]Backlog, error)
	// Begin makes the counters of a project, at 0. It is called once for each project, before the scrape that first shows it.
	Begin func(project string)
	// Usable reports whether Temporal can be used: without it, no dispatcher is known to be active.
	Usable func() bool
}

// ObserveDispatch begins to show the gauges of dispatchers by project, on every process, whether or not it works for the project
// (dispatcher_inbox_lag_seconds, dispatcher_inbox_pending, dispatcher_stale, dispatcher_active, dispatcher_duplicates, dispatcher_foreign).
// All processes show the same backlog: it is read with "max by (project)". It is called once, before the first scrape.
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
	var mu sync.Mutex // of what the last preparation read; a scrape is prepared and then collected
	var backlogs []Backlog
	begun := map[string]bool{}
	t.prepare = func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, queueTimeout)
		defer cancel()
		read, err := seen.Backlogs(ctx)
		mu.Lock()
		defer mu.Unlock()
		backlogs = nil
		if err != nil {
			return
		}
		backlogs = read
		for _, b := range backlogs {
			if !begun[b.Project] {
				begun[b.Project] = true
				seen.Begin(b.Project)
			}
		}
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		mu.Lock()
		known := slices.Clone(backlogs)
		mu.Unlock()
		for name, values := range t.figures.gather(known, seen.Usable()) {
			for project, value := range values {
				o.ObserveFloat64(gauges[name], value, metric.WithAttributes(attribute.String("project", project)))
			}
		}
		return nil
	}, instruments...)
	return err
}

// gather joins what this process reported with what the database has, by name and project.
func (f *figures) gather(backlogs []Backlog, usable bool) map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for _, name := range projectGauges() {
		all[name] = map[string]float64{}
		if !strings.HasPrefix(name, "dispatcher_inbox_") { // of a backlog, a process knows what its last cycle read: the database knows better
			maps.Copy(all[name], f.of(name))
		}
	}
	for _, b := range backlogs {
		for _, name := range []string{"dispatcher_active", "dispatcher_stale", "dispatcher_duplicates", "dispatcher_foreign"} {
			all[name][b.Project] += 0
		}
		if b.Orphan {
			all["dispatcher_stale"][b.Project] = max(all["dispatcher_stale"][b.Project], 1)
		}
		all["dispatcher_inbox_lag_seconds"][b.Project] = b.Lag.Seconds()
		all["dispatcher_inbox_pending"][b.Project] = float64(b.Pending)
	}
	if !usable {
		for project := range all["dispatcher_active"] {
			all["dispatcher_active"][project] = 0
		}
	}
	return all
}

// dispatchers gives the dispatchers' metrics their buckets and descriptions, which the SDK's handlers cannot name.
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

// descriptions of the dispatchers' metrics, by name.
func descriptions() map[string]string {
	return map[string]string{
		"dispatcher_active":                                  "Dispatchers that this process owns, by project; 0 while it cannot use Temporal.",
		"dispatcher_stale":                                   "Dispatchers that the supervisor found stale and that are not cleaned up, or whose owner is gone while work is due.",
		"dispatcher_terminations_total":                      "Dispatchers that were terminated, by reason.",
		"dispatcher_cleanup_errors_total":                    "Failures to remove what stale dispatchers left behind.",
		"dispatcher_takeovers_total":                         "Attempts to own a dispatcher, by outcome.",
		"dispatcher_takeover_seconds":                        "Time until a dispatcher has its next owner: from the last renewal of one that crashed, otherwise from when the lease was won.",
		"dispatcher_stale_cleanups_total":                    "Stale dispatchers and entries that were cleaned up.",
		"dispatcher_cleanup_seconds":                         "Time from the last sign of life of what became stale until it was cleaned up.",
		"dispatcher_worker_evictions_total":                  "Workers that dispatchers struck off their lists.",
		"dispatcher_duplicates":                              "Dispatchers that are open beside the one that should be, of the same project and task queue.",
		"dispatcher_terminate_errors_total":                  "Failures to terminate a dispatcher.",
		"dispatcher_supervisor_last_cycle_timestamp_seconds": "When the supervisor of this process last ended a cycle, in seconds since 1970.",
		"dispatcher_supervisor_cycles_total":                 "Cycles of the supervisor, by result.",
		"dispatcher_supervisor_cycle_seconds":                "How long a cycle of the supervisor takes.",
		"dispatcher_inbox_lag_seconds":                       "Age of the oldest event that waits to be matched or delivered, of all processes.",
		"dispatcher_inbox_pending":                           "Events that are not matched yet, and deliveries that are neither done nor given up, of all processes.",
		"dispatcher_foreign":                                 "Dispatchers whose workflow ID is taken by a workflow that is none of ours.",
		"dispatcher_deliveries_total":                        "Attempts to deliver an event, by outcome.",
	}
}
