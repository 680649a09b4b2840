package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// Webhooks counts the attempts to deliver events to webhooks.
type Webhooks struct{ attempts metric.Int64Counter }

func newWebhooks(meter metric.Meter) (*Webhooks, error) {
	attempts, err := meter.Int64Counter("signalbox.webhook.deliveries",
		metric.WithDescription("Finished attempts to deliver an event to a webhook, of all projects, by outcome: delivered, "+
			"retried (the attempt failed, another one follows) or dead (given up)."))
	if err != nil {
		return nil, err
	}
	return &Webhooks{attempts: attempts}, nil
}

// Attempted counts a finished attempt (signalbox_webhook_deliveries_total).
func (w *Webhooks) Attempted(ctx context.Context, outcome string) {
	w.attempts.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// Begin exports the series with these outcomes, at 0.
func (w *Webhooks) Begin(ctx context.Context, outcomes ...string) {
	for _, outcome := range outcomes {
		w.attempts.Add(ctx, 0, metric.WithAttributes(attribute.String("outcome", outcome)))
	}
}

// ObserveUnpublished registers the gauges of events that are not in an inbox yet (signalbox_unpublished_events,
// signalbox_unpublished_events_oldest_seconds). Every scrape calls backlog, with a context that ends soon; after an
// error they stay as they were. It is called once.
func (t *Telemetry) ObserveUnpublished(backlog func(ctx context.Context) (event.Unpublished, error)) error {
	meter := t.Meter(scope)
	count, err1 := meter.Int64ObservableGauge("signalbox.unpublished_events",
		metric.WithDescription("Events about failed runs and dead deliveries that are committed and not in the inbox of "+
			"their project yet, of all projects and processes."))
	oldest, err2 := meter.Float64ObservableGauge("signalbox.unpublished_events.oldest", metric.WithUnit("s"),
		metric.WithDescription("Time since the oldest failure whose event is not in the inbox of its project yet, of all "+
			"projects and processes; 0 without one."))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	found := readStored(t, readTimeout, "unpublished_events", backlog)
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if b, known := found.last(); known {
			o.ObserveInt64(count, b.Count)
			o.ObserveFloat64(oldest, b.Oldest.Seconds())
		}
		return nil
	}, count, oldest)
	return err
}

// ObserveWebhooks registers the gauges of webhooks (signalbox_webhook_pending_deliveries,
// signalbox_webhook_oldest_pending_seconds, signalbox_webhooks_failing). Every scrape calls backlogs, with a context
// that ends soon; after an error they stay as they were. It is called once.
func (t *Telemetry) ObserveWebhooks(backlogs func(ctx context.Context) ([]webhook.Backlog, error)) error {
	meter := t.Meter(scope)
	pending, err1 := meter.Int64ObservableGauge("signalbox.webhook.pending_deliveries",
		metric.WithDescription("Deliveries to webhooks that are neither delivered nor given up, of all projects and "+
			"processes, without those of paused webhooks."))
	oldest, err2 := meter.Float64ObservableGauge("signalbox.webhook.oldest_pending", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest of these deliveries; 0 without one."))
	failing, err3 := meter.Int64ObservableGauge("signalbox.webhooks.failing",
		metric.WithDescription("Webhooks whose attempts fail, and those that were paused after failures. Absent for "+
			"projects without a webhook."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	found := readStored(t, readTimeout, "webhooks", backlogs)
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		list, known := found.last()
		if !known {
			return nil
		}
		var waiting int64
		var longest time.Duration
		for _, b := range list {
			waiting += b.Pending
			longest = max(longest, b.Oldest)
			o.ObserveInt64(failing, b.Failing+b.Paused, metric.WithAttributes(attribute.String("project", b.Project)))
		}
		o.ObserveInt64(pending, waiting)
		o.ObserveFloat64(oldest, longest.Seconds())
		return nil
	}, pending, oldest, failing)
	return err
}
