package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// PollCycle is the longest time between two polls of a live poller: a long poll of Temporal takes a minute.
const PollCycle = 70 * time.Second

// Row is the part of an open run's row that the decision requires.
type Row struct {
	ID, Project               string
	Status                    run.Status
	QueuedReason, WaitingKind string
	// StatusAt is when the status began. MovedAt is when one of the steps last began or ended; zero where there is none.
	StatusAt, MovedAt time.Time
	// CancelRequested reports that cancellation of the run was requested.
	CancelRequested bool
	// WaitUntil is the earliest time at which a step that the run waits for is due; zero where none is.
	WaitUntil time.Time
	// Sequence is the run's sequence number.
	Sequence int64
	// LeftIn is the Temporal in which an adoption has left the run; zero for all other runs.
	LeftIn run.ClusterID
}

// Connection is the state of this process's connection to Temporal.
type Connection struct {
	Usable bool
	// DownSince is when the connection became unusable; zero while it is usable.
	DownSince time.Time
	Address   string
	// Kind names the kind of failure in one word, LastError is its message in one line.
	Kind, LastError string
}

// Queue is the state of a project's task queue in Temporal.
type Queue struct {
	Name string
	// Workflow and Activity are the pollers for workflow tasks and for activities.
	Workflow, Activity Pollers
	// Elsewhere describes a live worker that serves the project but is not compatible ([Worker]); empty where there is
	// none.
	Elsewhere string
	// Shortage describes the live worker that gets the least, of those that serve the project and are short of processor
	// time; empty where none is.
	Shortage string
}

// Pollers are the pollers for one kind of task, and the backlog of that kind.
type Pollers struct {
	// Alive is how many pollers are live, Busy how many of them are live workers that do not poll because they are busy.
	Alive, Busy int
	// BusyBy is the live worker that is busy for the longest time, and BusySince since when; empty where none is.
	BusyBy    string
	BusySince time.Time
	// StaleBy is the identity of the dead poller that polled last, and StaleAt when; empty where Temporal lists none.
	StaleBy string
	StaleAt time.Time
	// Backlog is the approximate number of tasks in the queue, Age the age of the oldest.
	Backlog int64
	Age     time.Duration
}

// Failure is a workflow task that failed.
type Failure struct {
	At time.Time
	// Text is the reason in one line, Cause one of [run.Causes].
	Text, Cause string
	// Since is the time of the first consecutive failure with this cause and text.
	Since time.Time
	// Build names the worker's binary, OtherBuild another binary that failed with the same cause and text; empty where
	// there is none.
	Build, OtherBuild string
}

// Execution is Temporal's description of a run's execution.
type Execution struct {
	// Missing reports that Temporal has no such execution. Closed is the status with which it ended. Both are zero for an
	// open one.
	Missing bool
	Closed  string
	// Task is the pending workflow task; nil where there is none.
	Task *Task
	// Activities are the pending activities.
	Activities []Activity
	// Failure is why the newest failed workflow task failed, where it is known. FailedAt is when it failed: of consecutive
	// failures, the first.
	Failure  string
	FailedAt time.Time
	// LacksPayload reports that the history refers to a large value that no store has. It is searched for only where
	// nothing else explains a run without progress.
	LacksPayload bool
	// Cause is one of [run.Causes] where Failure is set. FailedBy is the identity of the worker that failed; empty where
	// there was none.
	Cause, FailedBy string
}

// Task is a pending workflow task.
type Task struct {
	// Attempt counts from 1 and increases with each consecutive failure.
	Attempt int
	Started bool
	// ScheduledAt is when the task was scheduled.
	ScheduledAt time.Time
}

// Activity is a pending activity.
type Activity struct {
	Type    string
	Attempt int
	Started bool
	// ScheduledAt is when the activity was first scheduled, NextAt when the next attempt is due; zero where none is
	// planned.
	ScheduledAt, NextAt time.Time
	// Failure is why the last attempt failed.
	Failure string
	// Runners is the state of the task queue of runners, for a program that none of them has begun; nil for all others.
	Runners *ProgramQueue
	// Functions is the state of the task queue of Go functions, for a function that no program has begun; nil for all
	// others.
	Functions *ProgramQueue
}

// ProgramQueue is the task queue of the programs of a project, or of the Go functions of one program. What polls them
// does not register, so only Temporal's list shows it.
type ProgramQueue struct {
	Name    string
	Pollers []Poller
}

// alive reports whether a process has polled within [PollCycle].
func (q ProgramQueue) alive(now time.Time) bool {
	return slices.ContainsFunc(q.Pollers, func(p Poller) bool { return p.Polls(now) })
}

