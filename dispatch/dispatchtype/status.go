package dispatchtype

import (
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/lease"
)

// ErrNotOwned is returned where a dispatcher has no owner that could hand it over.
var ErrNotOwned = errors.New("the dispatcher has no owner")

// ErrNotListed is part of the errors of a read that failed because Temporal did not list the open dispatchers. Its
// visibility store serves lists: other requests may succeed at the same time.
var ErrNotListed = errors.New("temporal did not list the open dispatchers")

// Status is the current state of a dispatcher.
type Status string

// The statuses.
const (
	Routing Status = "routing" // it delivers events, or polls for more
	Parked  Status = "parked"  // it waits for its doorbell signal
	Stale   Status = "stale"   // it has neither an owner nor a worker; the supervisor terminates it
	Missing Status = "missing" // nothing is open in Temporal
	Foreign Status = "foreign" // a foreign workflow has its ID
	// NoWorkers: no live worker serves its project, so nothing is routed.
	NoWorkers Status = "no_workers"
	Unknown   Status = "unknown" // a source that determines the status could not be read
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{Routing, Parked, Stale, Missing, Foreign, NoWorkers, Unknown}
}

// LeaseStates returns all states of an owner's lease.
func LeaseStates() []lease.State { return []lease.State{lease.Held, lease.Resigned, lease.Expired} }

// Class is the supervisor's classification of an open dispatcher.
type Class string

// The classes.
const (
	ClassHealthy Class = "healthy" // it has an owner, or a live worker until it has one
	ClassStale   Class = "stale"   // there is evidence that it has neither an owner nor a worker
	ClassUnknown Class = "unknown" // there is evidence for neither; it is left alone
)

// Dispatcher is one dispatcher as the leases, the inbox and Temporal show it.
type Dispatcher struct {
	Name       inbox.Name
	WorkflowID string
	Status     Status
	// Class and Reason are the supervisor's classification of the open workflow and the reason for it; empty if none is
	// open.
	Class  Class
	Reason string
	// Unserved: no process serves the name for lack of work. Its status is Parked; it has no owner and need not be open.
	Unserved bool
	// Lease is its owner's entry, Execution the open workflow with its ID, Progress its row in the inbox; nil if there is
	// none or the source could not be read. A name that was listed without a row has a zero Progress. Others are further
	// open dispatchers of the same name, with IDs of older schemes. Unknown are open workflows of the dispatchers' type on
	// its task queue that cannot be attributed, such as a dispatcher of an older program whose ID no pattern matches; only
	// lists of dispatchers are sure to have them.
	Lease     *Lease
	Execution *Execution
	Others    []Execution
	Unknown   []Execution
	// Stale is the number of stale workflows among Execution and Others.
	Stale    int
	Progress *inbox.Progress
	// State is its answer to the state query; nil in lists, and if it did not answer.
	State *State
	// Errors are those of the sources that could not be read.
	Errors []PartError
}

// Lease is an owner's entry, by the clock of its store.
type Lease struct {
	State lease.State
	// Owner is the holder. Its epoch is 0 until the inbox has allocated it.
	Owner inbox.Owner
	// Token is the beginning of the acquisition's token.
	Token                 string
	AcquiredAt, RenewedAt time.Time
	// Remaining is the time until the lease expires without a renewal; negative once it has.
	Remaining time.Duration
}

// Execution is an open workflow.
type Execution struct {
	WorkflowID, RunID string
	StartedAt         time.Time
	// Owner is the last owner by its memo; zero if there is no memo.
	Owner inbox.Owner
	// Interpreter is the version of its workflow code.
	Interpreter int
	// HistoryLength is the number of events.
	HistoryLength int64
}

// State is a dispatcher's answer to a state query, or to an adoption.
type State struct {
	Name  inbox.Name `json:"name"`
	Owner string     `json:"owner"`
	Epoch int64      `json:"epoch"`
	// Phase is Routing or Parked.
	Phase       Status `json:"phase"`
	Interpreter int    `json:"interpreter"`
	// Workers are ordered by server ID.
	Workers []RegisteredWorker `json:"workers,omitempty"`
}

