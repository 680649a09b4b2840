// Package system reports the status of the platform, and executes the actions on the platform as a whole: let it try to
// connect to Temporal immediately, compare the runs with Temporal immediately, start runs in another Temporal from now
// on, and switch the maintenance mode.
//
//	service := system.NewService(connection, queue, reconciler, workers, auditLog, system.Options{…})
//	status := service.Status(ctx)              // never fails: a part that cannot be read has an error in its place
//	connection := service.ResetBreaker(ctx)    // audited
//	report, err := service.Reconcile(ctx, dry) // audited, except dry runs
//
// A process reports its own connection and workers, and the state that all processes share: the queue and the live
// workers. The package holds no state and runs no loop; it queries the interfaces declared here.
package system

import (
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

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
	run.Report

	// At is when it ended; zero if this process made none, because another one does it.
	At time.Time
	// Err is why the comparison failed as a whole, or had to leave runs unchanged.
	Err error
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
	// Maintenance is the maintenance mode as the process last read it; nil if it has not read it.
	Maintenance    *maintenance.State
	Connection     conntype.Status
	QueueMode      QueueMode
	Reconciliation Reconciliation
	Workers        []LiveWorker
	// WorkersError is why Workers is unknown.
	WorkersError string
	// Runners are the task queues for programs of the projects that permit any, by project. MoreRunners reports that there
	// are more, which were not read; RunnersError is why none or not all were found.
	Runners      []RunnerQueue
	MoreRunners  bool
	RunnersError string
	// Dependencies are the dependencies of the process.
	Dependencies []health.DependencyState
	Store        StoreFacts
	// Processor is what the process gets of its machine's processors.
	Processor processor.State
}

// StoreFacts describe the database. A fact that could not be read has its zero value.
type StoreFacts struct {
	Driver string
	// Location is the file, or host and database, without a password. Version is that of the database program.
	Location, Version string
	// Schema is the version of the schema, Required the one that this process requires.
	Schema, Required int64
	// Bytes is the size of the database, Latency the time of a round trip.
	Bytes   int64
	Latency time.Duration
	// ClockSkew is how far the database's clock is ahead of that of this process; negative where it is behind.
	ClockSkew time.Duration
	Pools     []Pool
	// Err is why facts are unknown.
	Err error
	// Error is Err in the form for callers.
	Error string
}

// Pool is a pool of connections to the database.
type Pool struct {
	Name string
	// Limit is the maximum number of connections; 0 means no limit. Waits counts the calls that have waited for one.
	InUse, Limit int
	Waits        int64
}

// RunnerQueue is the task queue for the programs of a project.
type RunnerQueue struct {
	Project, Name string
	// Kinds are the kinds of programs that the project permits.
	Kinds []string
	// Runners are the processes that poll it, the last poll first.
	Runners []Runner
	// Error is why Runners is unknown.
	Error string
}

// Runner is a process that executes programs, as Temporal knows it: runners do not register.
type Runner struct {
	ServerID string
	PolledAt time.Time
	// Polls reports whether it has polled within diagnose.PollCycle. One whose slots are all in use does not poll.
	Polls bool
	// Isolations are how it isolates the kinds of programs that it executes, by kind, or by language for scripts: none,
	// bubblewrap, container or webassembly. The kinds that it refuses are absent; nil: it has not reported them.
	Isolations map[string]string
}

// TaskQueue is the task queue of a project in Temporal.
type TaskQueue struct {
	Project, Name string
	// Workflow and Activity are the parts for workflow tasks and for activities.
	Workflow, Activity QueueLine
	// Error is why both are unknown.
	Error string
}

// QueueLine is the part of a task queue for one kind of task.
type QueueLine struct {
	// Pollers are the live pollers, Busy those of them that do not poll because all their slots are in use.
	Pollers, Busy int
	// PolledAt is the last poll; zero if Temporal knows of none.
	PolledAt time.Time
	// Backlog is the approximate number of tasks that wait; nil if Temporal does not report it. Age is that of the oldest.
	Backlog *int64
	Age     time.Duration
}
