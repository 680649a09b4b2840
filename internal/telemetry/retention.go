package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Retention counts what is deleted because it is not to be kept.
type Retention struct{ deleted metric.Int64Counter }

func newRetention(meter metric.Meter) (*Retention, error) {
	deleted, err := meter.Int64Counter("signalbox.retention.deleted",
		metric.WithDescription("Rows that were deleted because they are not to be kept, by what they were."))
	if err != nil {
		return nil, err
	}
	return &Retention{deleted: deleted}, nil
}

// Deleted adds rows by what they were (signalbox_retention_deleted_total).
func (r *Retention) Deleted(ctx context.Context, kind string, rows int64) {
	r.deleted.Add(ctx, rows, metric.WithAttributes(attribute.String("kind", kind)))
}
