package dispatchtype

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// Outcome is the result of an attempt to own a dispatcher.
type Outcome string

// The outcomes.
const (
	ColdStart Outcome = "cold_start" // none was open; it was started
	Joined    Outcome = "joined"     // it has another owner; this process serves it
	Handover  Outcome = "handover"   // the open one was adopted
	Takeover  Outcome = "takeover"   // the open one was terminated and a new one started
	Lost      Outcome = "lost"       // the lease was lost
	Failed    Outcome = "error"      // the attempt failed and is repeated
)

// OwnerChange is a change of a dispatcher's owner. When the owner has lost its lease, Outcome is Lost and To is zero.
type OwnerChange struct {
	Name              inbox.Name
	WorkflowID, RunID string
	Outcome           Outcome
	// From is the previous owner, zero where there was none or it is unknown. To is the new owner. An unknown epoch is 0.
	From, To inbox.Owner
	// Ended is the run ID that was terminated for the change, empty where none was.
	Ended  string
	Reason string
	At     time.Time
	// Duration is the time from the acquisition of the lease until the dispatcher had the new owner; 0 for Lost.
	Duration time.Duration
}

// Termination is a workflow that was terminated.
type Termination struct {
	Name              inbox.Name
	WorkflowID, RunID string
	// Kind is the reason as the metric's label. Reason is the text that was sent to Temporal.
	Kind, Reason string
	// From is the previous owner, To the current one; zero where there is none or it is unknown.
	From, To inbox.Owner
	// By is the server ID of the process that terminated it.
	By string
	At time.Time
}

// Eviction is a batch of workers that a dispatcher removed from its list.
type Eviction struct {
	Name inbox.Name
	// Evicted are server IDs, sorted.
	Evicted []string
	By      string
	At      time.Time
}

// ForeignWorkflow is a workflow that is no dispatcher of this installation and has the ID of one. While it is open, no
// events are routed.
type ForeignWorkflow struct {
	Name inbox.Name
	// WorkflowID is the dispatcher's. RunID and Type are those of the open workflow.
	WorkflowID, RunID, Type string
	// By is the server ID of the process that found it.
	By string
	At time.Time
}

// Journal stores changes of dispatchers. Its methods are called after the change. A call that fails is repeated with
// the same arguments until it succeeds, so an implementation must not store the same change twice, even if an earlier
// call stored it and then failed. No dispatcher waits for the journal. Calls that are still queued when a process is
// killed are lost, except evictions, which another process repeats.
type Journal interface {
	OwnerChanged(ctx context.Context, c OwnerChange) error
	Terminated(ctx context.Context, t Termination) error
	Evicted(ctx context.Context, e Eviction) error
	// Foreign is called once for each run by every process that finds it.
	Foreign(ctx context.Context, f ForeignWorkflow) error
}
