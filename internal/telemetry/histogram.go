package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// histogram is a histogram of seconds whose series can exist before the first measurement.
type histogram struct {
	instrument metric.Float64Histogram
	name       string
	empty      *emptyHistograms
}

// histogram creates a histogram of seconds. Boundaries are its buckets' upper bounds.
func (t *Telemetry) histogram(name, description string, boundaries []float64) (histogram, error) {
	instrument, err := t.Meter(scope).Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(boundaries...))
	t.empty.describe(name, description, boundaries)
	return histogram{instrument: instrument, name: name, empty: t.empty}, err
}

// begin exports the series with these labels from now on, at 0 until the first measurement.
func (h histogram) begin(labels ...attribute.KeyValue) {
	h.empty.begin(h.name, attribute.NewSet(labels...))
}

// record measures a duration.
func (h histogram) record(ctx context.Context, took time.Duration, labels ...attribute.KeyValue) {
	set := attribute.NewSet(labels...)
	h.empty.measured(h.name, set)
	h.instrument.Record(ctx, took.Seconds(), metric.WithAttributeSet(set))
}

// emptyHistograms produces the series of histograms that have no measurement yet: OpenTelemetry exports a histogram
// only after its first one, so that a rate in Prometheus would miss it.
type emptyHistograms struct {
	start time.Time

	mu    sync.Mutex
	named map[string]*emptyHistogram
}

type emptyHistogram struct {
	description string
	boundaries  []float64
	// series are all that were begun or measured; true until the first measurement.
	series map[attribute.Distinct]*emptySeries
}

type emptySeries struct {
	labels attribute.Set
	empty  bool
}

var _ sdkmetric.Producer = (*emptyHistograms)(nil)

func newEmptyHistograms(start time.Time) *emptyHistograms {
	return &emptyHistograms{start: start, named: map[string]*emptyHistogram{}}
}

func (e *emptyHistograms) describe(name, description string, boundaries []float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.named[name] == nil {
		e.named[name] = &emptyHistogram{
			description: description, boundaries: boundaries, series: map[attribute.Distinct]*emptySeries{}}
	}
}

func (e *emptyHistograms) begin(name string, labels attribute.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if series := e.named[name].series; series[labels.Equivalent()] == nil {
		series[labels.Equivalent()] = &emptySeries{labels, true}
	}
}

// measured must be called before the measurement: a collection between the two misses the series, and never has it
// twice.
func (e *emptyHistograms) measured(name string, labels attribute.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	series := e.named[name].series
	if s := series[labels.Equivalent()]; s != nil {
		s.empty = false
		return
	}
	series[labels.Equivalent()] = &emptySeries{labels, false}
}

// Produce implements [sdkmetric.Producer].
func (e *emptyHistograms) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	var all []metricdata.Metrics
	for name, h := range e.named {
		var points []metricdata.HistogramDataPoint[float64]
		for _, s := range h.series {
			if s.empty {
				points = append(points, metricdata.HistogramDataPoint[float64]{
					Attributes: s.labels, StartTime: e.start, Time: now, Bounds: h.boundaries,
					BucketCounts: make([]uint64, len(h.boundaries)+1),
				})
			}
		}
		if len(points) > 0 {
			all = append(all, metricdata.Metrics{
				Name: name, Description: h.description, Unit: "s",
				Data: metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality},
			})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scope}, Metrics: all}}, nil
}
