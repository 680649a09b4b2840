package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ObserveActions registers the metric of the billable actions that the process causes in Temporal
// (signalbox_temporal_actions_total). counts returns them by kind. It is called once.
func (t *Telemetry) ObserveActions(counts func() map[string]int64) error {
	_, err := t.Meter(scope).Int64ObservableCounter("signalbox.temporal.actions",
		metric.WithDescription("Billable actions that the process causes in Temporal, by kind, as Temporal Cloud counts them: "+
			"start (of an execution), child, schedule, activity (each try), heartbeat, local_activities (all of a workflow "+
			"task), timer, signal, query, update, side_effect, search_attributes, reset."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for kind, n := range counts() {
				o.Observe(n, metric.WithAttributes(attribute.String("kind", kind)))
			}
			return nil
		}))
	return err
}
