// Package dispatcher is the platform's view of its dispatchers and workers, with the two operations of an operator: hand a dispatcher over
// to another worker, and reconcile all of them.
//
//	service := dispatcher.NewService(source, history, auditLog, time.Now)
//	all, err := service.List(ctx)                    // sources that cannot be read are reported in the result
//	owner, err := service.HandOver(ctx, "shop", why) // audited
//	report, err := service.Reconcile(ctx, dryRun)    // audited, except dry runs
//
// The package holds no state and runs no loop. A [Source] reads leases, Temporal and the inbox; package dispatch owns and supervises
// dispatchers.
package dispatcher

import (
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// State is the current state of a dispatcher.
type State string

// The states of a dispatcher.
const (
	Routing State = "routing" // it delivers events, or polls for more
	Parked  State = "parked"  // it waits for its doorbell signal
	Stale   State = "stale"   // it has neither an owner nor a worker; the supervisor terminates it
	Missing State = "missing" // nothing is open in Temporal
	Foreign State = "foreign" // a foreign workflow has its ID
	// NoWorkers: no live worker serves its project, so nothing is routed.
	NoWorkers State = "no_workers"
	Unknown   State = "unknown" // a source that determines the state could not be read
)

// Dispatcher is one dispatcher as all sources show it.
type Dispatcher struct {
	Name       inbox.Name
	WorkflowID string
	State      State
	// Detail is the reason for the state, where there is more to it.
	Detail string
	// Lease is the owner's entry, Execution the open workflow in Temporal, Progress its row in the inbox; nil if there is none or the
	// source could not be read.
	Lease     *Lease
	Execution *Execution
	Progress  *inbox.Progress
	// Workers are the registered workers; not set in lists.
	Workers []Registered
	// Owners are the last owners, newest first; not set in lists.
	Owners []event.OwnerChange
	// Errors describe the sources that could not be read, one line each, without secrets.
	Errors []string
}

// Lease is the owner's lease, by the clock of its store.
type Lease struct {
	// State is held, resigned or expired.
	State string
	Owner inbox.Owner
	// AcquiredAt is when it was acquired, RenewedAt when last renewed.
	AcquiredAt, RenewedAt time.Time
	// Remaining is the time until the lease expires without a renewal; negative once it has.
	Remaining time.Duration
}

// Execution is an open workflow.
type Execution struct {
	// RunID is the run ID in Temporal.
	RunID     string
	StartedAt time.Time
	// Owner is the last owner by its memo; zero if there is no memo.
	Owner inbox.Owner
	// Interpreter is the version of its workflow code.
	Interpreter int
	// HistoryLength is the number of events.
	HistoryLength int64
}

// Registered is a worker as registered with a dispatcher.
type Registered struct {
	ServerID, TaskQueue, Build string
	At                         time.Time
	// Missed is the number of consecutive checks that found no heartbeat.
	Missed int
}

// WorkerState is the state that a worker's heartbeat shows.
type WorkerState string

// The states of a worker.
const (
	Alive   WorkerState = "alive"   // its heartbeat is current
	Late    WorkerState = "late"    // its heartbeat has expired
	Stopped WorkerState = "stopped" // it resigned its heartbeat
	Silent  WorkerState = "silent"  // registered, without a heartbeat
	Unsure  WorkerState = "unknown" // registered, and its heartbeat cannot be read
)

// Worker is a worker process with its heartbeat and its registrations.
type Worker struct {
	ServerID string
	State    WorkerState
	// Build is the version of Signalbox, Interpreter the version of the workflow interpreter, Contract the fingerprint of the names in
	// Temporal.
	Build       string
	Interpreter int
	Contract    string
	// Projects are the served projects; none means all.
	Projects                    []string
	StartedAt, BeatAt, LastPoll time.Time
	// StaleIn is the time until it is late; negative once it is.
	StaleIn       time.Duration
	Registrations []Registration
}

// Registration is a worker's registration with a dispatcher.
type Registration struct {
	Name inbox.Name
	At   time.Time
}

// Workers is the result of [Service.Workers].
type Workers struct {
	Workers []Worker
	// Errors describe the sources that could not be read, one line each, without secrets.
	Errors []string
}

// Action is the kind of an item.
type Action string

// The actions.
const (
	Terminate   Action = "terminate"
	Postpone    Action = "postpone"
	DeleteEntry Action = "delete_entry"
	Alert       Action = "alert"
)

// Item is one action of the supervisor, taken or planned, or an alert.
type Item struct {
	Action Action
	// Kind is the reason in one word.
	Kind              string
	Name              inbox.Name
	WorkflowID, RunID string
	Owner             inbox.Owner
	Reason            string
	// Applied reports that the action was taken; Error is why it was not.
	Applied bool
	Error   string
}

// Report is the result of a reconciliation.
type Report struct {
	Items []Item
	// Dispatchers counts the open dispatchers; Healthy, Stale and Unknown count them by class.
	Dispatchers, Healthy, Stale, Unknown int
	Took                                 time.Duration
	DryRun                               bool
}
