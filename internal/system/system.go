// Package system is what the platform tells about itself, and the two things that an operator does to it as a whole: let it
// try to connect to Temporal at once, and compare the runs with Temporal at once.
//
//	service := system.NewService(link, queue, reconciler, workers, auditLog, system.Options{…})
//	status := service.Status(ctx)              // never fails: what cannot be asked says so in its place
//	connection := service.ResetBreaker(ctx)    // audited
//	report, err := service.Reconcile(ctx, dry) // audited, unless it only looked
//
// A process tells of its own connection and workers, and of what all processes share: the queue and the live workers. The
// package holds no state and runs no loop; it asks whoever knows, through the interfaces here.
package system

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/worker"
)

// States of the connection, as package conn names them.
const (
	Connecting = "connecting"
	Connected  = "connected"
	Degraded   = "degraded"
	Down       = "down"
	Closed     = "closed"
)

// Kinds of a connection that is degraded, as package conn names them.
const (
	Slow       = "slow"
	Limited    = "limited"
	NotPolling = "not_polling"
)

// States of the circuit breaker.
const (
	BreakerClosed   = "closed"
	BreakerHalfOpen = "half_open"
	BreakerOpen     = "open"
)

// Connection is a snapshot of this process's connection to Temporal. Zero times mean that there is none to tell.
type Connection struct {
	// State is one of the states; Kind says what is wrong while it is Down or Degraded, and is empty otherwise.
	State, Kind string
	// Since is when State or Kind last changed.
	Since time.Time
	// Address and Namespace are those of the current client, NamespaceID is Temporal's own, empty before the first
	// connection.
	Address, Namespace, NamespaceID string
	// LastError is the last failure; it is kept after recovery.
	LastError   string
	LastErrorAt time.Time
	// Generation is the number of the current client with its workers; 0 before the first.
	Generation int
	// Latency is what the last successful check took.
	Latency time.Duration
	// Attempts counts attempts to connect since the start.
	Attempts int64
	// NextAttempt is when the next one is due.
	NextAttempt time.Time
	Breaker     Breaker
	Statistics  Statistics
	// WorkerSets are the process's own workers, by name.
	WorkerSets []WorkerSet
	// Draining is how many replaced generations still finish what they began.
	Draining int
}

// Usable tells whether runs can be started through the connection.
func (c Connection) Usable() bool { return c.State == Connected || c.State == Degraded }

// Breaker is what is known of the circuit breaker.
type Breaker struct {
	// State is one of the breaker's states.
	State string
	// Failures counts failed attempts in a row.
	Failures  int
	OpenedAt  time.Time
	NextProbe time.Time
}

// Statistics count since the start of the process.
type Statistics struct {
	Uptime, Downtime time.Duration
	// Connections made, and Outages: connections lost.
	Connections, Outages      int64
	LastOutage, LongestOutage time.Duration
	ConnectedSince            time.Time
}

// WorkerSet is the workers of this process for one project.
type WorkerSet struct {
	// Name is the project's.
	Name       string
	TaskQueues []string
	// Running tells that the worker lives, Polling that its task queues are really polled.
	Running, Polling bool
	// Generation is the one it belongs to, Since when it was started, LastPoll when a poll was last sent or answered.
	Generation      int
	Since, LastPoll time.Time
	// Failures counts failed starts in a row; Error is the last of them, or why it died or does not poll.
	Failures int
	Error    string
}

// QueueMode is what happens to new runs while Temporal is away.
type QueueMode struct {
	Enabled bool
	// Runs are the places that are taken now, by runs of all projects; MaxRuns are all there are.
	Runs    int64
	MaxRuns int
	TTL     time.Duration
	// Error is why Runs is not known.
	Error string
}

// Reconciliation is the last comparison of the runs with Temporal that this process made.
type Reconciliation struct {
	// At is when it began; zero when this process made none, because another one does it.
	At time.Time
	// Checked counts runs that Temporal was asked about, Corrections the differences, Failed the runs that could not be
	// compared.
	Checked, Corrections, Failed int
	// Error is why it failed as a whole, or had to leave runs alone.
	Error string
}

// LiveWorker is a process with the worker role that has said so lately.
type LiveWorker struct {
	worker.Worker

	// TakesRuns tells that it takes the runs that this process starts.
	TakesRuns bool
}

// Status is everything at one moment.
type Status struct {
	// At is the moment, by the clock of the process.
	At                time.Time
	Version, ServerID string
	Roles             []string
	StartedAt         time.Time
	Connection        Connection
	QueueMode         QueueMode
	Reconciliation    Reconciliation
	Workers           []LiveWorker
	// WorkersError is why Workers are not known.
	WorkersError string
	// Mismatch says which other Temporal the runs are in, or live workers are connected to, and what to do; empty while there is none.
	Mismatch string
	// Dependencies are what the process needs.
	Dependencies []Dependency
}

// Dependency is something that the process needs.
type Dependency struct {
	// Name and State are words of the API.
	Name, State string
	Since       time.Time
	// Error is empty while it is up.
	Error string
}