// Facts are the input of [Decide] for one run. A nil or empty field was not read, or is unknown.
type Facts struct {
	Now time.Time
	// After is how long a run may be without progress.
	After time.Duration
	Row   Row
	// Elsewhere is the Temporal that has the run, where that is not the one of this process; zero otherwise.
	Elsewhere  run.ClusterID
	Connection Connection
	Queue      *Queue
	// Reported is the run's entry in Temporal's list of executions with problems.
	Reported string
	// Failure is the last failed workflow task that a worker reported.
	Failure   *Failure
	Execution *Execution
	// Foreign reports that the worker Execution.FailedBy has never registered as a Signalbox worker.
	Foreign bool
	// PoisonAfter is how long tasks must fail, for a cause that lies in the run, until the run is poison.
	PoisonAfter time.Duration
}

// Poller is a poller in Temporal's list.
type Poller struct {
	Identity   string
	LastAccess time.Time
	// Isolations are how a runner isolates the kinds of programs that it executes; nil where it has not reported them.
	Isolations map[string]string
}

// Polls reports whether the poller has polled within [PollCycle].
func (p Poller) Polls(now time.Time) bool { return now.Sub(p.LastAccess) < PollCycle }

// Worker is a registered Signalbox worker.
type Worker struct {
	Identity string
	// Registered is the worker's entry in the registry, the last one of a worker that is no longer listed.
	Registered worker.Worker
	// Live reports whether the worker still sends heartbeats, Compatible whether it polls the task queues of this
	// process's runs.
	Live, Compatible bool
	// Fingerprint is the worker's fingerprint for messages: its contract, Temporal and namespace.
	Fingerprint string
	// BusySince is since when its pollers for the queue in question wait for a free slot: it executes tasks and takes no
	// others until one of them ends. It is zero where they do not wait.
	BusySince time.Time
}

// Pollers counts the pollers of a project's queue for both kinds of tasks.
func (s QueueState) Pollers(project string, workers []Worker, now time.Time) (workflow, activity Pollers) {
	count := func(state TaskTypeState, since func(worker.Busy) time.Time) Pollers {
		of := slices.Clone(workers)
		for i := range of {
			of[i].BusySince = since(of[i].Registered.BusyWith(project))
		}
		p := CountPollers(state.Pollers, of, now)
		p.Backlog, p.Age = state.Backlog, state.Age
		return p
	}
	return count(s.Workflow, func(b worker.Busy) time.Time { return b.WorkflowTasks }),
		count(s.Activity, func(b worker.Busy) time.Time { return b.Activities })
}

// CountPollers separates live pollers from dead ones that are still listed: Temporal removes one only five minutes
// after its last poll. The heartbeats of a Signalbox worker end sooner: a worker without heartbeats and polls for
// [worker.AliveFor] no longer polls. A live one may not have polled for long, or be listed no more, while its slots are
// in use.
func CountPollers(listed []Poller, workers []Worker, now time.Time) (p Pollers) {
	busy := func(w Worker) bool { return w.Live && w.Compatible && !w.BusySince.IsZero() }
	for _, w := range workers {
		if !busy(w) {
			continue
		}
		p.Alive++
		p.Busy++
		if p.BusyBy == "" || w.BusySince.Before(p.BusySince) {
			p.BusyBy, p.BusySince = w.Identity, w.BusySince
		}
	}
	for _, l := range listed {
		at := slices.IndexFunc(workers, func(w Worker) bool { return w.Identity == l.Identity })
		if at >= 0 && busy(workers[at]) {
			continue // counted
		}
		cycle := PollCycle
		if at >= 0 && !workers[at].Live {
			cycle = worker.AliveFor // a poll shows that it lives as well as a heartbeat does: one of a busy machine may be late
		}
		if now.Sub(l.LastAccess) <= cycle {
			p.Alive++
			continue
		}
		if p.StaleBy == "" || l.LastAccess.After(p.StaleAt) {
			p.StaleBy, p.StaleAt = l.Identity, l.LastAccess
		}
	}
	return p
}

// Shortage describes the live and compatible worker that gets the least processor time, of those that are short of it;
// empty where none is.
func Shortage(workers []Worker) (text string) {
	least := math.Inf(1)
	for _, w := range workers {
		s := w.Registered.Processor
		if !w.Live || !w.Compatible || !s.Short() {
			continue
		}
		if text == "" {
			text = shortageOf(w.Identity, s)
		}
		if s.Used != nil && *s.Used < least {
			least, text = *s.Used, shortageOf(w.Identity, s)
		}
	}
	return text
}

func shortageOf(identity string, s processor.State) string {
	return "worker " + identity + " " + s.Gets()
}

// Elsewhere describes the first live worker that is not compatible; empty where there is none.
func Elsewhere(workers []Worker) string {
	for _, w := range workers {
		if w.Live && !w.Compatible {
			return "worker " + w.Identity + " uses " + w.Fingerprint
		}
	}
	return ""
}
