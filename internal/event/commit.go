package event

import (
	"context"
	"fmt"
	"sync"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// maxGroup is how many events one transaction commits, unless a single request has more.
	maxGroup = 1000
	// maxWaiting is how many events wait for their transaction in one process; more are refused, so that a slow database does not
	// fill the memory.
	maxWaiting = 20_000
)

// committer commits the events of several callers together: while a transaction of a project is under way, what comes in
// waits for the next one. A single caller waits for nobody.
type committer struct {
	store Store
	// committed is told of each transaction.
	committed func(ctx context.Context, project string, wake bool)

	mu      sync.Mutex
	lines   map[string]*line
	waiting int
	closed  bool
	joined  sync.WaitGroup
}

// line are the requests for one project; it exists while somebody commits.
type line struct{ requests []*request }

type request struct {
	ctx    context.Context //nolint:containedctx // the caller's, for its logger and for nothing else
	events []Event
	answer chan answer
}

type answer struct {
	accepted []Accepted
	err      error
}

func newCommitter(store Store, committed func(context.Context, string, bool)) *committer {
	return &committer{store: store, committed: committed, lines: map[string]*line{}}
}

// commit returns what became of the events. When ctx ends first, they may be committed nevertheless: whoever gives them
// again is told that they are duplicates.
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
		return fault.New(fault.Unavailable, fault.StoreUnavailable, "this server is stopping; nothing was kept, try again").WithRetry(retryAfter)
	case c.waiting+len(r.events) > maxWaiting:
		return fault.New(fault.Unavailable, fault.StoreUnavailable,
			"%d events wait to be written already; nothing was kept, try again in a moment", c.waiting).WithRetry(retryAfter)
	}
	c.waiting += len(r.events)
	if l, busy := c.lines[project]; busy {
		l.requests = append(l.requests, r)
		return nil
	}
	c.lines[project] = &line{requests: []*request{r}}
	c.joined.Go(func() {
		for group := c.next(project); group != nil; group = c.next(project) {
			c.write(project, group)
		}
	})
	return nil
}

// next takes the requests that are committed together, none where the line is empty: then it is closed.
func (c *committer) next(project string) []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[project]
	count := 0
	for i, r := range l.requests {
		if count += len(r.events); i > 0 && count > maxGroup {
			group := l.requests[:i:i]
			l.requests = l.requests[i:]
			return group
		}
	}
	group := l.requests
	l.requests = nil
	if len(group) == 0 {
		delete(c.lines, project)
		return nil
	}
	return group
}

// write commits a group. When that fails for another reason than the database being away, each request is tried alone: one that
// cannot be kept does not take the others with it.
func (c *committer) write(project string, group []*request) {
	var events []Event
	for _, r := range group {
		events = append(events, r.events...)
	}
	ctx := group[0].ctx
	accepted, wake, err := c.store.Publish(ctx, project, events)
	if f, ok := fault.From(err); err != nil && len(group) > 1 && (!ok || f.Class != fault.Unavailable) {
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

// close takes no more and waits until what was taken is written; every call to the store has its own deadline.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.joined.Wait()
}
