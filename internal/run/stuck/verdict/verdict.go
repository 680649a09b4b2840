package verdict

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
)

// Verdict is why a run is stuck.
type Verdict struct {
	// Code is one of [problem.Codes].
	Code string
	// Cause is one of [problem.Causes] for TASK_FAILING and POISON, empty for the others.
	Cause string
	// Since is since when it makes no progress.
	Since time.Time
	// Detail is what was seen and Advice what to do, in a line each.
	Detail, Advice string
}

// Action is what to do about a run.
type Action int

// The actions.
const (
	Clear Action = iota // it is not stuck
	Keep                // nothing is known now: what was said before stays
	Ask                 // ask Temporal for its execution, and judge again
	Give                // it is stuck
)

// Decision is an action, with the verdict to give.
type Decision struct {
	Action  Action
	Verdict Verdict
}

// Due tells whether progress is overdue, and since when there is none. A run that waits for what has not come, or that
// somebody or a quota holds, is never overdue, however long it takes; what it has to take note of meanwhile is another matter: see [Of].
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

// Of is the judgement.
func Of(f Facts) Decision {
	since, due := Due(f.Row, f.Now, f.After)
	if !due {
		return awake(f)
	}
	j := judge{f, since}
	switch {
	case !f.Connection.Usable:
		return j.disconnected()
	case f.Row.QueuedReason == run.QueuedEngine:
		return Decision{} // it is handed over in its turn
	case f.Row.QueuedReason == run.QueuedStarting:
		return j.notStarted()
	case f.Queue == nil:
		return Decision{Action: Keep}
	case f.Queue.Workflow.Alive == 0:
		return j.nobody(f.Queue.Workflow)
	case f.Execution != nil:
		return j.execution(*f.Execution)
	}
	return j.cheap()
}

// awake judges a run that waits for what may take any time. It has to take note of events, cancellations and other signals all the
// same: of that Temporal alone knows, which is asked where something tells of trouble.
func awake(f Facts) Decision {
	switch {
	case f.Row.Status != run.Waiting, f.Failure == nil && f.Reported == "" && !f.Row.CancelRequested:
		return Decision{}
	case !f.Connection.Usable, f.Queue == nil:
		return Decision{Action: Keep}
	case f.Execution == nil:
		return Decision{Action: Ask}
	case f.Execution.Task == nil:
		return Decision{}
	}
	j := judge{f, f.Execution.Task.ScheduledAt}
	fails := f.Execution.Task.Attempt > 1
	if at := f.Execution.FailedAt; fails && !at.IsZero() && at.Before(j.since) {
		j.since = at // each attempt is scheduled anew
	}
	switch {
	case f.Now.Sub(j.since) <= f.After:
		return Decision{}
	case f.Queue.Workflow.Alive == 0:
		return j.nobody(f.Queue.Workflow)
	case fails:
		return j.failing(j.blame())
	case f.Execution.Task.Started:
		return Decision{}
	}
	return j.say(problem.Backlog)
}

// judge is one judgement.
type judge struct {
	Facts

	since time.Time
}

// disconnected waits as long as for anything else: a run may be well while Temporal is away for a moment.
func (j judge) disconnected() Decision {
	if j.Now.Sub(j.Connection.DownSince) <= j.After {
		return Decision{Action: Keep}
	}
	return j.say(problem.EngineDisconnected)
}

func (j judge) notStarted() Decision { return j.say(problem.NotStarted) }

// nobody tells that there is nobody to do the work.
func (j judge) nobody(p Pollers) Decision {
	if p.StaleBy != "" && j.Queue.Elsewhere == "" {
		return j.say(problem.PollerStale)
	}
	return j.say(problem.NoPoller)
}

// cheap is what can be said without asking for the execution. A failure that a worker told of may be over for a run that has
// begun: its next try may have had nothing to record.
func (j judge) cheap() Decision {
	switch {
	case j.Failure != nil && j.Row.Status == run.Queued && !j.Failure.At.Before(j.since), j.Reported != "":
		b := j.blame()
		if b.cause == "" || problem.InRun(b.cause, b.twoBuilds) && j.Now.Sub(j.since) >= j.PoisonAfter {
			return Decision{Action: Ask} // only the execution shows the cause, or that the run is poison
		}
		return j.failing(b)
	case j.Row.Status == run.Queued && j.Queue.Workflow.Backlog > 0 && j.Queue.Workflow.Age > j.After:
		return j.say(problem.Backlog)
	}
	return Decision{Action: Ask}
}

// execution judges by what Temporal said when it was asked.
func (j judge) execution(x Execution) Decision {
	switch {
	case x.Missing:
		return j.say(problem.ExecutionMissing)
	case x.Closed != "":
		return j.say(problem.ExecutionClosed)
	case x.Task != nil && x.Task.Attempt > 1:
		return j.failing(j.blame())
	case x.Task != nil && x.Task.Started:
		return Decision{} // a worker is at it
	case x.Task != nil:
		if j.Now.Sub(x.Task.ScheduledAt) > j.After {
			return j.say(problem.Backlog)
		}
		return Decision{}
	case len(x.Activities) > 0:
		return j.activities(x.Activities)
	}
	return j.say(problem.Unknown)
}

// activities judges a run by the activities that it is waiting for; one that goes on in its first attempt is as it should be.
func (j judge) activities(list []Activity) Decision {
	for _, a := range list {
		if a.Attempt > 1 && a.Failure != "" {
			return j.retrying(a)
		}
	}
	for _, a := range list {
		if a.Started || j.Now.Sub(a.ScheduledAt) <= j.After {
			continue
		}
		if j.Queue.Activity.Alive == 0 {
			return j.nobody(j.Queue.Activity)
		}
		return j.say(problem.Backlog)
	}
	return Decision{}
}
