package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// read is what a scrape or export read last from a database or from Temporal.
type read[T any] struct {
	mu    sync.Mutex
	value T
	known bool
	at    time.Time
}

// readBefore makes every scrape and export read a value before it collects the instruments, with a context that ends
// after limit.
//
// A callback of an instrument must not read it: the SDK holds the lock of all instruments while it calls the callback,
// and the read may create an instrument, for example that of the first request of a kind to Temporal, which waits for
// this lock.
//
// A value that cannot be read is not known: last returns false.
func readBefore[T any](t *Telemetry, limit time.Duration, from func(context.Context) (T, error)) *read[T] {
	r := &read[T]{}
	t.reads = append(t.reads, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		value, err := from(ctx)
		if err != nil {
			value = *new(T)
		}
		r.set(value, err == nil, t.now())
	})
	return r
}

// readStored is readBefore for a value of the database. A value that cannot be read keeps the last one that was, so
// that an outage of the database does not end what alerts report about it. signalbox_reading_age_seconds has the age of
// the value, with this name.
func readStored[T any](t *Telemetry, limit time.Duration, name string, from func(context.Context) (T, error)) *read[T] {
	r := &read[T]{}
	t.reads = append(t.reads, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if value, err := from(ctx); err == nil {
			r.set(value, true, t.now())
		}
	})
	t.ages = append(t.ages, func(o metric.Observer, gauge metric.Float64Observable) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.known {
			o.ObserveFloat64(gauge, t.now().Sub(r.at).Seconds(), metric.WithAttributes(attribute.String("reading", name)))
		}
	})
	return r
}

// observeAges registers the gauge of the ages of what readStored reads (signalbox_reading_age_seconds).
func (t *Telemetry) observeAges() error {
	meter := t.Meter(scope)
	gauge, err := meter.Float64ObservableGauge("signalbox.reading.age", metric.WithUnit("s"),
		metric.WithDescription("Time since this process last read these values from the database: dispatchers, inbox, "+
			"problems, queue, quotas, unpublished_events, webhooks. While it cannot read them, their metrics keep the last "+
			"values. Absent until they were read."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, observe := range t.ages {
			observe(o, gauge)
		}
		return nil
	}, gauge)
	return err
}

func (r *read[T]) set(value T, known bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value, r.known, r.at = value, known, at
}

// last returns the value; the zero value and false if it is not known.
func (r *read[T]) last() (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, r.known
}

// readingFirst makes all reads, and then serves the page.
func (t *Telemetry) readingFirst(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.read(r.Context())
		page.ServeHTTP(w, r)
	})
}

// read makes all reads at once.
func (t *Telemetry) read(ctx context.Context) {
	var reading sync.WaitGroup
	for _, read := range t.reads {
		reading.Go(func() { read(ctx) })
	}
	reading.Wait()
}
