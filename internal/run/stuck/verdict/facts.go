package verdict

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// PollCycle is how long a poller that lives may go without asking again: a long poll of Temporal's takes a minute.
const PollCycle = 70 * time.Second

// Row is what the row of an open run says.
type Row struct {
	ID, Project               string
	Status                    run.Status
	QueuedReason, WaitingKind string
	// StatusAt is since when it has its status, MovedAt when one of its steps last began or ended; zero where there is none.
	StatusAt, MovedAt time.Time
	// CancelRequested tells that somebody has asked for its cancellation.
	CancelRequested bool
	// WaitUntil is when the step is due that it waits for and that is overdue for longest; zero where none is.
	WaitUntil time.Time
	// Sequence is the run's.
	Sequence int64
}

// Connection is what this process knows of its connection to Temporal.
type Connection struct {
	Usable bool
	// DownSince is since when it was not usable; zero while it is.
	DownSince time.Time
	Address   string
	// Kind and LastError say what is wrong, in a word and in a line.
	Kind, LastError string
}

// Queue is what Temporal says of a project's task queue.
type Queue struct {
	Name string
	// Workflow and Activity are who polls it for the one kind of task and the other.
	Workflow, Activity Pollers
	// Elsewhere names workers that live and serve the project in another place than this Temporal; empty where there are none.
	Elsewhere string
}

// Pollers are those who poll for one kind of task, and what waits for them.
type Pollers struct {
	// Alive is how many of them poll now.
	Alive int
	// StaleBy is who of the others polled last, and StaleAt when; empty where Temporal lists none.
	StaleBy string
	StaleAt time.Time
	// Backlog is about how many tasks wait, and Age how long the oldest has.
	Backlog int64
	Age     time.Duration
}

// Failure is a workflow task that failed.
type Failure struct {
	At time.Time
	// Text says why, in a line, and Cause in a word: one of [problem.Causes].
	Text, Cause string
	// Since is when the first failure in a row had this cause and text.
	Since time.Time
	// Build names the worker's binary, OtherBuild another binary that failed with the same cause and text; empty without one.
	Build, OtherBuild string
}

// Execution is what Temporal says of a run when it is asked.
type Execution struct {
	// Missing tells that Temporal does not know it, Closed how it has ended; both are zero for one that is open.
	Missing bool
	Closed  string
	// Task is the workflow task that is pending; nil where none is.
	Task *Task
	// Activities are those that are pending.
	Activities []Activity
	// Failure is why the newest workflow task failed that did, where that is known, and FailedAt when that was: the first of
	// several in a row.
	Failure  string
	FailedAt time.Time
	// Cause is one of [problem.Causes] where Failure is known, FailedBy the identity of the worker that failed, where there was one.
	Cause, FailedBy string
}

// Task is a pending workflow task.
type Task struct {
	// Attempt counts from 1, and grows with each failure in a row.
	Attempt int
	Started bool
	// ScheduledAt is when it was first to be done.
	ScheduledAt time.Time
}

// Activity is a pending activity.
type Activity struct {
	Type    string
	Attempt int
	Started bool
	// ScheduledAt is when it was first to be done, NextAt when the next attempt is due; zero where none is waited for.
	ScheduledAt, NextAt time.Time
	// Failure is why the last attempt failed.
	Failure string
}

// Facts are what is known of one run. What is nil or empty was not asked, or is not known.
type Facts struct {
	Now time.Time
	// After is how long a run may be without progress.
	After      time.Duration
	Row        Row
	Connection Connection
	Queue      *Queue
	// Reported is what Temporal's own list of executions with problems says of it.
	Reported string
	// Failure is the last failed workflow task, as the worker told that did it.
	Failure   *Failure
	Execution *Execution
	// Foreign says that the worker Execution.FailedBy has never registered as one of Signalbox.
	Foreign bool
	// PoisonAfter is how long tasks may fail for a cause that lies in the run before the run is poison.
	PoisonAfter time.Duration
}

// Poller is one that Temporal lists.
type Poller struct {
	Identity   string
	LastAccess time.Time
}

// Worker is one that has told of itself.
type Worker struct {
	Identity string
	// Live tells whether its signs of life still come, Here whether it works in this Temporal.
	Live, Here bool
	// Place names where it works, for people.
	Place string
}

// Count tells the pollers that live from those that Temporal still lists: it forgets one five minutes after its last poll. What
// a worker says of itself is known sooner: one whose signs of life have ended polls no more.
func Count(listed []Poller, workers []Worker, now time.Time) (p Pollers) {
	for _, l := range listed {
		at := slices.IndexFunc(workers, func(w Worker) bool { return w.Identity == l.Identity })
		dead := at >= 0 && !workers[at].Live
		if !dead && now.Sub(l.LastAccess) <= PollCycle {
			p.Alive++
			continue
		}
		if p.StaleBy == "" || l.LastAccess.After(p.StaleAt) {
			p.StaleBy, p.StaleAt = l.Identity, l.LastAccess
		}
	}
	return p
}

// Elsewhere names the workers that live in another place, empty where there are none.
func Elsewhere(workers []Worker) string {
	for _, w := range workers {
		if w.Live && !w.Here {
			return "worker " + w.Identity + " works at " + w.Place
		}
	}
	return ""
}
