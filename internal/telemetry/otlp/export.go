package otlp

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Spans exports spans. Its failures are logged, not returned.
type Spans struct {
	exporter *otlptrace.Exporter
	report   *report
	*lifetime
}

var _ sdktrace.SpanExporter = (*Spans)(nil)

// SpanExporter returns the exporter of spans. Traces must be enabled.
func (s Settings) SpanExporter(ctx context.Context, log *slog.Logger) (*Spans, error) {
	exporter, err := s.traceClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("make the exporter of traces: %w", err)
	}
	return &Spans{exporter: exporter, report: newReport(log, "Traces", "spans"), lifetime: newLifetime(ctx)}, nil
}

func (s Settings) traceClient(ctx context.Context) (*otlptrace.Exporter, error) {
	if s.Traces.Protocol == GRPC {
		var options []otlptracegrpc.Option
		if s.Traces.fallback != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(s.Traces.fallback))
		}
		return otlptracegrpc.New(ctx, options...)
	}
	var options []otlptracehttp.Option
	if s.Traces.fallback != "" {
		options = append(options, otlptracehttp.WithEndpointURL(s.Traces.fallback))
	}
	return otlptracehttp.New(ctx, options...)
}

// ExportSpans implements [sdktrace.SpanExporter]. It always returns nil.
func (s *Spans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, done := s.bound(ctx)
	defer done()
	s.report.exported(ctx, len(spans), s.exporter.ExportSpans(ctx, spans))
	return nil
}

// Shutdown implements [sdktrace.SpanExporter].
func (s *Spans) Shutdown(ctx context.Context) error {
	defer s.end()
	return s.exporter.Shutdown(ctx)
}

// Metrics exports metrics. Its failures are logged, not returned.
type Metrics struct {
	sdkmetric.Exporter // of OTLP, over gRPC or HTTP

	report *report
	*lifetime
}

// MetricExporter returns the exporter of metrics. Metrics must be enabled.
func (s Settings) MetricExporter(ctx context.Context, log *slog.Logger) (*Metrics, error) {
	exporter, err := s.metricClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("make the exporter of metrics: %w", err)
	}
	return &Metrics{exporter, newReport(log, "Metrics", "exports"), newLifetime(ctx)}, nil
}

func (s Settings) metricClient(ctx context.Context) (sdkmetric.Exporter, error) {
	if s.Metrics.Protocol == GRPC {
		var options []otlpmetricgrpc.Option
		if s.Metrics.fallback != "" {
			options = append(options, otlpmetricgrpc.WithEndpointURL(s.Metrics.fallback))
		}
		return otlpmetricgrpc.New(ctx, options...)
	}
	var options []otlpmetrichttp.Option
	if s.Metrics.fallback != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(s.Metrics.fallback))
	}
	return otlpmetrichttp.New(ctx, options...)
}

// Export exports metrics. It always returns nil.
func (m *Metrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	ctx, done := m.bound(ctx)
	defer done()
	m.report.exported(ctx, 1, m.Exporter.Export(ctx, metrics))
	return nil
}

// Shutdown closes the connection.
func (m *Metrics) Shutdown(ctx context.Context) error {
	defer m.end()
	return m.Exporter.Shutdown(ctx)
}

// lifetime ends exports in progress at the end of the exporter.
type lifetime struct {
	ctx context.Context //nolint:containedctx // the exporter's lifetime, which bounds every export
	end context.CancelFunc
}

func newLifetime(ctx context.Context) *lifetime {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	return &lifetime{ctx, end}
}

// bound returns a context that also ends with the exporter.
func (l *lifetime) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// Abort ends the exports in progress. A stop calls it when it can wait no longer.
func (l *lifetime) Abort() { l.end() }
