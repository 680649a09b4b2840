package event

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
)

// ListFilter selects the events to list. Zero fields match everything.
type ListFilter struct {
	Project, Type, Source, ID string
	Statuses                  []Status
	// Dead selects only events with a dead delivery.
	Dead bool
	// Retrying selects only events with a delivery of which an attempt has failed, and that is attempted again.
	Retrying bool
	// RunID selects only events with a delivery to this run.
	RunID        string
	Since, Until time.Time
	// Before is the position below which the list continues, newest first. 0 starts with the newest.
	Before int64
	Limit  int
}

// Accepted is the result of publishing one event.
type Accepted struct {
	Position int64
	// Duplicate: an event with this source and ID was accepted before, at Position; this one was not stored.
	Duplicate bool
	// Different: the event that was accepted before differs, by [SameContent].
	Different bool
}

// News reports that a project's dispatcher may have work.
type News struct {
	Project string
	// Head is the position of the project's newest event.
	Head int64
	// Due: a delivery has become due.
	Due bool
}

// Backlog is the outstanding work of a project.
type Backlog struct {
	Project string
	// Pending counts events that are not matched yet, and deliveries that are neither done nor dead.
	Pending int64
	// Oldest is the age of the oldest event that is not matched, or has a delivery that is neither done nor dead; 0 where
	// there is none.
	Oldest time.Duration
	// Orphan: work is due, and the last owner of the project's dispatcher is gone.
	Orphan bool
}

// Unpublished are the events of all projects that are committed with the failures that they report, and are not in an
// inbox yet.
type Unpublished struct {
	Count int64
	// Oldest is the time since the oldest of these failures; 0 where there is none.
	Oldest time.Duration
}

// Earlier is how a listener looks through the events before it.
type Earlier struct {
	// Match returns the deliveries of events to the listener, in order, and the compute that it has used.
	Match func(l Listener, events []Event) (deliveries []Delivery, fuel int64)
	// Limit is the largest number of events of one type that are looked through: the newest ones.
	Limit int
}

// Lookback is [Earlier] for one listener and for events as they are stored.
type Lookback struct {
	Match func(events []Event) (deliveries []Delivery, fuel int64)
	Limit int
}

// Listening is the result of committing a listener.
type Listening struct {
	// Delivers: earlier events are to be delivered to it.
	Delivers bool
	// Parked: the project's dispatcher is parked.
	Parked bool
}

// ErrRouted reports routings of events that do not follow the routed position: another process has written theirs.
var ErrRouted = errors.New("the events are routed already")

// Store stores events, triggers, listeners and deliveries. A project's dispatcher is identified by the project.
//
// CommitRouting, Due, RecordOutcomes, Park and Unpark return [inbox.ErrFenced] to a caller that is not the owner of the
// last Fence.
type Store interface {
	Rows

	// Publish commits events, in order, each with the project's next position. Duplicates, also within the call, are
	// reported and not stored. ReceivedAt is the store's own time and never decreases along the positions. wake means that
	// the project's dispatcher is parked.
	Publish(ctx context.Context, project string, events []Event) (accepted []Accepted, wake bool, err error)
	// Listen commits a listener, whose Since becomes the position of the newest event at that moment; a listener takes no
	// position itself. One that takes events from the start of its run gets deliveries, in the same transaction, of the
	// earlier events that match. One with the same ID stays unchanged. The listener of a run that has ended is refused
	// with [apperror.RunEnded]. The end of a run removes its listeners.
	Listen(ctx context.Context, l Listener) (Listening, error)
	// CommitRouting writes the routings of the events that follow the routed position, in order, without a gap;
	// [ErrRouted] where they do not follow it.
	CommitRouting(ctx context.Context, project string, owner inbox.Owner, routings []Routing) error
	// RecordOutcomes writes the results of deliveries that Due returned.
	RecordOutcomes(ctx context.Context, project string, owner inbox.Owner, outcomes []inbox.DeliveryOutcome) error
	// RecordOwner adds to the history of owners and commits the event that reports the change, in one transaction. A
	// change that is recorded already, by name, epoch and execution, stays unchanged.
	RecordOwner(ctx context.Context, c dispatchtype.OwnerChange, published Event, e audit.Entry) error
}

// Rows is the part of a [Store] to which no values of events or runs are written.
//
//nolint:interfacebloat // the remainder of Store, whose other parts have names of their own
type Rows interface {
	GetEvent(ctx context.Context, project string, position int64) (Event, error)
	// EventsAt returns the events at those of the positions that have one, with their originals, in order.
	EventsAt(ctx context.Context, project string, positions []int64) ([]Event, error)
	ListEvents(ctx context.Context, f ListFilter) ([]Event, error)
	// ListDeliveries returns the deliveries that an event is part of.
	ListDeliveries(ctx context.Context, project string, position int64) ([]Delivery, error)
	// ListRunDeliveries returns up to limit deliveries that started a run, woke it or should have, in order of their
	// events.
	ListRunDeliveries(ctx context.Context, project, runID string, after *DeliveryCursor, limit int) ([]Delivery, error)
	// Redeliver makes pending and dead deliveries of an event due at once, all without IDs, and writes e. It returns the
	// deliveries that it changed: neither those with an attempt in progress, nor those that wait for an earlier event of
	// their run, nor dead ones whose listener was given a later event or is being given one, because a run takes events in
	// order only. A dead one that has started no run then starts the newest version of its workflow. An ID that the event
	// does not have is [apperror.DeliveryNotFound].
	Redeliver(ctx context.Context, project string, position int64, ids []string, at time.Time,
		e audit.Entry) ([]Delivery, error)
	// FindDeliveries returns the existing deliveries of a project with these IDs, with their events.
	FindDeliveries(ctx context.Context, project string, ids []string) ([]Delivery, error)
	// Unlisten removes a listener, whether or not it exists.
	Unlisten(ctx context.Context, project, id string) error
	// GetListener returns a listener, if it exists.
	GetListener(ctx context.Context, project, id string) (l Listener, found bool, err error)
	// Fence makes holder the owner of the dispatcher.
	Fence(ctx context.Context, project, taskQueue, holder string, above int64) (inbox.Owner, error)
	// Unrouted returns up to limit events behind the routed position, with the targets that they may match.
	Unrouted(ctx context.Context, project string, limit int) (Batch, error)
	// FindListeners returns the listeners with one of the entries, and the summaries of shapes.
	FindListeners(ctx context.Context, project string, lookups []Lookup) (Found, error)
	// Due claims up to limit due deliveries, in order of their due time, and returns them with their events in order of
	// position. Each claim counts as an attempt; a result "released" takes that back. For a run to wake, it returns the
	// oldest pending deliveries in order, up to limit, and no others before each of these has a result. The claimed
	// deliveries are not due again for this owner before visible has passed; for the next owner they are due at once.
	Due(ctx context.Context, project string, owner inbox.Owner, limit int, visible time.Duration) ([]Delivery, error)
	Park(ctx context.Context, project string, owner inbox.Owner) (bool, error)
	Unpark(ctx context.Context, project string, owner inbox.Owner) error
	ParkedDue(ctx context.Context, limit int) ([]inbox.Name, error)
	Progress(ctx context.Context, names []inbox.Name) ([]inbox.Progress, error)
	// News returns what may be new since the mark, and the next mark: a cheap hint for all dispatchers of a process at
	// once. It reports the same head for some seconds, because late commits must not be missed. From mark 0 it returns
	// only a mark.
	News(ctx context.Context, mark int64) (news []News, next int64, err error)
	// OwnerHistory returns up to limit changes, newest first.
	OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]dispatchtype.OwnerChange, error)
}
