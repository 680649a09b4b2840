package terms

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// Outcome is how an attempt to own a dispatcher ended.
type Outcome string

// The outcomes.
const (
	ColdStart Outcome = "cold_start" // there was none; it was started
	Joined    Outcome = "joined"     // it has an owner; this process works for it
	Handover  Outcome = "handover"   // the one that ran was adopted
	Takeover  Outcome = "takeover"   // the one that was open was terminated and another started
	Lost      Outcome = "lost"       // ownership went to somebody else
	Failed    Outcome = "error"      // it ended in an error and is tried again
)

// OwnerChange is a dispatcher that has another owner, or none any more (Outcome Lost, To empty).
type OwnerChange struct {
	Name              inbox.Name
	WorkflowID, RunID string
	Outcome           Outcome
	// From is the owner before, empty where there was none or nobody knows, To the one after. Epochs are 0 where they are not known.
	From, To           string
	FromEpoch, ToEpoch int64
	// Ended is the run that was terminated for it, empty where none was.
	Ended  string
	Reason string
	At     time.Time
	// Took is the time from winning the lease to a dispatcher that has the new owner; 0 for Lost.
	Took time.Duration
}

// Termination is a workflow that was terminated.
type Termination struct {
	Name              inbox.Name
	WorkflowID, RunID string
	// Kind is why, in one word, the label of the metric; Reason is what Temporal was told.
	Kind, Reason string
	// From and FromEpoch are who owned it, To and ToEpoch who does after; empty and 0 where nobody knows, or does.
	From, To           string
	FromEpoch, ToEpoch int64
	// By is the server ID of who terminated it.
	By string
	At time.Time
}

// Eviction is a batch of workers that a dispatcher struck off its list.
type Eviction struct {
	Name inbox.Name
	// Evicted are server IDs, in order.
	Evicted []string
	By      string
	At      time.Time
}

// Foreign is a workflow that has taken the ID of a dispatcher and is none of ours: nothing is routed while it is open.
type Foreign struct {
	Name inbox.Name
	// WorkflowID is the dispatcher's, RunID and Type are those of what is open.
	WorkflowID, RunID, Type string
	// By is the server ID of the process that found it.
	By string
	At time.Time
}

// Journal keeps what became of dispatchers. It is called after the fact, and when it fails again, with the same, until it does not: what it
// did take, for all that it failed, must not be there twice. Nobody who acted waits for it. What waits when a process is killed is lost,
// except for evictions, which another process tells of.
type Journal interface {
	OwnerChanged(ctx context.Context, c OwnerChange) error
	Terminated(ctx context.Context, t Termination) error
	Evicted(ctx context.Context, e Eviction) error
	// Foreign is called by each process that finds it, once for each run.
	Foreign(ctx context.Context, f Foreign) error
}
