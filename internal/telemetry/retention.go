package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Retention counts the data deleted by retention.
type Retention struct{ deleted metric.Int64Counter }

func newRetention(meter metric.Meter) (*Retention, error) {
	deleted, err := meter.Int64Counter("signalbox.retention.deleted",
		metric.WithDescription("Rows that retention has deleted, by kind. A series appears with the first deleted row of "+
			"its kind."))
	if err != nil {
		return nil, err
	}
	return &Retention{deleted: deleted}, nil
}

// Deleted adds rows by kind (signalbox_retention_deleted_total).
func (r *Retention) Deleted(ctx context.Context, kind string, rows int64) {
	r.deleted.Add(ctx, rows, metric.WithAttributes(attribute.String("kind", kind)))
}
