// Package inbox defines the interface between a dispatcher and the store of its events.
//
// An [Inbox] stores events durably, determines which deliveries are due, and allows only the current owner to claim
// them: it allocates the epochs. Dispatchers can be replaced at any time; accepted events stay in the inbox until their
// deliveries are done or dead. The guarantees of a dispatcher therefore depend on the inbox: with one that survives its
// process, no event is lost; with the in-memory one, events live as long as the process.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
)

// Name identifies the dispatcher of an inbox.
type Name struct {
	Project   string `json:"project"`
	TaskQueue string `json:"taskQueue"`
}

// Compare orders names by project, then task queue.
func (n Name) Compare(other Name) int {
	return cmp.Or(strings.Compare(n.Project, other.Project), strings.Compare(n.TaskQueue, other.TaskQueue))
}

// DispatcherPrefix is the prefix of the workflow IDs of dispatchers.
const DispatcherPrefix = "dispatcher-"

// DispatcherID returns the workflow ID of the dispatcher: a pure function of both names, the same on every host.
func (n Name) DispatcherID() string { return DispatcherPrefix + n.Project + "-" + n.TaskQueue }

// Owner is the process that owns the dispatcher and may claim, with the epoch of its ownership.
type Owner struct {
	// Epoch grows with every new owner, from 1.
	Epoch int64 `json:"epoch"`
	// Holder is the owner's server ID.
	Holder string `json:"holder"`
}

// ErrFenced is returned when the owner is not the one of the last [Inbox.Fence]. Nothing was changed.
var ErrFenced = errors.New("fenced: the dispatcher has another owner")

// Delivery is one unit of work: starting a workflow for an event, or waking a run with it.
type Delivery struct {
	// ID is unique within the inbox.
	ID string
	// Lane is the ordering key: deliveries of one lane are made one after another, in the order of Claim. An empty lane
	// has no order.
	Lane string
	// Attempt counts from 1.
	Attempt int
	// Item is the inbox's own value for its Deliver.
	Item any
}

// Result is the result of an attempt.
type Result string

// The results.
const (
	Done  Result = "done"  // delivered, or no longer needed
	Retry Result = "retry" // failed for now; due again after Outcome.After
	Dead  Result = "dead"  // failed permanently; kept with its reason for operators
	// Released: no attempt was made. The delivery is due at once, and the claim does not count as an attempt.
	Released Result = "released"
)

// Outcome is the result of an attempt with its details.
type Outcome struct {
	Result Result
	// After is the pause before the next attempt, for [Retry].
	After time.Duration
	// Reason is a text for operators.
	Reason string
}

// DeliveryOutcome is the outcome of one delivery.
type DeliveryOutcome struct {
	ID      string
	Outcome Outcome
}

// Progress is the position of a dispatcher in its events.
type Progress struct {
	Name  Name
	Owner Owner
	// Head is the position of the newest event. Routed is the position of the last event whose deliveries were determined.
	Head, Routed int64
	// Pending counts events that are not routed, and deliveries that are neither done nor dead. Due is set if a delivery
	// could be made now or an event is not routed: there is work.
	Pending int64
	Due     bool
	// Parked is set while the dispatcher waits for its doorbell.
	Parked bool
	// SinceProgress is the time since the last claim or recorded outcome, by the inbox's clock; -1 if there was none.
	SinceProgress time.Duration
	// Lag is the age of the oldest event that is not routed or delivery that is due, by the inbox's clock; 0 if there is
	// none.
	Lag time.Duration
	// Oldest is the age of the oldest event that is not routed, or has a delivery that is neither done nor dead. Unlike
	// Lag it includes deliveries that are being made, or wait for their next attempt. It is 0 if there is none.
	Oldest time.Duration
}

// Inbox stores events and their deliveries. Its methods are safe for concurrent use by any number of processes.
type Inbox interface {
	// Fence makes holder the owner and returns it with a new epoch. The epoch is higher than every earlier one, and higher
	// than above, which is the epoch seen in Temporal: the inbox may have lost its data. Once Fence has returned, claims
	// of earlier owners are rejected.
	Fence(ctx context.Context, name Name, holder string, above int64) (Owner, error)
	// Claim determines the deliveries of new events, and returns up to limit due deliveries, in order of acceptance within
	// each lane. It returns nothing of a lane whose oldest delivery is not due. A claim counts as progress. It returns
	// [ErrFenced] for any owner but the current one. A delivery that was claimed and has no recorded outcome is returned
	// by the next Claim of a later owner, or after visible.
	Claim(ctx context.Context, name Name, owner Owner, limit int, visible time.Duration) ([]Delivery, error)
	// Deliver makes one attempt, and returns soon after ctx ends. It needs no fence: the same attempt by two owners must
	// have one effect.
	Deliver(ctx context.Context, name Name, d Delivery) Outcome
	// RecordOutcomes stores the outcomes of deliveries. It returns [ErrFenced] for any owner but the current one.
	RecordOutcomes(ctx context.Context, name Name, owner Owner, outcomes []DeliveryOutcome) error
	// Park marks the dispatcher as parked and returns true, or returns false if something is due. An event that is
	// accepted afterwards requires a doorbell. It returns [ErrFenced] for any owner but the current one.
	Park(ctx context.Context, name Name, owner Owner) (bool, error)
	// Unpark removes the mark, after the doorbell. It returns [ErrFenced] for any owner but the current one.
	Unpark(ctx context.Context, name Name, owner Owner) error
	// Await returns when there may be something new to claim, at once if there already is, or when ctx ends. Its return is
	// a hint: callers also poll.
	Await(ctx context.Context, name Name)
	// ParkedDue returns the parked dispatchers for which something is due: their doorbells must ring.
	ParkedDue(ctx context.Context, limit int) ([]Name, error)
	// Progress returns the progress of the named dispatchers, or of all in the inbox if there are no names.
	Progress(ctx context.Context, names ...Name) ([]Progress, error)
}

// Batcher is an [Inbox] that can make several deliveries of one lane in one attempt.
type Batcher interface {
	Inbox

	// DeliverMany is Deliver for consecutive deliveries of one lane, at least two, in their order. It returns the outcomes
	// of the first ones: at those after the last outcome, no attempt was made. No outcome follows a [Retry].
	DeliverMany(ctx context.Context, name Name, list []Delivery) []Outcome
}
