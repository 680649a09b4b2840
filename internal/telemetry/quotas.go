package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Held is how many runs of a project are held up by its quota.
type Held struct {
	Project string
	// Queued wait for a place, Waiting for steps.
	Queued, Waiting int64
}

// ObserveQuotas begins to show how many runs quotas hold up (signalbox_quota_queued_runs, signalbox_quota_waiting_runs), of every project
// that has, or had, a quota. held is asked on every scrape, with a context that ends soon; an error leaves the metrics out. It is called
// once.
func (t *Telemetry) ObserveQuotas(held func(ctx context.Context) ([]Held, error)) error {
	meter := t.Meter(scope)
	queued, err1 := meter.Int64ObservableGauge("signalbox.quota.queued.runs",
		metric.WithDescription("Runs of the project that wait for one of its places, of all processes."))
	waiting, err2 := meter.Int64ObservableGauge("signalbox.quota.waiting.runs",
		metric.WithDescription("Runs of the project that wait for steps, of all processes."))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, queueTimeout)
		defer cancel()
		projects, err := held(ctx)
		if err != nil {
			return nil // the page goes without them, as without the queue
		}
		for _, p := range projects {
			project := metric.WithAttributes(attribute.String("project", p.Project))
			o.ObserveInt64(queued, p.Queued, project)
			o.ObserveInt64(waiting, p.Waiting, project)
		}
		return nil
	}, queued, waiting)
	return err
}
