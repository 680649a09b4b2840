package diagnose

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// Verdict is why a run is stuck.
type Verdict struct {
	// Code is one of [run.Codes].
	Code string
	// Cause is one of [run.Causes] for TASK_FAILING and POISON, empty for the others.
	Cause string
	// Since is the time from which the run makes no progress.
	Since time.Time
	// Detail is what was found, Advice what an operator can do, in one line each.
	Detail, Advice string
}

// Action is what to do about a run.
type Action int

// The actions.
const (
	Clear    Action = iota // the run is not stuck
	Keep                   // the facts are not available: the stored verdict stays
	Describe               // describe its execution in Temporal, and decide again
	Report                 // the run is stuck
)

// Decision is an action. Its verdict is set for [Report] alone.
type Decision struct {
	Action  Action
	Verdict Verdict
}

// Due reports whether progress is overdue, and from which time there is none. A run that waits for an event or a child,
// or that is paused or held by a quota, is never overdue. [Decide] checks separately whether such a run processes its
// workflow tasks.
func Due(r Row, now time.Time, after time.Duration) (since time.Time, due bool) {
	switch r.Status { //nolint:exhaustive // the others have ended
	case run.Queued:
		if r.QueuedReason == run.QueuedAdmission {
			return time.Time{}, false
		}
		since = r.StatusAt
	case run.Running:
		if since = r.StatusAt; r.MovedAt.After(since) {
			since = r.MovedAt
		}
	case run.Waiting:
		if r.WaitUntil.IsZero() || (r.WaitingKind != run.WaitingTimer && r.WaitingKind != run.WaitingRetry) {
			return time.Time{}, false
		}
		since = r.WaitUntil
	default:
		return time.Time{}, false
	}
	return since, now.Sub(since) > after
}

// Decide determines whether the run is stuck.
func Decide(f Facts) Decision {
	since, due := Due(f.Row, f.Now, f.After)
	if f.Elsewhere != (run.ClusterID{}) && f.Row.LeftIn != (run.ClusterID{}) && !f.Row.Status.Terminal() {
		return diagnosis{f, f.Row.StatusAt}.verdict(run.InAnotherTemporal) // also while no progress is due: it does not come
	}
	if !due {
		return decideWaiting(f)
	}
	d := diagnosis{f, since}
	if f.Elsewhere != (run.ClusterID{}) && f.Row.QueuedReason != run.QueuedEngine {
		return d.verdict(run.InAnotherTemporal)
	}
	switch {
	case !f.Connection.Usable:
		return d.disconnected()
	case f.Row.QueuedReason == run.QueuedEngine:
		return Decision{} // the queue hands it over in its turn
	case f.Row.QueuedReason == run.QueuedStarting:
		return d.verdict(run.NotStarted)
	case f.Queue == nil:
		return Decision{Action: Keep}
	case f.Queue.Workflow.Alive == 0:
		return d.noPoller(f.Queue.Workflow)
	case f.Execution != nil:
		return d.execution(*f.Execution)
	}
	return d.withoutExecution()
}

// decideWaiting decides a run with a wait of unlimited length. The run must still process events, cancellations and
// other signals. Only Temporal has their workflow tasks, so its execution is described where a failure, a report or a
// requested cancellation is present.
func decideWaiting(f Facts) Decision {
	switch {
	case f.Row.Status != run.Waiting, f.Failure == nil && f.Reported == "" && !f.Row.CancelRequested:
		return Decision{}
	case !f.Connection.Usable, f.Queue == nil:
		return Decision{Action: Keep}
	case f.Execution == nil:
		return Decision{Action: Describe}
	case f.Execution.Task == nil:
		return Decision{}
	}
	d := diagnosis{f, f.Execution.Task.ScheduledAt}
	fails := f.Execution.Task.Attempt > 1
	if at := f.Execution.FailedAt; fails && !at.IsZero() && at.Before(d.since) {
		d.since = at // Temporal schedules each attempt anew
	}
	switch {
	case f.Now.Sub(d.since) <= f.After:
		return Decision{}
	case f.Queue.Workflow.Alive == 0:
		return d.noPoller(f.Queue.Workflow)
	case fails:
		return d.failing(d.failureCause())
	case f.Execution.Task.Started:
		return Decision{}
	}
	return d.verdict(run.Backlog)
}

