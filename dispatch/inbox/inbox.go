// Package inbox is what a dispatcher needs of the place where events wait until they are delivered.
//
// An [Inbox] keeps events durably, says which deliveries are due, and knows who may claim them: it hands out the epochs.
// Dispatchers come and go; what was accepted stays here until its deliveries are done or given up. Which promises of a
// dispatcher hold therefore depends on the inbox: with one that survives its process, no event is lost; with the one in
// memory, events live as long as the process does.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
)

// Name is which dispatcher an inbox is for.
type Name struct {
	Project   string `json:"project"`
	TaskQueue string `json:"taskQueue"`
}

// Compare orders names by project, then task queue.
func (n Name) Compare(other Name) int {
	return cmp.Or(strings.Compare(n.Project, other.Project), strings.Compare(n.TaskQueue, other.TaskQueue))
}

// DispatcherPrefix is what the IDs of dispatchers begin with.
const DispatcherPrefix = "dispatcher-"

// DispatcherID is the ID of the dispatcher's workflow in Temporal: a pure function of both names, the same on every host.
func (n Name) DispatcherID() string { return DispatcherPrefix + n.Project + "-" + n.TaskQueue }

// Owner is who may claim: the process that owns the dispatcher, and the number of its ownership.
type Owner struct {
	// Epoch grows with every new owner, from 1.
	Epoch int64 `json:"epoch"`
	// Holder is the owner's server ID.
	Holder string `json:"holder"`
}

// ErrFenced is returned when the owner is not, or no longer, the one that the last [Inbox.Fence] named. Nothing was changed.
var ErrFenced = errors.New("fenced: the dispatcher has another owner")

// Delivery is one thing to do: start a workflow for an event, wake a run with it.
type Delivery struct {
	// ID is unique within the inbox.
	ID string
	// Lane orders: deliveries of one lane are made one after another, in the order of Claim. Empty: in no order.
	Lane string
	// Attempt counts from 1.
	Attempt int
	// Item is what the inbox's own Deliver understands.
	Item any
}

// Result is what became of an attempt.
type Result string

// The results.
const (
	Done  Result = "done"  // it is delivered, or need not be any more
	Retry Result = "retry" // not now: again after Outcome.After
	Dead  Result = "dead"  // never: it is kept with its reason, for people
	// Released: no attempt was made. It is due at once, and the claim is not counted as an attempt.
	Released Result = "released"
)

// Outcome is how an attempt went.
type Outcome struct {
	Result Result
	// After is when to try again, for [Retry].
	After time.Duration
	// Reason is for people.
	Reason string
}

// Settled is the outcome of one delivery.
type Settled struct {
	ID      string
	Outcome Outcome
}

// Progress is how far a dispatcher has come.
type Progress struct {
	Name  Name
	Owner Owner
	// Head is the position of the newest event, Routed that of the last one whose deliveries were determined.
	Head, Routed int64
	// Pending counts events that are not routed yet, and deliveries that are neither done nor dead; Due is set where one of the
	// deliveries could be made now, or that an event is not routed yet: there is work.
	Pending int64
	Due     bool
	// Parked tells that the dispatcher sleeps until its doorbell rings.
	Parked bool
	// SinceProgress is the time since the last claim or settlement, by the inbox's clock; -1 when there was none.
	SinceProgress time.Duration
	// Lag is the age of the oldest event that is not routed or delivery that is due, by the inbox's clock; 0 when there is none.
	Lag time.Duration
}

// Inbox is a place where events wait. Its methods are safe for concurrent use by any number of processes.
type Inbox interface {
	// Fence makes holder the owner and returns it with an epoch that is higher than every one before, and higher than
	// above (what was seen in Temporal, should the inbox have lost its memory). From its return on, claims of earlier owners are refused.
	Fence(ctx context.Context, name Name, holder string, above int64) (Owner, error)
	// Claim determines the deliveries of new events and returns up to limit deliveries that are due, in order of acceptance
	// within each lane: of a lane whose oldest delivery is not due yet, none. It counts as progress. [ErrFenced] for anyone but the owner.
	// One that was claimed and not settled is claimed again by the next Claim of a later owner, or after visible.
	Claim(ctx context.Context, name Name, owner Owner, limit int, visible time.Duration) ([]Delivery, error)
	// Deliver makes one attempt, and returns soon after ctx ends. It does not need the fence: an attempt that two owners make has one effect.
	Deliver(ctx context.Context, name Name, d Delivery) Outcome
	// Settle writes what became of deliveries. [ErrFenced] for anyone but the owner.
	Settle(ctx context.Context, name Name, owner Owner, settled []Settled) error
	// Park marks the dispatcher as parked, unless there is something due (false). Whoever accepts an event after that
	// knows that the doorbell must ring. [ErrFenced] for anyone but the owner.
	Park(ctx context.Context, name Name, owner Owner) (bool, error)
	// Unpark takes the mark away: the doorbell has rung. [ErrFenced] for anyone but the owner.
	Unpark(ctx context.Context, name Name, owner Owner) error
	// Await returns when there may be something new to claim, at once if there is already, or ctx ends. It is a hint: whoever waits
	// looks again from time to time.
	Await(ctx context.Context, name Name)
	// Asleep returns the dispatchers that are parked although something is due: their doorbells must ring.
	Asleep(ctx context.Context, limit int) ([]Name, error)
	// Progress returns how far dispatchers have come, all that the inbox knows where there are no names.
	Progress(ctx context.Context, names ...Name) ([]Progress, error)
}
