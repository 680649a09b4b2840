package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Webhooks counts the attempts to deliver events to webhooks.
type Webhooks struct{ attempts metric.Int64Counter }

func newWebhooks(meter metric.Meter) (*Webhooks, error) {
	attempts, err := meter.Int64Counter("signalbox.webhook.deliveries",
		metric.WithDescription("Finished attempts to deliver an event to a webhook, by outcome: delivered, retried (the attempt failed, another one follows) or dead (given up)."))
	if err != nil {
		return nil, err
	}
	return &Webhooks{attempts: attempts}, nil
}

// Attempted counts a finished attempt (signalbox_webhook_deliveries_total).
func (w *Webhooks) Attempted(ctx context.Context, project, outcome string) {
	w.attempts.Add(ctx, 1, metric.WithAttributes(attribute.String("project", project), attribute.String("outcome", outcome)))
}

// Begin begins the series of a project at 0.
func (w *Webhooks) Begin(ctx context.Context, project string, outcomes ...string) {
	for _, outcome := range outcomes {
		w.attempts.Add(ctx, 0, metric.WithAttributes(attribute.String("project", project), attribute.String("outcome", outcome)))
	}
}
