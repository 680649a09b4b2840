package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	prometheusbridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/telemetry/otlp"
	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
)

// stopWithin is the time that a stop waits for the last export.
const stopWithin = 2 * time.Second

// exports are the exports over OTLP. Its zero value exports nothing.
type exports struct {
	spans   *otlp.Spans
	tracer  *tracing.Tracer
	metrics *metricExport
}

// export creates the exporters that the variables configure.
func (t *Telemetry) export(ctx context.Context, options Options, service *resource.Resource,
	process []prometheus.Collector) error {
	if options.Lookup == nil {
		return nil
	}
	settings, err := otlp.Read(options.Lookup)
	if err != nil {
		return err
	}
	// Collectors distinguish the processes of a service by this attribute. A scrape does so by the address.
	named, err := resource.Merge(resource.NewSchemaless(attribute.String("service.instance.id", options.Instance)),
		service)
	if err != nil {
		return err
	}
	t.propagate = settings.Propagate
	if settings.Traces.Enabled {
		if t.exports.spans, err = settings.SpanExporter(ctx, options.Log); err != nil {
			return err
		}
		t.Tracing = tracing.New(ctx,
			tracing.Options{Exporter: t.exports.spans, Resource: named, Propagate: settings.Propagate})
		t.exports.tracer = t.Tracing
	}
	if settings.Metrics.Enabled {
		exporter, err := settings.MetricExporter(ctx, options.Log)
		if err != nil {
			return err
		}
		t.exports.metrics = newMetricExport(t, exporter, settings, named, process)
	}
	return nil
}

// readers returns the options that connect the instruments to the export of metrics.
func (e *exports) readers() []sdkmetric.Option {
	if e.metrics == nil {
		return nil
	}
	return []sdkmetric.Option{sdkmetric.WithReader(e.metrics.reader)}
}

func (e *exports) start(ctx context.Context) error {
	if e.metrics == nil {
		return nil
	}
	return e.metrics.Start(ctx)
}

// stop exports what remains, for as long as a stop waits for it. Failures are logged by the exporters.
func (e *exports) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	var stopping sync.WaitGroup
	if e.tracer != nil {
		stopping.Go(func() {
			defer context.AfterFunc(ctx, e.spans.Abort)()
			_ = e.tracer.Shutdown(ctx)
		})
	}
	if e.metrics != nil {
		stopping.Go(func() {
			defer context.AfterFunc(ctx, e.metrics.exporter.Abort)()
			e.metrics.stop(ctx)
		})
	}
	stopping.Wait()
}

// metricExport exports the metrics periodically. It is no periodic reader of OpenTelemetry, because values are read
// before the instruments are collected: see [readBefore].
type metricExport struct {
	*loop.Loop

	reader   *sdkmetric.ManualReader
	exporter *otlp.Metrics
	resource *resource.Resource
	read     func(ctx context.Context)
	timeout  time.Duration
}

func newMetricExport(t *Telemetry, exporter *otlp.Metrics, settings otlp.Settings, named *resource.Resource,
	process []prometheus.Collector) *metricExport {
	// The page at /metrics has the process's own collectors beside the instruments, and so has the export.
	collected := prometheus.NewRegistry()
	collected.MustRegister(process...)
	options := []sdkmetric.ManualReaderOption{
		sdkmetric.WithTemporalitySelector(exporter.Temporality), sdkmetric.WithAggregationSelector(exporter.Aggregation),
		sdkmetric.WithProducer(prometheusbridge.NewMetricProducer(prometheusbridge.WithGatherer(collected))),
	}
	if exporter.Temporality(sdkmetric.InstrumentKindHistogram) == metricdata.CumulativeTemporality {
		options = append(options, sdkmetric.WithProducer(t.empty)) // there is no delta without a measurement
	}
	e := &metricExport{
		reader: sdkmetric.NewManualReader(options...), exporter: exporter, resource: named, read: t.read,
		timeout: settings.MetricTimeout,
	}
	due := false
	e.Loop = loop.New(func(ctx, work context.Context) time.Duration {
		if due {
			e.read(ctx)
			e.export(work)
		}
		due = true // the first export follows an interval
		return settings.MetricInterval
	})
	return e
}

// export exports the present values. It does nothing after the provider of the instruments has stopped.
func (e *metricExport) export(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	var metrics metricdata.ResourceMetrics
	if e.reader.Collect(ctx, &metrics) != nil {
		return
	}
	metrics.Resource = e.resource
	_ = e.exporter.Export(ctx, &metrics)
}

// stop exports the last values. What is read from the database remains as in the export before: the database is closed
// already.
func (e *metricExport) stop(ctx context.Context) {
	_ = e.Stop(ctx)
	e.export(ctx)
	_ = e.exporter.Shutdown(ctx)
}
