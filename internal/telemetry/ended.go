package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Connections records ended connections and outages.
type Connections struct{ connection, outage histogram }

// Connections returns the histograms temporal_connection_duration_seconds and temporal_outage_duration_seconds. Address
// and namespace are those of the first connection. It is called once.
func (t *Telemetry) Connections(address, namespace string) (*Connections, error) {
	connection, err1 := t.histogram("temporal.connection.duration", "Duration of ended connections to Temporal.",
		[]float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600})
	outage, err2 := t.histogram("temporal.outage.duration",
		"Duration of ended outages of Temporal, from the first failure to the reconnection.",
		[]float64{.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600})
	for _, h := range []histogram{connection, outage} {
		h.begin(endpoint(address, namespace)...)
	}
	return &Connections{connection: connection, outage: outage}, errors.Join(err1, err2)
}

// Connection records the duration of an ended connection.
func (c *Connections) Connection(ctx context.Context, address, namespace string, lasted time.Duration) {
	c.connection.record(ctx, lasted, endpoint(address, namespace)...)
}

// Outage records the duration of an ended outage.
func (c *Connections) Outage(ctx context.Context, address, namespace string, lasted time.Duration) {
	c.outage.record(ctx, lasted, endpoint(address, namespace)...)
}

// endpoint returns the labels of a connection's metrics.
func endpoint(address, namespace string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("host_port", address), attribute.String("namespace", namespace)}
}

// endpointLabels returns the same for an instrument.
func endpointLabels(address, namespace string) metric.MeasurementOption {
	return metric.WithAttributes(endpoint(address, namespace)...)
}
