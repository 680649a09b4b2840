// Package telemetry provides the metrics and traces of one platform: OpenTelemetry inside, Prometheus at /metrics, and
// OTLP where the OTEL_* variables configure it.
//
//	tel, err := telemetry.New(ctx, telemetry.Options{ServiceName: "signalbox", Version: version, Lookup: os.LookupEnv, Log: log})
//	err = tel.Observe(telemetry.Observed{Connection: manager.Status, QueuedRuns: …})
//	mux.Handle("/metrics", tel.Handler())
//	defer tel.Stop(ctx)
//
// Each Telemetry has its own registry and providers; the globals of OpenTelemetry and Prometheus are neither set nor
// read, so two platforms in one process are counted separately. Names are stable, because dashboards and alerts depend
// on them, and no label's values grow with runs, restarts or server IDs.
//
// A platform has hundreds of projects, and each series of a project is there that often in each process. So only gauges
// and counters have the label project, and of these only those whose alert or panel names the project; histograms are
// of all projects. A counter of a project exists at 0 from its creation if an alert counts its increase, which would
// miss the first event; the others appear with their first event. A test holds the number of series of a project.
//
// Package otlp reads the variables and exports, package tracing makes the spans.
package telemetry

//go:generate go run ../generate metrics ../.. ../../docs/reference/metrics.md

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/signalbox-dev/signalbox/internal/telemetry/otlp"
	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
)

// scope is the instrumentation scope of this platform's own metrics.
const scope = "github.com/signalbox-dev/signalbox"

// Options configure a Telemetry.
type Options struct {
	ServiceName string
	Version     string
	// Instance names the process among those of the service, in what is exported over OTLP.
	Instance string
	// Lookup reads environment variables. nil: nothing is exported over OTLP.
	Lookup otlp.Lookup
	// Log receives errors of the measurement and of exports.
	Log *slog.Logger
}

// Telemetry holds the metrics of one platform. Runs and API can be used as soon as New has returned.
type Telemetry struct {
	Runs *Runs
	// Retention counts the data deleted by retention.
	Retention *Retention
	// Migration counts runs copied from an older engine's database.
	Migration *Migration
	API       *API
	// Webhooks counts attempts to deliver events to webhooks.
	Webhooks *Webhooks
	// Problems measures how long problems are open.
	Problems *Problems
	// Batches counts the outcomes of the runs that batches started.
	Batches *Batches
	// Programs counts the programs of workflows.
	Programs *Programs
	// Tracing makes spans; nil if there are no traces.
	Tracing *tracing.Tracer

	active *activeDispatchers
	empty  *emptyHistograms
	gauges *gaugeSums
	// reads are made by every scrape before it collects the instruments.
	reads []func(ctx context.Context)
	// ages report how old the values are that were read from the database.
	ages []func(metric.Observer, metric.Float64Observable)

	registry  *prometheus.Registry
	exports   exports
	propagate bool
	provider  *sdkmetric.MeterProvider
	log       *slog.Logger
	now       func() time.Time
}

// New creates the registry, all instruments and the exporters. These do not connect yet.
func New(ctx context.Context, options Options) (*Telemetry, error) {
	registry := prometheus.NewRegistry()
	process := []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
	registry.MustRegister(process...)
	empty := newEmptyHistograms(time.Now())
	exporter, err := promexporter.New(
		promexporter.WithRegisterer(registry),
		promexporter.WithProducer(empty),
		promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		promexporter.WithoutScopeInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("make the Prometheus exporter: %w", err)
	}
	service, err := describe(ctx, options)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{active: &activeDispatchers{byProject: map[string]float64{}}, empty: empty, gauges: newGaugeSums(),
		registry: registry, log: options.Log, now: time.Now}
	if err := t.export(ctx, options, service, process); err != nil {
		return nil, err
	}
	t.provider = sdkmetric.NewMeterProvider(append(t.exports.readers(),
		sdkmetric.WithReader(exporter),
		sdkmetric.WithResource(service),
		sdkmetric.WithView(temporalLatencies(), dispatchers()),
		// The default limit is 2,000 series per instrument, without regard to labels that the number of projects bounds.
		sdkmetric.WithCardinalityLimit(0),
	)...)
	return t, t.create(options.Version)
}

// describe returns the resource of the process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func describe(ctx context.Context, options Options) (*resource.Resource, error) {
	own := resource.WithAttributes(attribute.String("service.name", options.ServiceName),
		attribute.String("service.version", options.Version))
	if options.Lookup == nil {
		return resource.New(ctx, own)
	}
	described, err := resource.New(ctx, own, resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w; give name=value, separated by commas", err)
	}
	return described, nil
}

// create creates the instruments that need no source.
func (t *Telemetry) create(version string) error {
	meter := t.Meter(scope)
	var errs [10]error
	t.Runs, errs[0] = newRuns(t)
	t.Retention, errs[1] = newRetention(meter)
	t.Migration, errs[2] = newMigration(meter)
	t.Problems, errs[3] = newProblems(meter)
	t.API, errs[4] = newAPI(meter)
	t.Webhooks, errs[5] = newWebhooks(meter)
	t.Batches, errs[6] = newBatches(meter)
	errs[7] = buildInfo(meter, version)
	errs[8] = t.observeAges()
	t.Programs, errs[9] = newPrograms(meter)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("create the instruments: %w", err)
	}
	return nil
}

// temporalLatencies sets the buckets of the SDK's timers in seconds. OpenTelemetry's default boundaries are for
// milliseconds: all values under five seconds would be in the first bucket.
func temporalLatencies() sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Name: "temporal_*", Kind: sdkmetric.InstrumentKindHistogram},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: seconds()}},
	)
}

// seconds returns the boundaries from a millisecond to two minutes.
func seconds() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
}

// Start begins the export of metrics; measuring begins with New.
func (t *Telemetry) Start(ctx context.Context) error { return t.exports.start(ctx) }

// Stop exports what remains, within a bounded part of ctx, and ends measuring. Instruments can still be called
// afterwards without effect.
func (t *Telemetry) Stop(ctx context.Context) error {
	t.exports.stop(ctx)
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop telemetry: %w", err)
	}
	return nil
}

// Interceptors returns those of the API's handlers: they trace and measure calls.
func (t *Telemetry) Interceptors() []connect.Interceptor {
	if t.Tracing == nil {
		return []connect.Interceptor{t.API}
	}
	return []connect.Interceptor{t.Tracing.Interceptor(), t.API}
}

// Propagates reports whether the trace contexts of calls are sent to called services.
func (t *Telemetry) Propagates() bool { return t.propagate && t.Tracing != nil }

// Handler serves the metrics in Prometheus's and OpenMetrics's formats.
func (t *Telemetry) Handler() http.Handler {
	return t.readingFirst(promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(t.log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError,
		Registry:      t.registry,
	}))
}

// Meter returns a meter for the instruments of another package, for example a store's.
func (t *Telemetry) Meter(name string) metric.Meter { return t.provider.Meter(name) }

// handler adapts the SDK's metrics interface to this registry.
func (t *Telemetry) handler(scope string) temporalotel.MetricsHandler {
	return temporalotel.NewMetricsHandler(temporalotel.MetricsHandlerOptions{
		Meter:                t.provider.Meter(scope),
		UseMonotonicCounters: true,
		OnError: func(err error) {
			t.log.Warn("A metric of Temporal's SDK cannot be created", "error", err)
		},
	})
}
