package event

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
)

// ListFilter says which events to list. Zero fields match everything.
type ListFilter struct {
	Project, Type, Source, ID string
	Statuses                  []Status
	// Dead: only events with a dead delivery.
	Dead         bool
	Since, Until time.Time
	// Before is the position to go on below: lists are newest first. 0: from the newest.
	Before int64
	Limit  int
}

// Accepted is what became of one event that was published.
type Accepted struct {
	Position int64
	// Duplicate: an event with this source and ID was accepted before, at Position; this one was not kept.
	Duplicate bool
}

// OwnerChange is one entry of the history of a dispatcher's owners.
type OwnerChange struct {
	Name  inbox.Name
	Owner inbox.Owner
	// How is cold_start, handover or takeover.
	How string
	// Previous is the owner before, zero where there was none.
	Previous inbox.Owner
	// Execution is Temporal's run ID of the dispatcher, Ended that of the one which was terminated for it, empty where none was.
	Execution, Ended string
	Reason           string
	At               time.Time
}

// News is that something may be there for a project's dispatcher.
type News struct {
	Project string
	// Head is the position of the project's newest event.
	Head int64
	// Due tells that a delivery has become due.
	Due bool
}

// Backlog is what a project has to do.
type Backlog struct {
	Project string
	// Pending counts events that are not matched yet, and deliveries that are neither done nor dead.
	Pending int64
	// Lag is the age of the oldest event that is not matched or delivery that is due; 0 where there is none.
	Lag time.Duration
	// Orphan: work is due, and the last owner of the project's dispatcher is gone.
	Orphan bool
}

// ErrRouted is a store's answer to routings of events that do not follow the routed position: somebody else has written theirs.
var ErrRouted = errors.New("the events are routed already")

// Store keeps events, triggers, listeners and deliveries. A project's dispatcher is named by the project.
//
// CommitRouting, Due, Settle, Park and Unpark answer [inbox.ErrFenced] to a caller that is not the owner that the last Fence made.
type Store interface {
	Rows

	// Publish commits events, in order, each with the project's next position; duplicates, also among themselves, are told and not
	// kept. ReceivedAt is the store's own time, which never goes back along the positions. wake tells that the project's
	// dispatcher is parked.
	Publish(ctx context.Context, project string, events []Event) (accepted []Accepted, wake bool, err error)
	// Listen commits a listener, whose Since becomes the position of the newest event at that moment: it takes no position
	// itself. One with the same ID stays as it is. The listener of a run that has ended is refused with [fault.RunEnded]. A run's
	// listeners go with the end of the run.
	Listen(ctx context.Context, l Listener) error
	// CommitRouting writes what matching made of the events that follow the routed position, in order, without a gap; [ErrRouted]
	// where they do not.
	CommitRouting(ctx context.Context, project string, owner inbox.Owner, routings []Routing) error
	// Settle writes what became of deliveries that Due returned.
	Settle(ctx context.Context, project string, owner inbox.Owner, settled []inbox.Settled) error
	// RecordOwner adds to the history of owners and commits the event that reports it, in one transaction. What is recorded already, by
	// name, epoch and execution, stays as it is.
	RecordOwner(ctx context.Context, c OwnerChange, tell Event, e audit.Entry) error
}

// Rows is the part of a [Store] to which no values of events or runs are written.
//
//nolint:interfacebloat // it is what is left of Store, whose parts have names of their own
type Rows interface {
	GetEvent(ctx context.Context, project string, position int64) (Event, error)
	ListEvents(ctx context.Context, f ListFilter) ([]Event, error)
	// ListDeliveries returns the deliveries that an event is part of.
	ListDeliveries(ctx context.Context, project string, position int64) ([]Delivery, error)
	// ListRunDeliveries returns up to limit deliveries that started a run, woke it or should have, in order of their events.
	ListRunDeliveries(ctx context.Context, project, runID string, after *DeliveryCursor, limit int) ([]Delivery, error)
	// Redeliver makes pending and dead deliveries of an event due at once, all where no IDs are given, and writes e. It returns those
	// it changed: neither those that are being made at this moment, nor those that wait for an earlier event of their run, nor
	// dead ones whose listener was given a later event or is being given one: its run takes none out of order. A dead one that has started
	// no run starts the newest version of its workflow then. An ID that the event does not have is [fault.DeliveryNotFound].
	Redeliver(ctx context.Context, project string, position int64, ids []string, at time.Time, e audit.Entry) ([]Delivery, error)
	// FindDeliveries returns those of a project's deliveries with these IDs that there are, with their events.
	FindDeliveries(ctx context.Context, project string, ids []string) ([]Delivery, error)
	// Unlisten removes a listener, whether or not it is there.
	Unlisten(ctx context.Context, project, id string) error
	// GetListener returns a listener, if it is there.
	GetListener(ctx context.Context, project, id string) (l Listener, found bool, err error)
	// Fence makes an owner of the dispatcher.
	Fence(ctx context.Context, project, taskQueue, holder string, above int64) (inbox.Owner, error)
	// Unrouted returns up to limit events behind the routed position, with what they may be for.
	Unrouted(ctx context.Context, project string, limit int) (Batch, error)
	// Due claims up to limit deliveries that are due now, those due longest first, and returns them with their events in order of
	// position. Each claim counts as an attempt, which a settlement as released takes back. Of a run that is to be woken come its oldest pending
	// deliveries in a row, as far as limit goes, and no others before each of these is settled. They are not due again for the owner before
	// visible is over; for the next owner they are at once.
	Due(ctx context.Context, project string, owner inbox.Owner, limit int, visible time.Duration) ([]Delivery, error)
	Park(ctx context.Context, project string, owner inbox.Owner) (bool, error)
	Unpark(ctx context.Context, project string, owner inbox.Owner) error
	Asleep(ctx context.Context, limit int) ([]inbox.Name, error)
	Progress(ctx context.Context, names []inbox.Name) ([]inbox.Progress, error)
	// News returns what may be new since the mark, and the next mark: a cheap hint for all dispatchers of a process at once. The
	// same head may be told several times in a row, because what is committed late must not be missed. From mark 0 it returns nothing but a mark.
	News(ctx context.Context, mark int64) (news []News, next int64, err error)
	// OwnerHistory returns up to limit changes, newest first.
	OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]OwnerChange, error)
}
