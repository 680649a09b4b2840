package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// read is what the last scrape or export read from a database or from Temporal.
type read[T any] struct {
	mu    sync.Mutex
	value T
	known bool
}

// readBefore makes every scrape and export read a value before it collects the instruments, with a context that ends after limit.
//
// A callback of an instrument must not read it: the SDK holds the lock of all instruments while it calls the callback, and the read may
// create an instrument, for example that of the first request of a kind to Temporal, which waits for this lock.
func readBefore[T any](t *Telemetry, limit time.Duration, from func(context.Context) (T, error)) *read[T] {
	r := &read[T]{}
	t.reads = append(t.reads, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		value, err := from(ctx)
		if err != nil {
			value = *new(T)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.value, r.known = value, err == nil
	})
	return r
}

// last returns the value; the zero value and false if it could not be read.
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