// diagnosis is the decision about one run.
type diagnosis struct {
	Facts

	since time.Time
}

// withoutRecords reports whether no workflow task of the run has been accepted yet: it is queued, or its first task is
// being executed or was lost.
func (r Row) withoutRecords() bool {
	return r.Status == run.Queued || r.Status == run.Running && r.MovedAt.IsZero()
}

// disconnected keeps the stored verdict until the connection has been unusable for After: a short outage does not make
// a run stuck.
func (f diagnosis) disconnected() Decision {
	if f.Now.Sub(f.Connection.DownSince) <= f.After {
		return Decision{Action: Keep}
	}
	return f.verdict(run.EngineDisconnected)
}

// noPoller returns the verdict of a run without a live poller on its task queue.
func (f diagnosis) noPoller(p Pollers) Decision {
	if p.StaleBy != "" && f.Queue.Elsewhere == "" {
		return f.verdict(run.PollerStale)
	}
	return f.verdict(run.NoPoller)
}

// withoutExecution decides without a description of the execution. A failure that a worker reported may be over for a
// run that has begun: the next attempt may have succeeded without a new record.
func (f diagnosis) withoutExecution() Decision {
	switch {
	case f.Failure != nil && f.Row.withoutRecords() && !f.Failure.At.Before(f.since), f.Reported != "":
		b := f.failureCause()
		if b.cause == "" || run.InRun(b.cause, b.twoBuilds) && f.Now.Sub(f.since) >= f.PoisonAfter {
			return Decision{Action: Describe} // only the execution shows the cause, or that the run is poison
		}
		return f.failing(b)
	case f.Row.Status == run.Queued && f.Queue.Workflow.Backlog > 0 && f.Queue.Workflow.Age > f.After:
		return f.verdict(run.Backlog)
	}
	return Decision{Action: Describe}
}

// execution decides from a description of the execution.
func (f diagnosis) execution(x Execution) Decision {
	switch {
	case x.Missing:
		return f.verdict(run.ExecutionMissing)
	case x.Closed != "":
		return f.verdict(run.ExecutionClosed)
	case x.Task != nil && x.Task.Attempt > 1:
		return f.failing(f.failureCause())
	case x.Task != nil && x.Task.Started:
		return Decision{} // a worker executes the task
	case x.Task != nil:
		if f.Now.Sub(x.Task.ScheduledAt) > f.After {
			return f.verdict(run.Backlog)
		}
		return Decision{}
	case len(x.Activities) > 0:
		return f.activities(x.Activities)
	case x.LacksPayload:
		return f.lacksPayload()
	case f.Row.Status == run.Waiting:
		return f.verdict(run.TimerLate)
	}
	return f.verdict(run.Unknown)
}

// activities decides a run that waits for activities. An activity that runs in its first attempt is not stuck.
func (f diagnosis) activities(list []Activity) Decision {
	for _, a := range list {
		if a.Attempt > 1 && a.Failure != "" {
			return f.retrying(a)
		}
	}
	for _, a := range list {
		if a.Started || f.Now.Sub(a.ScheduledAt) <= f.After {
			continue
		}
		if a.Runners != nil {
			return f.noRunner(*a.Runners)
		}
		if a.Functions != nil {
			return f.noProgram(*a.Functions)
		}
		if f.Queue.Activity.Alive == 0 {
			return f.noPoller(f.Queue.Activity)
		}
		return f.verdict(run.Backlog)
	}
	return Decision{}
}
