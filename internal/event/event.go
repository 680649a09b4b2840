// Package event implements the path of an event from its acceptance to its last delivery: the inbox that stores it, the
// triggers and listeners that it is matched with, and the deliveries that start runs and wake waiting ones.
//
// An event is committed before it is acknowledged. Positions number the events of a project in the order of their
// commits, without gaps, so that "accepted before" is well defined. The newest event at the commit of a listener
// divides the events: the commit itself delivers the ones up to it that the listener takes, matching those behind it.
package event

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Status is the state of an event.
type Status string

// The states of an event.
const (
	Pending   Status = "pending"   // accepted, not matched yet
	Routed    Status = "routed"    // matched; its deliveries have states of their own
	Unmatched Status = "unmatched" // no trigger or listener matched; Reason lists near matches
	Rejected  Status = "rejected"  // it could not be matched; Reason is the cause
)

// Statuses returns all states of an event.
func Statuses() []Status { return []Status{Pending, Routed, Unmatched, Rejected} }

// Event is a CloudEvent that was published to Signalbox.
type Event struct {
	Project string
	// Position numbers the events of the project, from 1.
	Position int64
	// ID and Source together are unique in a project.
	ID, Source, Type string
	// Subject, DataContentType and DataSchema are empty and Time is zero where the event has none.
	Subject, DataContentType, DataSchema string
	Time                                 time.Time
	// Extensions are the extension attributes, as a JSON object; nil where there are none.
	Extensions json.RawMessage
	// Data is the payload as JSON: JSON unchanged, text as a string; nil where there is none.
	Data json.RawMessage
	// DataBase64: Data is a string that holds bytes in base64.
	DataBase64 bool
	ReceivedAt time.Time
	// Actor is the name of the publisher.
	Actor string
	// RunID is the run that emits the event: values that are sensitive in the run are sensitive in the event. It is not
	// stored.
	RunID string
	// Traceparent is the span that published the event, as the header of W3C Trace Context has it; empty without traces,
	// and in events that are read to be shown.
	Traceparent string
	Status      Status
	Reason      string
	// Original holds the values behind the marks in Subject, Extensions and Data; nil where there are none. Code that
	// shows events does not read it.
	Original *Original
	// Sensitive are the texts to hide wherever the event is used: set for an event that a run emits, and for an opened
	// event. Only Original stores them.
	Sensitive []string
	// Opened: the values behind the marks are restored. They must not get into any output that users see.
	Opened bool
}

// SameContent reports whether two events with one source and ID have the same type, subject, schema and data. Their
// times and extensions may differ: a publisher may set these anew for each attempt, as it does with a trace.
func SameContent(a, b Event) bool {
	return a.Type == b.Type && a.Subject == b.Subject && a.DataContentType == b.DataContentType &&
		a.DataSchema == b.DataSchema &&
		a.DataBase64 == b.DataBase64 && sameJSON(a.Data, b.Data)
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) || a == nil || b == nil {
		return (a == nil) == (b == nil) && bytes.Equal(a, b)
	}
	one, errOne := jq.DecodeJSON(a)
	other, errOther := jq.DecodeJSON(b)
	return errOne == nil && errOther == nil && reflect.DeepEqual(one, other)
}

// Original is the event before marks replaced its values, sealed.
type Original struct {
	KeyID  string
	Sealed []byte
}

// Kind is the effect of a delivery.
type Kind string

// The kinds of deliveries.
const (
	Start Kind = "start" // start a run of a workflow
	Wake  Kind = "wake"  // hand the event to a run that listens
)

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// The states of a delivery.
const (
	DeliveryPending DeliveryStatus = "pending"
	DeliveryDone    DeliveryStatus = "done"
	DeliveryDead    DeliveryStatus = "dead"
)

// DeliveryStatuses returns all states of a delivery.
func DeliveryStatuses() []DeliveryStatus {
	return []DeliveryStatus{DeliveryPending, DeliveryDone, DeliveryDead}
}

// Delivery is one event for one target; with a trigger that combines several events, the last of them.
type Delivery struct {
	// ID is unique among the deliveries of all projects, and derived from the events and the target.
	ID       string
	Project  string
	Position int64 // of the event
	Kind     Kind
	// Workflow and Version are what to start, for Start. RunID is the run to start, derived from event and target, or the
	// run to wake.
	Workflow, Version, RunID string
	// Listener is the listener to wake, for Wake.
	Listener string
	// Positions are the events to deliver, in order; several where a trigger combines events.
	Positions []int64
	Status    DeliveryStatus
	// Attempts is the number of attempts so far.
	Attempts int
	// NextAt is the time of the next attempt; zero when the delivery is done or dead, and while it waits for an earlier
	// delivery of its run.
	NextAt    time.Time
	Reason    string
	CreatedAt time.Time
	UpdatedAt time.Time
	// Events are the events at Positions; set only for the code that delivers.
	Events []Event
}

// DeliveryCursor is a position in the list of a run's deliveries, in order of the events' positions.
type DeliveryCursor struct {
	Position int64
	ID       string
}

// WakeEvent is an event for a listener of a run.
type WakeEvent struct {
	RunID, Listener string
	Position        int64
	// JSON is the event in its CloudEvents JSON form, Sensitive the sensitive texts in it.
	JSON      json.RawMessage
	Sensitive []string
}
