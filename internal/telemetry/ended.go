package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Connections records connections and outages that have ended.
type Connections struct {
	connection, outage metric.Float64Histogram
}

// Connections returns the histograms temporal_connection_duration_seconds and temporal_outage_duration_seconds. It is called once.
func (t *Telemetry) Connections() (*Connections, error) {
	meter := t.Meter(scope)
	connection, err1 := meter.Float64Histogram("temporal.connection.duration", metric.WithUnit("s"),
		metric.WithDescription("How long connections to Temporal lasted that have ended."),
		metric.WithExplicitBucketBoundaries(1, 10, 60, 300, 900, 3600, 4*3600, 24*3600, 7*24*3600))
	outage, err2 := meter.Float64Histogram("temporal.outage.duration", metric.WithUnit("s"),
		metric.WithDescription("How long outages of Temporal lasted that have ended, from their first sign to connected again."),
		metric.WithExplicitBucketBoundaries(.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4*3600, 24*3600))
	return &Connections{connection: connection, outage: outage}, errors.Join(err1, err2)
}

// Connection records the length of a connection that has ended.
func (c *Connections) Connection(ctx context.Context, address, namespace string, lasted time.Duration) {
	c.connection.Record(ctx, lasted.Seconds(), leadsTo(address, namespace))
}

// Outage records the length of an outage that has ended.
func (c *Connections) Outage(ctx context.Context, address, namespace string, lasted time.Duration) {
	c.outage.Record(ctx, lasted.Seconds(), leadsTo(address, namespace))
}

// leadsTo is the labels of a connection's metrics.
func leadsTo(address, namespace string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("host_port", address), attribute.String("namespace", namespace))
}
