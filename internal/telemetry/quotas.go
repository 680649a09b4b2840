package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/signalbox-dev/signalbox/internal/quota"
)

// ObserveQuotas registers the gauges of the runs that quotas hold up (signalbox_quota_queued_runs,
// signalbox_quota_waiting_runs), for every project that has, or had, a quota. Every scrape calls held, with a context
// that ends soon; after an error they stay as they were. It is called once.
func (t *Telemetry) ObserveQuotas(held func(ctx context.Context) ([]quota.Held, error)) error {
	meter := t.Meter(scope)
	queued, err1 := meter.Int64ObservableGauge("signalbox.quota.queued.runs",
		metric.WithDescription("Runs of the project that wait for one of its slots, of all processes. Absent for a project "+
			"that never had a quota."))
	waiting, err2 := meter.Int64ObservableGauge("signalbox.quota.waiting.runs",
		metric.WithDescription("Runs of the project that wait for steps, of all processes. Absent for a project that never "+
			"had a quota."))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	found := readStored(t, readTimeout, "quotas", held)
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		projects, known := found.last()
		if !known {
			return nil
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
