// Package outbox makes the events that report failures, and moves them into the inboxes of their projects.
//
//	e := outbox.OfRun(r)  // in the transaction that ends the run, which stores it
//	p := outbox.NewPublisher(outbox.Options{Store: store, Committed: committed, PublicURL: "https://signalbox.example.com"})
//	err := p.Start(ctx)
//
// Such an event is committed together with what it reports, so that none is lost. It gets a position later: positions
// need the lock of the project's inbox, for which the end of a run must not wait. Every process moves events. An event
// and its row in the outbox change in one transaction, and the ID of the event follows from what it reports, so that
// none is published twice.
package outbox

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// moveEvery is the interval of the searches for events to move.
	moveEvery = 500 * time.Millisecond
	// moveLimit is how many events are moved in one transaction.
	moveLimit = 100
)

// Store has the events that are not in an inbox yet.
type Store interface {
	// Waiting returns projects that have such events.
	Waiting(ctx context.Context) (projects []string, err error)
	// Move moves up to limit of a project's events, the oldest first, each changed by complete, into its inbox. wake
	// reports that the project's dispatcher is parked.
	Move(ctx context.Context, project string, limit int,
		complete func(event.Event) event.Event) (moved int, wake bool, err error)
}

// Options are the dependencies of a [Publisher].
type Options struct {
	Store Store
	// Committed is called after events were moved.
	Committed func(ctx context.Context, project string, wake bool)
	// PublicURL is the address of the pages to which events link; empty for no links.
	PublicURL string
}

// Publisher moves events into the inboxes of their projects.
type Publisher struct {
	*loop.Loop

	o Options
}

// NewPublisher returns a publisher.
func NewPublisher(o Options) *Publisher {
	p := &Publisher{o: o}
	p.Loop = loop.New(p.pass)
	return p
}

func (p *Publisher) pass(ctx, work context.Context) time.Duration {
	projects, err := p.o.Store.Waiting(work)
	if err != nil {
		logger.FromContext(work).WarnContext(work, "Events that report failures could not be found; trying again",
			"error", err)
	}
	for _, project := range projects {
		for moved := moveLimit; moved == moveLimit && ctx.Err() == nil; {
			var wake bool
			moved, wake, err = p.o.Store.Move(work, project, moveLimit, p.complete)
			if moved > 0 {
				p.o.Committed(work, project, wake)
			}
		}
		if err != nil {
			logger.FromContext(work).WarnContext(work, "Events that report failures could not be published; trying again",
				"project", project, "error", err)
		}
	}
	return moveEvery
}

// complete adds what the transaction that reported the failure did not know.
func (p *Publisher) complete(e event.Event) event.Event {
	e.Actor, e.Status, e.DataContentType = auth.System().Name, event.Pending, "application/json"
	if p.o.PublicURL == "" {
		return e
	}
	switch e.Type {
	case event.RunFailed, event.RunTimedOut:
		e.Data = withURL(e.Data, func(d *runData) (err error) {
			d.URL, err = url.JoinPath(p.o.PublicURL, "runs", d.RunID)
			return err
		})
	case event.BatchEnded:
		e.Data = withURL(e.Data, func(d *batchData) (err error) {
			d.URL, err = url.JoinPath(p.o.PublicURL, "p", d.Project, "batches", d.BatchID)
			return err
		})
	}
	return e
}

// withURL returns the data with a link; without one if it cannot be made.
func withURL[T any](text json.RawMessage, link func(*T) error) json.RawMessage {
	var data T
	if json.Unmarshal(text, &data) != nil || link(&data) != nil {
		return text
	}
	return encode(data)
}
