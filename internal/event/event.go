// Package event holds what happens to an event from its acceptance to its last delivery: the inbox that keeps it, the
// triggers and listeners that it is matched with, and the deliveries that start runs and wake waiting ones.
//
// An event is committed before it is acknowledged. Positions number the events and listeners of a project in the order of
// their commits, without gaps, so that "accepted before" has one meaning: an event is delivered to a listener only if its
// position is higher than the listener's.
package event

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
)

// Status is how far an event has come.
type Status string

// The states of an event.
const (
	Pending   Status = "pending"   // accepted, not matched yet
	Routed    Status = "routed"    // matched; its deliveries tell the rest
	Unmatched Status = "unmatched" // nobody wanted it; Reason says who came near
	Rejected  Status = "rejected"  // it could not be matched with anything; Reason says why
)

// Event is a CloudEvent that was given to Signalbox.
type Event struct {
	Project string
	// Position is its place among the project's events, from 1.
	Position int64
	// ID and Source together are unique in a project.
	ID, Source, Type string
	// Subject, DataContentType, DataSchema are empty where the event has none, Time is zero.
	Subject, DataContentType, DataSchema string
	Time                                 time.Time
	// Extensions are its other attributes, as a JSON object; nil where there are none.
	Extensions json.RawMessage
	// Data is its payload as JSON: the value itself where it is JSON, a string where it is text; nil where there is none.
	Data json.RawMessage
	// DataBase64 tells that Data is a string that holds bytes in base64.
	DataBase64 bool
	ReceivedAt time.Time
	// Actor is who gave it.
	Actor  string
	Status Status
	Reason string
}

// Kind is what a delivery does.
type Kind string

// The kinds of deliveries.
const (
	Start Kind = "start" // start a run of a workflow
	Wake  Kind = "wake"  // hand the event to a run that listens
)

// DeliveryStatus is how far a delivery has come.
type DeliveryStatus string

// The states of a delivery.
const (
	DeliveryPending DeliveryStatus = "pending"
	DeliveryDone    DeliveryStatus = "done"
	DeliveryDead    DeliveryStatus = "dead"
)

// Delivery is one event, or with a trigger that takes several the last of them, for one target.
type Delivery struct {
	ID       string
	Project  string
	Position int64 // of the event
	Kind     Kind
	// Workflow, Version, for Start: what to start. RunID: the run to be started, derived from event and target, or to be woken.
	Workflow, Version, RunID string
	// Listener is the listener to be woken, for Wake.
	Listener string
	// Positions are the events to hand over, in order; more than one where a trigger asks for all.
	Positions []int64
	Status    DeliveryStatus
	Attempts  int
	NextAt    time.Time
	Reason    string
	CreatedAt time.Time
	UpdatedAt time.Time
	// Events are what Positions name; filled for those who deliver.
	Events []Event
}

// Trigger is what a published, unpaused workflow wants to be started by: its schedule.on. There is one per workflow, that
// of the newest version.
type Trigger struct {
	Project, Workflow, Version, DocumentHash string
	// Paused: the workflow is; events that match are kept as unmatched, with that reason.
	Paused bool
	// Since is the position at which it was published.
	Since int64
	Spec  Spec
}

// Listener is a run that waits for events in one listen task.
type Listener struct {
	// ID is derived from the run and the entry into the task.
	ID, Project, RunID string
	Since              int64
	Spec               Spec
}

// Mode says how many of a spec's filters have to match.
type Mode string

// The modes.
const (
	One Mode = "one" // the single filter
	Any Mode = "any" // one of the filters; without filters, every event
	All Mode = "all" // each of the filters, by events that correlate
)

// Spec is what a trigger or a listener wants, in a form that can be stored: whatever depends on a run's data has been evaluated.
type Spec struct {
	Mode    Mode     `json:"mode"`
	Filters []Filter `json:"filters,omitempty"`
}

// Filter matches events.
type Filter struct {
	// With are the attributes that an event must have, by name ("data" is its payload). A value is a literal JSON value, or
	// an expression that is evaluated on the event.
	With map[string]Value `json:"with,omitempty"`
	// Correlate are the keys by which events belong together, by name.
	Correlate map[string]Key `json:"correlate,omitempty"`
}

// Value is a literal or, where Expr is not empty, an expression in jq (without ${ }) on the event: true and equal values match.
type Value struct {
	Literal json.RawMessage `json:"literal,omitempty"`
	Expr    string          `json:"expr,omitempty"`
}

// Key is a correlation key.
type Key struct {
	// From is an expression on the event that gives the key's value.
	From string `json:"from"`
	// Expect is what the value must be; nil: whatever the first event brings, the others must bring too.
	Expect json.RawMessage `json:"expect,omitempty"`
}

// Types are the event types that a spec can match, nil when it can match any.
func (s Spec) Types() []string {
	if len(s.Filters) == 0 {
		return nil
	}
	var types []string
	for _, f := range s.Filters {
		var name string
		if v, ok := f.With["type"]; !ok || v.Expr != "" || json.Unmarshal(v.Literal, &name) != nil {
			return nil
		}
		types = append(types, name)
	}
	return types
}

// Partial is a trigger's open set of events: some of its filters are met, others not yet.
type Partial struct {
	Project, Workflow string
	// Key is the JSON of the correlation keys' values that its events share, with sorted names.
	Key string
	// Positions are the events by the index of the filter that they met; 0 where none did yet.
	Positions []int64
}

// Routing is what matching made of one event.
type Routing struct {
	Position   int64
	Status     Status
	Reason     string
	Deliveries []Delivery
	// Partials are written as they are; one with no positions is removed.
	Partials []Partial
}

// Batch is what is to be matched: events in order, and what they may be for.
type Batch struct {
	Events    []Event
	Triggers  []Trigger
	Listeners []Listener // those whose types occur among the events, and those that take any type
	Partials  []Partial  // of the triggers
	// Earlier are the events that the partials name.
	Earlier []Event
}

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
