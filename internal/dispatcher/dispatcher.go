// Package dispatcher is what the platform tells about its dispatchers and workers, and the two things that an operator does to
// dispatchers: hand one over to another worker, and reconcile all of them at once.
//
//	service := dispatcher.NewService(source, history, auditLog, time.Now)
//	all, err := service.List(ctx)                    // what cannot be asked says so in its place
//	owner, err := service.HandOver(ctx, "shop", why) // audited
//	report, err := service.Reconcile(ctx, dryRun)    // audited, unless it only looked
//
// The package holds no state and runs no loop. Leases, Temporal and the inbox are read by a [Source]; owning and supervising
// dispatchers is package dispatch's.
package dispatcher

import (
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// State is what a dispatcher is doing.
type State string

// The states of a dispatcher.
const (
	Routing State = "routing" // it has work and does it, or looks out for some
	Parked  State = "parked"  // it sleeps until its doorbell rings
	Stale   State = "stale"   // nobody owns it or works for it; the supervisor ends it
	Missing State = "missing" // nothing is open in Temporal
	Foreign State = "foreign" // its ID is taken by what is none of ours
	// NoWorkers: no live worker serves its project, so nothing is routed.
	NoWorkers State = "no_workers"
	Unknown   State = "unknown" // a source that decides it could not be read
)

// Dispatcher is one dispatcher, seen from all sides.
type Dispatcher struct {
	Name       inbox.Name
	WorkflowID string
	State      State
	// Detail says why, where the state does not say it all.
	Detail string
	// Lease is the owner's entry, Execution what is open in Temporal, Progress what the inbox knows; nil where there is none, or it
	// could not be asked.
	Lease     *Lease
	Execution *Execution
	Progress  *inbox.Progress
	// Workers are registered with it; not filled in lists.
	Workers []Registered
	// Owners are its last ones, newest first; not filled in lists.
	Owners []event.OwnerChange
	// Errors say what could not be asked, one line each, without anything secret.
	Errors []string
}

// Lease is the owner's, by the clock of the store that keeps it.
type Lease struct {
	// State is held, resigned or expired.
	State string
	Owner inbox.Owner
	// AcquiredAt is when it was acquired, RenewedAt when last renewed.
	AcquiredAt, RenewedAt time.Time
	// Remaining is how long it counts without a renewal; negative once it does not.
	Remaining time.Duration
}

// Execution is an open workflow.
type Execution struct {
	// RunID is Temporal's.
	RunID     string
	StartedAt time.Time
	// Owner adopted it last, by its memo; zero where that says nothing.
	Owner inbox.Owner
	// Interpreter is the version of its code.
	Interpreter int
	// HistoryLength is in events.
	HistoryLength int64
}

// Registered is a worker as a dispatcher knows it.
type Registered struct {
	ServerID, TaskQueue, Build string
	At                         time.Time
	// Missed is how often in a row its heartbeat was missing.
	Missed int
}

// WorkerState is what a worker's heartbeat says of it.
type WorkerState string

// The states of a worker.
const (
	Alive   WorkerState = "alive"   // its heartbeat is there
	Late    WorkerState = "late"    // its heartbeat did not come in time
	Stopped WorkerState = "stopped" // it said that it stops
	Silent  WorkerState = "silent"  // registered, and without a heartbeat
	Unsure  WorkerState = "unknown" // registered, and its heartbeat cannot be asked for
)

// Worker is a worker process: its heartbeat, beside its registrations.
type Worker struct {
	ServerID string
	State    WorkerState
	// Build is Signalbox's version, Interpreter that of the interpreter of runs, Contract the fingerprint of names in Temporal.
	Build       string
	Interpreter int
	Contract    string
	// Projects that it works for; none: all.
	Projects                    []string
	StartedAt, BeatAt, LastPoll time.Time
	// StaleIn is how long until it is late; negative once it is.
	StaleIn       time.Duration
	Registrations []Registration
}

// Registration says that a dispatcher knows a worker.
type Registration struct {
	Name inbox.Name
	At   time.Time
}

// Workers is everything that is known of workers.
type Workers struct {
	Workers []Worker
	// Errors say what could not be asked, one line each, without anything secret.
	Errors []string
}

// Action is what the supervisor does about something.
type Action string

// The actions.
const (
	Terminate   Action = "terminate"
	Postpone    Action = "postpone"
	DeleteEntry Action = "delete_entry"
	Alert       Action = "alert"
)

// Item is one thing that the supervisor does, or would do.
type Item struct {
	Action Action
	// Kind is why, in one word.
	Kind              string
	Name              inbox.Name
	WorkflowID, RunID string
	Owner             inbox.Owner
	Reason            string
	// Applied tells that it was done; Error why it could not be.
	Applied bool
	Error   string
}

// Report is what one reconciliation found and did.
type Report struct {
	Items []Item
	// Dispatchers counts those that are open; the others what is made of them.
	Dispatchers, Healthy, Stale, Unknown int
	Took                                 time.Duration
	DryRun                               bool
}
