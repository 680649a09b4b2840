package telemetry

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Store measures the database, with the names of OpenTelemetry's conventions for clients of databases.
type Store struct {
	duration histogram
	system   attribute.KeyValue
}

// Store returns the histogram db_client_operation_duration_seconds. The system is the database's name in
// OpenTelemetry's conventions, operations are all that will be measured. It is called once.
func (t *Telemetry) Store(system string, operations ...string) (*Store, error) {
	duration, err := t.histogram("db.client.operation.duration",
		"Duration of calls to the database, with the wait for a connection and with repeated transactions. error_type is "+
			"unavailable (it is down, full or too slow), "+
			"canceled (the caller stopped waiting), other, or empty if the call succeeded.", seconds())
	s := &Store{duration: duration, system: attribute.String("db.system.name", system)}
	for _, operation := range operations {
		duration.begin(s.labels(operation, "")...)
	}
	return s, err
}

// Called records a call of a kind; failure is empty for a successful one.
func (s *Store) Called(ctx context.Context, operation, failure string, took time.Duration) {
	s.duration.record(ctx, took, s.labels(operation, failure)...)
}

func (s *Store) labels(operation, failure string) []attribute.KeyValue {
	return []attribute.KeyValue{
		s.system, attribute.String("db.operation.name", operation), attribute.String("error.type", failure)}
}

// ObserveClockSkew registers the gauge of the difference between the clocks of the database and of this process
// (signalbox_store_clock_skew_seconds). Every scrape calls skew, with a context that ends soon; without an answer the
// gauge is absent. It is called once.
func (t *Telemetry) ObserveClockSkew(skew func(context.Context) (time.Duration, error)) error {
	meter := t.Meter(scope)
	gauge, err := meter.Float64ObservableGauge("signalbox.store.clock_skew", metric.WithUnit("s"),
		metric.WithDescription("How far the database's clock is ahead of this process's; negative where it is behind. "+
			"Absent while the database does not answer."))
	if err != nil {
		return err
	}
	found := readBefore(t, readTimeout, skew)
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if d, known := found.last(); known {
			o.ObserveFloat64(gauge, d.Seconds())
		}
		return nil
	}, gauge)
	return err
}

// ObservePools registers the metrics of pools of connections to the database, by the name of the pool
// (db_client_connections, db_client_connection_max, signalbox_store_connection_waits_total,
// signalbox_store_connection_wait_seconds_total). Reading a pool's statistics must not block. It is called once.
func (t *Telemetry) ObservePools(pools func() map[string]sql.DBStats) error {
	meter := t.Meter(scope)
	count, err1 := meter.Int64ObservableUpDownCounter("db.client.connections",
		metric.WithDescription("Connections to the database, by pool and state: idle or used. A connection that holds a "+
			"lock is in no pool."))
	most, err2 := meter.Int64ObservableUpDownCounter("db.client.connection.max",
		metric.WithDescription("Maximum of connections of the pool."))
	waits, err3 := meter.Int64ObservableCounter("signalbox.store.connection.waits",
		metric.WithDescription("Calls that waited for a connection of the pool, because all were in use."))
	waited, err4 := meter.Float64ObservableCounter("signalbox.store.connection.wait", metric.WithUnit("s"),
		metric.WithDescription("Total time that calls waited for a connection of the pool."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, s := range pools() {
			pool := attribute.String("db.client.connection.pool.name", name)
			o.ObserveInt64(count, int64(s.Idle),
				metric.WithAttributes(pool, attribute.String("db.client.connection.state", "idle")))
			o.ObserveInt64(count, int64(s.InUse),
				metric.WithAttributes(pool, attribute.String("db.client.connection.state", "used")))
			o.ObserveInt64(most, int64(s.MaxOpenConnections), metric.WithAttributes(pool))
			o.ObserveInt64(waits, s.WaitCount, metric.WithAttributes(attribute.String("pool", name)))
			o.ObserveFloat64(waited, s.WaitDuration.Seconds(), metric.WithAttributes(attribute.String("pool", name)))
		}
		return nil
	}, count, most, waits, waited)
	return err
}
