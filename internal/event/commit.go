package event

import (
	"context"
	"fmt"
	"sync"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// maxGroup is the number of events in one transaction, unless a single request has more.
	maxGroup = 1000
	// maxWaiting is the number of events that wait for a transaction in one process. More are refused, so that a slow
	// database does not fill the memory.
	maxWaiting = 20_000
)

// committer commits the events of several callers together: requests that arrive during a transaction of their project
// wait for the next one. A single caller does not wait.
type committer struct {
	store Store
	// committed is called after each transaction.
	committed func(ctx context.Context, project string, wake bool)

	mu      sync.Mutex
	queues  map[string]*queue
	waiting int
	closed  bool
	joined  sync.WaitGroup
}

// queue holds the requests of one project; it exists while a goroutine commits them.
type queue struct{ requests []*request }

type request struct {
	ctx    context.Context //nolint:containedctx // the caller's, only for its logger
	events []Event
	answer chan answer
}

type answer struct {
	accepted []Accepted
	err      error
}

func newCommitter(store Store, committed func(context.Context, string, bool)) *committer {
	return &committer{store: store, committed: committed, queues: map[string]*queue{}}
}

// commit returns the result for each event. When ctx ends first, the events may be committed nevertheless; a caller
// that publishes them again gets them reported as duplicates.
func (c *committer) commit(ctx context.Context, project string, events []Event) ([]Accepted, error) {
	r := &request{ctx: context.WithoutCancel(ctx), events: events, answer: make(chan answer, 1)}
	if err := c.enter(project, r); err != nil {
		return nil, err
	}
	select {
	case a := <-r.answer:
		return a.accepted, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("publishing %d events: %w", len(events), ctx.Err())
	}
}

func (c *committer) enter(project string, r *request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"this server is stopping; no event was stored, try again").WithRetry(retryAfter)
	case c.waiting+len(r.events) > maxWaiting:
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"%d events are waiting to be written; no event was stored, try again in a moment", c.waiting).WithRetry(retryAfter)
	}
	c.waiting += len(r.events)
	if q, busy := c.queues[project]; busy {
		q.requests = append(q.requests, r)
		return nil
	}
	c.queues[project] = &queue{requests: []*request{r}}
	c.joined.Go(func() {
		for group := c.next(project); group != nil; group = c.next(project) {
			c.write(project, group)
		}
	})
	return nil
}

// next returns the requests to commit together. When the queue is empty, it removes the queue and returns nil.
func (c *committer) next(project string) []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[project]
	count := 0
	for i, r := range q.requests {
		if count += len(r.events); i > 0 && count > maxGroup {
			group := q.requests[:i:i]
			q.requests = q.requests[i:]
			return group
		}
	}
	group := q.requests
	q.requests = nil
	if len(group) == 0 {
		delete(c.queues, project)
		return nil
	}
	return group
}

// write commits a group. When that fails although the database is available, it tries each request alone, so that one
// request that cannot be stored does not fail the others.
func (c *committer) write(project string, group []*request) {
	var events []Event
	for _, r := range group {
		events = append(events, r.events...)
	}
	ctx := group[0].ctx
	accepted, wake, err := c.store.Publish(ctx, project, events)
	if f, ok := apperror.From(err); err != nil && len(group) > 1 && (!ok || f.Class != apperror.Unavailable) {
		logger.FromContext(ctx).WarnContext(ctx, "Events could not be committed together; each request is tried alone",
			"project", project, "requests", len(group), "error", err)
		for _, r := range group {
			c.write(project, []*request{r})
		}
		return
	}
	c.mu.Lock()
	c.waiting -= len(events)
	c.mu.Unlock()
	if err == nil {
		c.committed(ctx, project, wake)
	}
	for _, r := range group {
		a := answer{err: err}
		if err == nil {
			a.accepted, accepted = accepted[:len(r.events):len(r.events)], accepted[len(r.events):]
		}
		r.answer <- a
	}
}

// close accepts no more requests and waits until the accepted ones are written; every call to the store has its own
// deadline.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.joined.Wait()
}
