// Package groupcommit lets concurrent callers share transactions: requests that arrive while a transaction is in
// progress are committed together by the next one. A single caller does not wait, and there is no timer.
//
//	starts := groupcommit.New(commit, groupcommit.Options[string, start]{MaxGroup: 64})
//	outcome, err := starts.Do(ctx, project, s) // with the outcome that commit returned for s
//	starts.Close()                             // once no caller needs it
//
// Requests with different keys do not wait for each other. The requests of a key are committed in the order of their
// arrival. commit bounds its duration by itself.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// The reasons for which a request is refused. Nothing of it is committed.
var (
	// ErrClosed reports that the committer accepts no more requests.
	ErrClosed = errors.New("no more requests are accepted")
	// ErrFull reports that too much waits.
	ErrFull = errors.New("too much waits to be written")
)

// Options configure a committer.
type Options[K comparable, T any] struct {
	// Size is what a request counts as; nil means 1 for each.
	Size func(T) int
	// MaxGroup bounds the size of a group, unless a single request exceeds it; 0 means no bound.
	MaxGroup int
	// MaxWaiting bounds the size of what waits or is being committed; 0 means no bound.
	MaxWaiting int
	// Alone reports whether the requests of a group are committed again one by one after an error of the group, so that
	// one request that cannot be stored does not fail the others; nil means never.
	Alone func(ctx context.Context, key K, requests int, err error) bool
}

// Committer commits requests in groups. It is safe for concurrent use.
type Committer[K comparable, T, R any] struct {
	commit func(ctx context.Context, key K, list []T) ([]R, error)
	opts   Options[K, T]

	mu      sync.Mutex
	queues  map[K][]*request[T, R] // a key is present while a goroutine commits its requests
	waiting int
	closed  bool
	joined  sync.WaitGroup
}

type request[T, R any] struct {
	ctx    context.Context //nolint:containedctx // the caller's
	item   T
	answer chan answer[R]
}

type answer[R any] struct {
	result R
	err    error
}

// New returns a committer. commit returns a result for each item; with an error, nothing is committed.
func New[K comparable, T, R any](commit func(ctx context.Context, key K, list []T) ([]R, error),
	o Options[K, T]) *Committer[K, T, R] {
	if o.Size == nil {
		o.Size = func(T) int { return 1 }
	}
	return &Committer[K, T, R]{commit: commit, opts: o, queues: map[K][]*request[T, R]{}}
}

// Do returns the result for an item. When ctx ends first, the item may be committed nevertheless, unless its group had
// not begun: then it is not.
func (c *Committer[K, T, R]) Do(ctx context.Context, key K, item T) (result R, err error) {
	if ctx.Err() != nil {
		return result, ended(ctx)
	}
	r := &request[T, R]{ctx: ctx, item: item, answer: make(chan answer[R], 1)}
	if err := c.enter(key, r); err != nil {
		return result, err
	}
	select {
	case a := <-r.answer:
		return a.result, a.err
	case <-ctx.Done():
		return result, ended(ctx)
	}
}

// ended returns why a context ended.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// Waiting returns the size of what waits or is being committed.
func (c *Committer[K, T, R]) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

func (c *Committer[K, T, R]) enter(key K, r *request[T, R]) error {
	size := c.opts.Size(r.item)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrClosed
	case c.opts.MaxWaiting > 0 && c.waiting+size > c.opts.MaxWaiting:
		return ErrFull
	}
	c.waiting += size
	queue, busy := c.queues[key]
	c.queues[key] = append(queue, r)
	if !busy {
		c.joined.Go(func() {
			for group := c.next(key); len(group) > 0; group = c.next(key) {
				c.write(key, group)
			}
		})
	}
	return nil
}

// next returns the requests to commit together. When there are none, it removes the queue.
func (c *Committer[K, T, R]) next(key K) []*request[T, R] {
	c.mu.Lock()
	defer c.mu.Unlock()
	queue := c.queues[key]
	size, end := 0, 0
	group := make([]*request[T, R], 0, len(queue))
	for ; end < len(queue); end++ {
		r := queue[end]
		n := c.opts.Size(r.item)
		if r.ctx.Err() != nil { // its caller has returned
			c.waiting -= n
			continue
		}
		if size += n; len(group) > 0 && c.opts.MaxGroup > 0 && size > c.opts.MaxGroup {
			break
		}
		group = append(group, r)
	}
	if c.queues[key] = queue[end:]; len(group) == 0 {
		delete(c.queues, key)
	}
	return group
}

// write commits a group. The context of its first caller provides only values: its end must not fail the others.
func (c *Committer[K, T, R]) write(key K, group []*request[T, R]) {
	items, size := make([]T, len(group)), 0
	for i, r := range group {
		items[i] = r.item
		size += c.opts.Size(r.item)
	}
	ctx := context.WithoutCancel(group[0].ctx)
	results, err := c.attempt(ctx, key, items)
	if err != nil && len(group) > 1 && c.opts.Alone != nil && c.opts.Alone(ctx, key, len(group), err) {
		for _, r := range group {
			c.write(key, []*request[T, R]{r})
		}
		return
	}
	c.mu.Lock()
	c.waiting -= size
	c.mu.Unlock()
	for i, r := range group {
		a := answer[R]{err: err}
		if err == nil {
			a.result = results[i]
		}
		r.answer <- a
	}
}

// attempt returns a panic of commit as an error: no caller's handler is there to recover it.
func (c *Committer[K, T, R]) attempt(ctx context.Context, key K, items []T) (results []R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("commit %d requests: panic: %v", len(items), p)
		}
	}()
	return c.commit(ctx, key, items)
}

// Close accepts no more requests and waits until the accepted ones are committed.
func (c *Committer[K, T, R]) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.joined.Wait()
}
