package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/signalbox-dev/signalbox/internal/processor"
)

// ObserveProcessor registers what the process gets of the machine's processors (signalbox_processor_limit,
// signalbox_processor_periods_total, signalbox_processor_throttled_periods_total,
// signalbox_processor_throttled_seconds_total, signalbox_processor_wait_seconds_total). What read does not know is
// absent. It is called once.
func (t *Telemetry) ObserveProcessor(read func() processor.Totals) error {
	meter := t.Meter(scope)
	limit, err1 := meter.Float64ObservableGauge("signalbox.processor.limit",
		metric.WithDescription("How many processors the control group of this process allows. Absent where it has no "+
			"limit, or none can be read."))
	periods, err2 := meter.Int64ObservableCounter("signalbox.processor.periods",
		metric.WithDescription("Scheduling periods in which the control group of this process ran, since the group exists. "+
			"Absent where it has no limit."))
	throttled, err3 := meter.Int64ObservableCounter("signalbox.processor.throttled_periods",
		metric.WithDescription("Those of the periods in which the control group had used up its limit, and stood still for "+
			"the rest. Absent where it has no limit."))
	stood, err4 := meter.Float64ObservableCounter("signalbox.processor.throttled", metric.WithUnit("s"),
		metric.WithDescription("How long processors stood still for the control group of this process because it had used "+
			"up its limit, all together. Absent where it has no limit."))
	waited, err5 := meter.Float64ObservableCounter("signalbox.processor.wait", metric.WithUnit("s"),
		metric.WithDescription("How long threads of this process were ready and waited for a processor, all together. "+
			"Absent where it cannot be read."))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		totals := read()
		if g := totals.Group; g != nil && g.Limit > 0 {
			o.ObserveFloat64(limit, g.Limit)
			o.ObserveInt64(periods, g.Periods)
			o.ObserveInt64(throttled, g.Throttled)
			o.ObserveFloat64(stood, g.ThrottledFor.Seconds())
		}
		if totals.Waited != nil {
			o.ObserveFloat64(waited, totals.Waited.Seconds())
		}
		return nil
	}, limit, periods, throttled, stood, waited)
	return err
}
