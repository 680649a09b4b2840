package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Connections records ended connections and outages.
type Connections struct {
	connection, outage metric.Float64Histogram
}

// Connections returns the histograms temporal_connection_duration_seconds and temporal_outage_duration_seconds. It is called once.
func (t *Telemetry) Connections() (*Connections, error) {
	meter := t.Meter(scope)
	connection, err1 := meter.Float64Histogram("temporal.connection.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of ended connections to Temporal."),
		metric.WithExplicitBucketBoundaries(1, 10, 60, 300, 900, 3600, 4*3600, 24*3600, 7*24*3600))
	outage, err2 := meter.Float64Histogram("temporal.outage.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of ended outages of Temporal, from the first failure to the reconnection."),
		metric.WithExplicitBucketBoundaries(.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4*3600, 24*3600))
	return &Connections{connection: connection, outage: outage}, errors.Join(err1, err2)
}

// Connection records the duration of an ended connection.
func (c *Connections) Connection(ctx context.Context, address, namespace string, lasted time.Duration) {
	c.connection.Record(ctx, lasted.Seconds(), endpointLabels(address, namespace))
}

// Outage records the duration of an ended outage.
func (c *Connections) Outage(ctx context.Context, address, namespace string, lasted time.Duration) {
	c.outage.Record(ctx, lasted.Seconds(), endpointLabels(address, namespace))
}

// endpointLabels returns the labels of a connection's metrics.
func endpointLabels(address, namespace string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("host_port", address), attribute.String("namespace", namespace))
}
