// Package system reports the status of the platform, and executes the two actions on the platform as a whole: let it try to connect to
// Temporal immediately, and compare the runs with Temporal immediately.
//
//	service := system.NewService(connection, queue, reconciler, workers, auditLog, system.Options{…})
//	status := service.Status(ctx)              // never fails: a part that cannot be read has an error in its place
//	connection := service.ResetBreaker(ctx)    // audited
//	report, err := service.Reconcile(ctx, dry) // audited, except dry runs
//
// A process reports its own connection and workers, and the state that all processes share: the queue and the live workers. The
// package holds no state and runs no loop; it queries the interfaces declared here.
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

// Connection is a snapshot of this process's connection to Temporal. Zero times mean unknown or never.
type Connection struct {
	// State is one of the states; Kind is the cause while it is Down or Degraded, and is empty otherwise.
	State, Kind string
	// Since is the last change of State or Kind.
	Since time.Time
	// Address and Namespace are those of the current client; NamespaceID is Temporal's ID, empty before the first connection.
	Address, Namespace, NamespaceID string
	// LastError is the last failure; it remains after recovery.
	LastError   string
	LastErrorAt time.Time
	// Generation is the number of the current client with its workers; 0 before the first.
	Generation int
	// Latency is the duration of the last successful check.
	Latency time.Duration
	// Attempts counts attempts to connect since the start.
	Attempts int64
	// NextAttempt is when the next attempt is due.
	NextAttempt time.Time
	Breaker     Breaker
	Statistics  Statistics
	// WorkerSets are the process's own workers, by name.
	WorkerSets []WorkerSet
	// Draining is the number of replaced generations that are still finishing their work.
	Draining int
}

// Usable reports whether runs can be started through the connection.
func (c Connection) Usable() bool { return c.State == Connected || c.State == Degraded }

// Breaker is the state of the circuit breaker.
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
	// Connections counts connections made, Outages connections lost.
	Connections, Outages      int64
	LastOutage, LongestOutage time.Duration
	ConnectedSince            time.Time
}

// WorkerSet is the workers of this process for one project.
type WorkerSet struct {
	// Name is the name of the project.
	Name       string
	TaskQueues []string
	// Running reports that the worker runs, Polling that its task queues are being polled.
	Running, Polling bool
	// Generation is the generation of its client, Since its start, LastPoll when a poll was last sent or answered.
	Generation      int
	Since, LastPoll time.Time
	// Failures counts failed starts in a row; Error is the last of them, or why the worker ended or does not poll.
	Failures int
	Error    string
}

// QueueMode describes what happens to new runs while Temporal is unavailable.
type QueueMode struct {
	Enabled bool
	// Runs are the slots that are taken now, by runs of all projects; MaxRuns is the number of slots.
	Runs    int64
	MaxRuns int
	TTL     time.Duration
	// Error is why Runs is unknown.
	Error string
}

// Reconciliation is the last comparison of the runs with Temporal that this process made.
type Reconciliation struct {
	// At is the start of the comparison; zero if this process made none, because another one does it.
	At time.Time
	// Checked counts runs that were compared with Temporal, Corrections the differences, Failed the runs that could not be
	// compared.
	Checked, Corrections, Failed int
	// Error is why the comparison failed as a whole, or had to leave runs unchanged.
	Error string
}

// LiveWorker is a process with the worker role and a recent heartbeat.
type LiveWorker struct {
	worker.Worker

	// TakesRuns reports whether it accepts the runs that this process starts.
	TakesRuns bool
}

// Status is the status at one moment.
type Status struct {
	// At is that moment, by the clock of the process.
	At                time.Time
	Version, ServerID string
	Roles             []string
	StartedAt         time.Time
	Connection        Connection
	QueueMode         QueueMode
	Reconciliation    Reconciliation
	Workers           []LiveWorker
	// WorkersError is why Workers is unknown.
	WorkersError string
	// Dependencies are the dependencies of the process.
	Dependencies []Dependency
}

// Dependency is a dependency of the process.
type Dependency struct {
	// Name and State are terms of the API.
	Name, State string
	Since       time.Time
	// Error is empty while the state is up.
	Error string
}
