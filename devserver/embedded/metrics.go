package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
)

const (
	// maxSeries bounds the label sets of a metric; what exceeds it is one series with the label otel_metric_overflow.
	maxSeries = 500
	// headerTimeout bounds the headers of a scrape.
	headerTimeout = 5 * time.Second
)

// metricsPage measures Temporal and serves its own metrics to Prometheus, with the names of Temporal's documentation.
type metricsPage struct {
	listener net.Listener
	provider *sdkmetric.MeterProvider
	server   *http.Server
	handler  metrics.Handler
}

var _ metrics.OpenTelemetryProvider = (*metricsPage)(nil)

// serveMetrics serves /metrics on the port of 127.0.0.1; 0 takes a free one.
func serveMetrics(ctx context.Context, port int, logger log.Logger) (_ *metricsPage, err error) {
	p := &metricsPage{}
	if p.listener, err = listen(ctx, port, "--temporal-metrics-port (--metrics-port for `dev temporal`)"); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutUnits(),
		exporter.WithoutCounterSuffixes(), exporter.WithoutScopeInfo(),
		exporter.WithoutTargetInfo())
	if err == nil {
		p.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(maxSeries),
			sdkmetric.WithView(buckets(metrics.Seconds, .001, .005, .01, .05, .1, .5, 1, 5, 10, 60, 600)),
			sdkmetric.WithView(buckets(metrics.Bytes, 1<<10, 16<<10, 128<<10, 1<<20, 4<<20, 16<<20)),
			sdkmetric.WithView(buckets(metrics.Dimensionless, 1, 10, 100, 1000, 10_000)))
		var all metrics.Handler
		all, err = metrics.NewOtelMetricsHandler(logger, p, metrics.ClientConfig{}, true)
		p.handler = measured{all: all}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the metrics of the embedded Temporal: %w", err), p.listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	go func() { _ = p.server.Serve(p.listener) }() // it ends with close
	return p, nil
}

// buckets sets the upper bounds of the buckets of all histograms of a unit.
func buckets(unit string, bounds ...float64) sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: unit},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: bounds}})
}

// GetMeter implements [metrics.OpenTelemetryProvider].
func (p *metricsPage) GetMeter() metric.Meter { return p.provider.Meter("temporal") }

// Stop implements [metrics.OpenTelemetryProvider]. The page outlives the services, which call it while they stop.
func (*metricsPage) Stop(log.Logger) {}

// url returns the address of the metrics.
func (p *metricsPage) url() string { return "http://" + p.listener.Addr().String() + "/metrics" }

// close ends the listener and open scrapes.
func (p *metricsPage) close() error { return p.server.Close() }
