package embedded

import (
	"slices"
	"time"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
)

// serviceLabel is the label of Temporal's services.
const serviceLabel = "service_name"

// measured passes on the metrics that show where time and memory go, with the labels that bound their number. All
// metrics of Temporal would take a fifth of its processor time.
type measured struct {
	all  metrics.Handler
	tags []metrics.Tag
}

var _ metrics.BatchHandler = measured{}

// isMeasured reports whether a metric is passed on.
func isMeasured(name string) bool {
	switch name {
	case metrics.ServiceRequests.Name(), metrics.ServiceFailures.Name(), metrics.ServiceLatency.Name(),
		metrics.TaskRequests.Name(), metrics.TaskFailures.Name(), metrics.TaskLatency.Name(), metrics.TaskQueueLatency.Name(),
		metrics.TaskProcessingLatency.Name(), metrics.PendingTasksCounter.Name(), metrics.QueueReaderCountHistogram.Name(),
		metrics.QueueSliceCountHistogram.Name(), metrics.PersistenceFailures.Name(), metrics.PersistenceLatency.Name(),
		metrics.CacheSize.Name(), metrics.CacheUsage.Name():
		return true
	}
	return false
}

// isLabel reports whether a label is passed on. Its values are fixed in Temporal's code.
func isLabel(t metrics.Tag) bool {
	switch t.Key {
	case metrics.OperationTagName, serviceLabel, metrics.CacheTypeTagName:
		return true
	}
	return false
}

// labels returns the labels among tags.
func labels(tags []metrics.Tag) []metrics.Tag {
	return slices.DeleteFunc(slices.Clone(tags), func(t metrics.Tag) bool { return !isLabel(t) })
}

func (m measured) handler() metrics.Handler { return m.all.WithTags(m.tags...) }

// WithTags implements [metrics.Handler].
func (m measured) WithTags(tags ...metrics.Tag) metrics.Handler {
	if slices.ContainsFunc(tags, isLabel) {
		m.tags = append(slices.Clip(m.tags), labels(tags)...)
	}
	return m
}

// Counter implements [metrics.Handler].
func (m measured) Counter(name string) metrics.CounterIface {
	if !isMeasured(name) {
		return metrics.NoopCounterMetricFunc
	}
	counter := m.handler().Counter(name)
	return metrics.CounterFunc(func(n int64, tags ...metrics.Tag) { counter.Record(n, labels(tags)...) })
}

// Gauge implements [metrics.Handler].
func (m measured) Gauge(name string) metrics.GaugeIface {
	if !isMeasured(name) {
		return metrics.NoopGaugeMetricFunc
	}
	gauge := m.handler().Gauge(name)
	return metrics.GaugeFunc(func(n float64, tags ...metrics.Tag) { gauge.Record(n, labels(tags)...) })
}

// Timer implements [metrics.Handler].
func (m measured) Timer(name string) metrics.TimerIface {
	if !isMeasured(name) {
		return metrics.NoopTimerMetricFunc
	}
	timer := m.handler().Timer(name)
	return metrics.TimerFunc(func(d time.Duration, tags ...metrics.Tag) { timer.Record(d, labels(tags)...) })
}

// Histogram implements [metrics.Handler].
func (m measured) Histogram(name string, unit metrics.MetricUnit) metrics.HistogramIface {
	if !isMeasured(name) {
		return metrics.NoopHistogramMetricFunc
	}
	histogram := m.handler().Histogram(name, unit)
	return metrics.HistogramFunc(func(n int64, tags ...metrics.Tag) { histogram.Record(n, labels(tags)...) })
}

// StartBatch implements [metrics.Handler].
func (m measured) StartBatch(string) metrics.BatchHandler { return m }

// Stop implements [metrics.Handler].
func (m measured) Stop(l log.Logger) { m.all.Stop(l) }

// Close implements [metrics.BatchHandler].
func (measured) Close() error { return nil }
