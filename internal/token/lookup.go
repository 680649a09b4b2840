package token

import (
	"context"
	"fmt"
	"sync"
)

// LookupKeys bounds the keys of one request.
const LookupKeys = 512

// Lookup reads single records of a store with few requests: the keys of callers that arrive while a request is in
// progress are read together by the next one.
//
//	tokens := token.NewLookup(store.GetTokens) // reads up to LookupKeys keys with one request
//	t, found, err := tokens.Get(ctx, id)
//
// So the cost of a key that does not exist is a small part of a request to the store, also when strangers ask for many
// of them. Nothing is cached: the request that reads a key begins after the call of Get. A lookup is safe for
// concurrent use.
type Lookup[K comparable, V any] struct {
	read func(ctx context.Context, keys []K) (map[K]V, error)

	mu      sync.Mutex
	waiting []*lookupRequest[K, V] // the first one is read next; only the last one may have less than LookupKeys keys
	reading bool
}

// lookupRequest is one request to the store. done is closed when values and err are set.
type lookupRequest[K comparable, V any] struct {
	ctx    context.Context //nolint:containedctx // the context of the first caller, for its values
	keys   map[K]struct{}
	values map[K]V
	err    error
	done   chan struct{}
}

// NewLookup returns a lookup. read returns the values of those keys that exist, and bounds its duration by itself.
func NewLookup[K comparable, V any](read func(ctx context.Context, keys []K) (map[K]V, error)) *Lookup[K, V] {
	return &Lookup[K, V]{read: read}
}

// Get returns the value of a key, and whether it exists.
func (l *Lookup[K, V]) Get(ctx context.Context, key K) (v V, found bool, err error) {
	asked := l.ask(ctx, key)
	select {
	case <-asked.done:
		v, found = asked.values[key]
		return v, found, asked.err
	case <-ctx.Done():
		return v, false, context.Cause(ctx)
	}
}

// ask adds a key to the next request, and begins to read if nothing is being read.
func (l *Lookup[K, V]) ask(ctx context.Context, key K) *lookupRequest[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next *lookupRequest[K, V]
	if n := len(l.waiting); n > 0 && len(l.waiting[n-1].keys) < LookupKeys {
		next = l.waiting[n-1]
	} else {
		next = &lookupRequest[K, V]{ctx: context.WithoutCancel(ctx), keys: map[K]struct{}{}, done: make(chan struct{})}
		l.waiting = append(l.waiting, next)
	}
	next.keys[key] = struct{}{}
	if !l.reading {
		l.reading = true
		go l.run()
	}
	return next
}

// run reads until nothing waits.
func (l *Lookup[K, V]) run() {
	for next := l.next(); next != nil; next = l.next() {
		keys := make([]K, 0, len(next.keys))
		for key := range next.keys {
			keys = append(keys, key)
		}
		next.values, next.err = l.readKeys(next.ctx, keys)
		close(next.done)
	}
}

// readKeys returns a panic of the store as an error: no caller's handler is there to recover it.
func (l *Lookup[K, V]) readKeys(ctx context.Context, keys []K) (values map[K]V, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("read %d keys: panic: %v", len(keys), p)
		}
	}()
	return l.read(ctx, keys)
}

func (l *Lookup[K, V]) next() *lookupRequest[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.reading = false
		return nil
	}
	next := l.waiting[0]
	l.waiting = l.waiting[1:]
	return next
}
