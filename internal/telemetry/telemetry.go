// Package telemetry measures one platform: OpenTelemetry inside, Prometheus at /metrics.
//
//	tel, err := telemetry.New(telemetry.Options{ServiceName: "signalbox", Version: version, Log: log})
//	err = tel.Observe(telemetry.Observed{Connection: manager.Connection, QueuedRuns: …})
//	mux.Handle("/metrics", tel.Handler())
//	defer tel.Stop(ctx)
//
// Each Telemetry has a registry and a meter provider of its own; OpenTelemetry's and Prometheus's globals
// are neither set nor read, so two platforms in one process count apart. Names are fixed (they are what
// dashboards and alerts are written on), and no label's values grow with runs, restarts or server IDs.
//
// It exports by being scraped only: nothing is sent anywhere, and there are no traces.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.temporal.io/sdk/client"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"
)

// scope is the instrumentation scope of our own metrics.
const scope = "github.com/signalbox-dev/signalbox"

// Options names the process and says where faults in measuring are logged.
type Options struct {
	ServiceName string
	Version     string
	Log         *slog.Logger
}

// Telemetry is the metrics of one platform. Runs and API are ready to use from New on.
type Telemetry struct {
	Runs *Runs
	// Retention counts what is deleted because it is not to be kept.
	Retention *Retention
	// Cutover counts what comes from an older engine's database.
	Cutover *Cutover
	API     *API

	figures *figures
	// prepare reads what a scrape shows; nil: nothing.
	prepare func(ctx context.Context)

	registry *prometheus.Registry
	provider *sdkmetric.MeterProvider
	log      *slog.Logger
	now      func() time.Time
}

// New builds the registry and every instrument.
func New(options Options) (*Telemetry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	exporter, err := promexporter.New(
		promexporter.WithRegisterer(registry),
		promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		promexporter.WithoutScopeInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("make the Prometheus exporter: %w", err)
	}
	t := &Telemetry{figures: &figures{values: map[string]map[string]float64{}}, registry: registry, log: options.Log, now: time.Now}
	t.provider = sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(exporter),
		sdkmetric.WithResource(resource.NewSchemaless(
			attribute.String("service.name", options.ServiceName),
			attribute.String("service.version", options.Version),
		)),
		sdkmetric.WithView(temporalLatencies(), dispatchers()),
	)
	if t.Runs, err = newRuns(t.Meter(scope)); err != nil {
		return nil, fmt.Errorf("make the metrics of runs: %w", err)
	}
	if t.Retention, err = newRetention(t.Meter(scope)); err != nil {
		return nil, fmt.Errorf("make the metrics of retention: %w", err)
	}
	if t.Cutover, err = newCutover(t.Meter(scope)); err != nil {
		return nil, fmt.Errorf("make the metrics of retention: %w", err)
	}
	if t.API, err = newAPI(t.Meter(scope)); err != nil {
		return nil, fmt.Errorf("make the metrics of the API: %w", err)
	}
	return t, nil
}

// temporalLatencies gives the SDK's timers buckets in seconds. OpenTelemetry's default boundaries are
// made for milliseconds: everything under five seconds would fall into the first.
func temporalLatencies() sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Name: "temporal_*", Kind: sdkmetric.InstrumentKindHistogram},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: seconds()}},
	)
}

// seconds are boundaries from a millisecond to two minutes.
func seconds() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
}

// Start is there for the platform's lifecycle; measuring runs from New on.
func (t *Telemetry) Start(context.Context) error { return nil }

// Stop ends measuring. Instruments may still be used afterwards; they then do nothing.
func (t *Telemetry) Stop(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop telemetry: %w", err)
	}
	return nil
}

// Handler serves the metrics in Prometheus's and OpenMetrics's formats.
func (t *Telemetry) Handler() http.Handler {
	page := promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(t.log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError,
		Registry:      t.registry,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t.prepare != nil {
			t.prepare(r.Context())
		}
		page.ServeHTTP(w, r)
	})
}

// Meter makes instruments of another package, for example a store's.
func (t *Telemetry) Meter(name string) metric.Meter { return t.provider.Meter(name) }

// Temporal is the SDK's metrics handler: its own temporal_* metrics appear beside ours.
func (t *Telemetry) Temporal() client.MetricsHandler { return t.handler("temporal-sdk-go") }

// handler measures what whoever has the SDK's interface measures.
func (t *Telemetry) handler(scope string) client.MetricsHandler {
	return temporalotel.NewMetricsHandler(temporalotel.MetricsHandlerOptions{
		Meter:                t.provider.Meter(scope),
		UseMonotonicCounters: true,
		OnError: func(err error) {
			t.log.Warn("a metric in the form of Temporal's SDK cannot be made", "error", err)
		},
	})
}
