package telemetry

import (
	"maps"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.temporal.io/sdk/client"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"
)

// taskQueueTag is the SDK's tag with the task queue. Each project has one, and so would have all metrics of a worker,
// with the buckets of each histogram.
const taskQueueTag = "task_queue"

// Temporal returns the SDK's metrics handler: its temporal_* metrics are exported together with the platform's, of all
// task queues together. Counters and timers add up by themselves; a gauge is the sum of its values of all task queues.
func (t *Telemetry) Temporal() client.MetricsHandler {
	return workers{MetricsHandler: t.handler("temporal-sdk-go"), gauges: t.gauges}
}

// workers is the SDK's metrics without the label of the task queue.
type workers struct {
	temporalotel.MetricsHandler

	gauges    *gaugeSums
	taskQueue string
}

// WithTags returns a handler with additional labels.
func (w workers) WithTags(tags map[string]string) client.MetricsHandler {
	if queue, ok := tags[taskQueueTag]; ok {
		w.taskQueue = queue
		tags = maps.Clone(tags)
		delete(tags, taskQueueTag)
	}
	w.MetricsHandler = *temporalotel.ExtractMetricsHandler(w.MetricsHandler.WithTags(tags))
	return w
}

// Gauge returns the gauge with that name.
func (w workers) Gauge(name string) client.MetricsGauge {
	exported := w.MetricsHandler.Gauge(name)
	if name == "temporal_sticky_cache_size" { // all workers share the cache: each reports its whole size
		return exported
	}
	labels := w.GetAttributes()
	part := gaugePart{gaugeSum{name, labels.Equivalent()}, w.taskQueue}
	return gauge(func(value float64) { w.gauges.update(part, value, exported) })
}

// gaugeSums adds up the values of gauges over task queues.
type gaugeSums struct {
	mu    sync.Mutex
	parts map[gaugePart]float64
	sums  map[gaugeSum]float64
}

// gaugeSum is an exported series, and gaugePart the part of it that one task queue has.
type (
	gaugeSum struct {
		name   string
		labels attribute.Distinct
	}
	gaugePart struct {
		gaugeSum

		taskQueue string
	}
)

func newGaugeSums() *gaugeSums {
	return &gaugeSums{parts: map[gaugePart]float64{}, sums: map[gaugeSum]float64{}}
}

// update exports the sum with the lock held, so that the last exported one is that of all last values.
func (s *gaugeSums) update(part gaugePart, value float64, exported client.MetricsGauge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[part.gaugeSum] += value - s.parts[part]
	s.parts[part] = value
	exported.Update(s.sums[part.gaugeSum])
}
