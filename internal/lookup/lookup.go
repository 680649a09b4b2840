// Package lookup reads single keys of a store with few requests: the keys of callers that arrive while a request is in
// progress are read together by the next one.
//
//	tokens := lookup.New(store.GetTokens) // reads up to MostKeys keys with one request
//	t, found, err := tokens.Get(ctx, id)
//
// So the cost of a key that does not exist is a small part of a request to the store, also when strangers ask for many
// of them. Nothing is cached: the request that reads a key begins after the call of Get.
package lookup

import (
	"context"
	"fmt"
	"sync"
)

// MostKeys bounds the keys of one request.
const MostKeys = 512

// Reader reads the keys that callers ask for. It is safe for concurrent use.
type Reader[K comparable, V any] struct {
	read func(ctx context.Context, keys []K) (map[K]V, error)

	mu      sync.Mutex
	waiting []*request[K, V] // the first one is read next; only the last one may have less than MostKeys keys
	reading bool
}

// request is one request to the store. done is closed when values and err are set.
type request[K comparable, V any] struct {
	ctx    context.Context //nolint:containedctx // the context of the first caller, for its values
	keys   map[K]struct{}
	values map[K]V
	err    error
	done   chan struct{}
}

// New returns a reader. read returns the values of those keys that exist, and bounds its duration by itself.
func New[K comparable, V any](read func(ctx context.Context, keys []K) (map[K]V, error)) *Reader[K, V] {
	return &Reader[K, V]{read: read}
}

// Get returns the value of a key, and whether it exists.
func (r *Reader[K, V]) Get(ctx context.Context, key K) (v V, found bool, err error) {
	asked := r.ask(ctx, key)
	select {
	case <-asked.done:
		v, found = asked.values[key]
		return v, found, asked.err
	case <-ctx.Done():
		return v, false, context.Cause(ctx)
	}
}

// ask adds a key to the next request, and begins to read if nothing is being read.
func (r *Reader[K, V]) ask(ctx context.Context, key K) *request[K, V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next *request[K, V]
	if n := len(r.waiting); n > 0 && len(r.waiting[n-1].keys) < MostKeys {
		next = r.waiting[n-1]
	} else {
		next = &request[K, V]{ctx: context.WithoutCancel(ctx), keys: map[K]struct{}{}, done: make(chan struct{})}
		r.waiting = append(r.waiting, next)
	}
	next.keys[key] = struct{}{}
	if !r.reading {
		r.reading = true
		go r.run()
	}
	return next
}

// run reads until nothing waits.
func (r *Reader[K, V]) run() {
	for next := r.next(); next != nil; next = r.next() {
		keys := make([]K, 0, len(next.keys))
		for key := range next.keys {
			keys = append(keys, key)
		}
		next.values, next.err = r.readKeys(next.ctx, keys)
		close(next.done)
	}
}

// readKeys returns a panic of the store as an error: no caller's handler is there to recover it.
func (r *Reader[K, V]) readKeys(ctx context.Context, keys []K) (values map[K]V, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("read %d keys: panic: %v", len(keys), p)
		}
	}()
	return r.read(ctx, keys)
}

func (r *Reader[K, V]) next() *request[K, V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.reading = false
		return nil
	}
	next := r.waiting[0]
	r.waiting = r.waiting[1:]
	return next
}
