package event

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
)

// Filter for lists of events. Zero fields match everything.
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

// Store keeps events, triggers, listeners and deliveries. A project's dispatcher is named by the project.
type Store interface {
	// Publish commits events, in order, each with the project's next position; duplicates are told, not kept. wake tells that the
	// project's dispatcher is parked.
	Publish(ctx context.Context, project string, events []Event) (accepted []Accepted, wake bool, err error)
	GetEvent(ctx context.Context, project string, position int64) (Event, error)
	ListEvents(ctx context.Context, f ListFilter) ([]Event, error)
	// ListDeliveries returns the deliveries that an event is part of.
	ListDeliveries(ctx context.Context, project string, position int64) ([]Delivery, error)
	// Redeliver makes pending and dead deliveries of an event due at once, all where no IDs are given, and writes e. It returns those it changed.
	Redeliver(ctx context.Context, project string, position int64, ids []string, at time.Time, e audit.Entry) ([]Delivery, error)

	// Listen commits a listener with the project's next position; one with the same ID is there already. Unlisten removes it. A
	// run's listeners go with the end of the run too.
	Listen(ctx context.Context, l Listener) error
	Unlisten(ctx context.Context, project, id string) error
	// OpenListeners tells which of a run's listeners are there.
	GetListener(ctx context.Context, project, id string) (Listener, error)

	// Fence, CommitRouting, Due, Settle, Park, Unpark answer [inbox.ErrFenced] to whoever is not the owner.
	Fence(ctx context.Context, project, taskQueue, holder string, above int64) (inbox.Owner, error)
	// Unrouted returns up to limit events behind the routed position, with what they may be for.
	Unrouted(ctx context.Context, project string, limit int) (Batch, error)
	// CommitRouting writes what matching made of the events that follow the routed position, in order, without a gap.
	CommitRouting(ctx context.Context, project string, owner inbox.Owner, routings []Routing) error
	// Due claims up to limit deliveries that are due now, with their events, in order of position; of a run that is to be woken only
	// its oldest pending deliveries in a row. They are not due again for the owner before visible is over.
	Due(ctx context.Context, project string, owner inbox.Owner, limit int, visible time.Duration) ([]Delivery, error)
	Settle(ctx context.Context, project string, owner inbox.Owner, settled []inbox.Settled) error
	Park(ctx context.Context, project string, owner inbox.Owner) (bool, error)
	Unpark(ctx context.Context, project string, owner inbox.Owner) error
	Asleep(ctx context.Context, limit int) ([]inbox.Name, error)
	Progress(ctx context.Context, names []inbox.Name) ([]inbox.Progress, error)
	// News returns the projects with events or due deliveries that came after the mark, and the new mark: a cheap hint for all
	// dispatchers of a process at once.
	News(ctx context.Context, mark int64) (projects []string, next int64, err error)

	// RecordOwner adds to the history of owners and commits the event that tells of it, in one.
	RecordOwner(ctx context.Context, c OwnerChange, tell Event, e audit.Entry) error
	// OwnerHistory returns up to limit changes, newest first.
	OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]OwnerChange, error)
}