// RegisteredWorker is a process as registered with a dispatcher.
type RegisteredWorker struct {
	ServerID     string    `json:"serverId"`
	TaskQueue    string    `json:"taskQueue"`
	Build        string    `json:"build,omitempty"`
	RegisteredAt time.Time `json:"registeredAt"`
	// Missed is the number of consecutive checks that found no heartbeat.
	Missed int `json:"missed,omitempty"`
}

// Part is a source of what is shown of dispatchers.
type Part string

// The parts.
const (
	PartLeases   Part = "leases"
	PartInbox    Part = "inbox"
	PartTemporal Part = "temporal"
	PartState    Part = "state" // the dispatcher itself
)

// PartError is the error of a source.
type PartError struct {
	Part Part
	Err  error
}

func (e PartError) Error() string { return e.Err.Error() }

// Unwrap returns the error without its source.
func (e PartError) Unwrap() error { return e.Err }

// WorkerStatus is the status that a worker's heartbeat shows.
type WorkerStatus string

// The statuses of a worker.
const (
	WorkerAlive WorkerStatus = "alive" // its heartbeat is current
	WorkerLate  WorkerStatus = "late"  // its heartbeat has expired
	// WorkerDead: its heartbeat has expired, and three times its lifetime has passed since the last one.
	WorkerDead    WorkerStatus = "dead"
	WorkerStopped WorkerStatus = "stopped" // it resigned its heartbeat
	WorkerSilent  WorkerStatus = "silent"  // registered, without a heartbeat
	WorkerUnknown WorkerStatus = "unknown" // registered, and its heartbeat cannot be read
)

// WorkerStatuses returns all statuses of a worker.
func WorkerStatuses() []WorkerStatus {
	return []WorkerStatus{WorkerAlive, WorkerLate, WorkerDead, WorkerStopped, WorkerSilent, WorkerUnknown}
}

// Worker is a process with its heartbeat and its registrations.
type Worker struct {
	ServerID string
	Status   WorkerStatus
	// Heartbeat is the content of the heartbeat; zero if there is none or it cannot be decoded.
	Heartbeat Heartbeat
	// HeartbeatAt is the time of the last heartbeat by the store's clock, Age the time since then. StaleIn is the time
	// until the worker is late; negative once it is.
	HeartbeatAt   time.Time
	Age, StaleIn  time.Duration
	Registrations []Registration
}

// Heartbeat is the content of a worker's heartbeat.
type Heartbeat struct {
	ServerID    string    `json:"serverId"`
	Build       string    `json:"build,omitempty"`
	Interpreter int       `json:"interpreter"`
	StartedAt   time.Time `json:"startedAt"`
	// Projects are the served projects, sorted. If they exceed the size of an entry, it has only the first ones. Serves is
	// their total number.
	Projects []string `json:"projects,omitempty"`
	Serves   int      `json:"serves"`
	// Facts are further facts of the process, for display.
	Facts map[string]string `json:"facts,omitempty"`
}

// Registration is a worker's registration with a dispatcher.
type Registration struct {
	Name inbox.Name
	RegisteredWorker
}

// Action is the kind of a report item.
type Action string

// The actions.
const (
	ActionTerminate   Action = "terminate"    // terminate a stale dispatcher
	ActionPostpone    Action = "postpone"     // leave it to the next cycle, which has room
	ActionDeleteEntry Action = "delete_entry" // delete an expired entry
	ActionAlert       Action = "alert"        // report it to operators
)

// ReportItem is one action that a cycle of the supervisor took, or would take, or an alert.
type ReportItem struct {
	Action Action
	// Kind is the reason in one word.
	Kind              string
	Name              inbox.Name
	WorkflowID, RunID string
	// Owner is the last known owner.
	Owner inbox.Owner
	// Reason is a text for operators.
	Reason string
	// Applied reports that the action was taken. Error is why it was not; it is empty if another process was faster.
	Applied bool
	Error   string
}

// Report is the result of one cycle of the supervisor.
type Report struct {
	// Items are terminations, postponed items, deletions and alerts, in this order.
	Items []ReportItem
	// Dispatchers counts the open dispatchers. Healthy, Stale and Unknown count them by class.
	Dispatchers, Healthy, Stale, Unknown int
	Duration                             time.Duration
	DryRun                               bool
}
