package event

import (
	"context"
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/groupcommit"
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
	groups *groupcommit.Committer[string, []Event, []Accepted]
}

// newCommitter returns a committer; committed is called after each transaction.
func newCommitter(store Store, committed func(ctx context.Context, project string, wake bool)) *committer {
	publish := func(ctx context.Context, project string, requests [][]Event) ([][]Accepted, error) {
		var events []Event
		for _, r := range requests {
			events = append(events, r...)
		}
		accepted, wake, err := store.Publish(ctx, project, events)
		if err != nil {
			return nil, err
		}
		committed(ctx, project, wake)
		results := make([][]Accepted, len(requests))
		for i, r := range requests {
			results[i], accepted = accepted[:len(r):len(r)], accepted[len(r):]
		}
		return results, nil
	}
	return &committer{groupcommit.New(publish, groupcommit.Options[string, []Event]{
		Size: func(events []Event) int { return len(events) }, MaxGroup: maxGroup, MaxWaiting: maxWaiting, Alone: alone,
	})}
}

// alone reports whether each request of a group is tried alone: it is where the database is available, so that one
// request that cannot be stored does not fail the others.
func alone(ctx context.Context, project string, requests int, err error) bool {
	if f, ok := apperror.From(err); ok && f.Class == apperror.Unavailable {
		return false
	}
	logger.FromContext(ctx).WarnContext(ctx, "Events could not be committed together; each request is tried alone",
		"project", project, "requests", requests, "error", err)
	return true
}

// commit returns the result for each event. When ctx ends first, the events may be committed nevertheless; a caller
// that publishes them again gets them reported as duplicates.
func (c *committer) commit(ctx context.Context, project string, events []Event) ([]Accepted, error) {
	accepted, err := c.groups.Do(ctx, project, events)
	switch {
	case errors.Is(err, groupcommit.ErrClosed):
		return nil, apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"this server is stopping; no event was stored, try again").WithRetry(retryAfter)
	case errors.Is(err, groupcommit.ErrFull):
		return nil, apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
			"%d events are waiting to be written; no event was stored, try again in a moment", c.groups.Waiting()).
			WithRetry(retryAfter)
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("publishing %d events: %w", len(events), err)
	}
	return accepted, err
}

// close accepts no more requests and waits until the accepted ones are written; every call to the store has its own
// deadline.
func (c *committer) close() { c.groups.Close() }
