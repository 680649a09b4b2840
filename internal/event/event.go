// Package event holds what happens to an event from its acceptance to its last delivery: the inbox that keeps it, the
// triggers and listeners that it is matched with, and the deliveries that start runs and wake waiting ones.
//
// An event is committed before it is acknowledged. Positions number the events of a project in the order of their commits,
// without gaps, so that "accepted before" has one meaning: an event is delivered to a listener only if its position is
// higher than that of the newest event when the listener was committed.
package event

import (
	"encoding/json"
	"time"
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
	Actor string
	// RunID is the run that emits it: what is sensitive in the run is so in the event. It is not kept.
	RunID  string
	Status Status
	Reason string
	// Original is what the marks in Subject, Extensions and Data stand for; nil where there are none. Who shows events does not read it.
	Original *Original
	// Sensitive are the texts that are to be hidden in it wherever they come up: given with an event that a run emits, and told with one
	// that was opened, for those who get it. They are kept in Original alone.
	Sensitive []string
	// Opened tells that there were marks, and that what they stand for is in their place again: it must not get into what is shown.
	Opened bool
}

// Original is what an event was before marks were put in, sealed.
type Original struct {
	KeyID  string
	Sealed []byte
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
	// ID is unique among the deliveries of all projects, and derived from what is delivered to whom.
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
	// Attempts are those that were made.
	Attempts int
	// NextAt is when it is due; zero when it is settled, and while it waits for an earlier delivery of its run.
	NextAt    time.Time
	Reason    string
	CreatedAt time.Time
	UpdatedAt time.Time
	// Events are what Positions name; filled for those who deliver.
	Events []Event
}

// DeliveryCursor is a place among the deliveries of a run, in order of the events' positions.
type DeliveryCursor struct {
	Position int64
	ID       string
}
