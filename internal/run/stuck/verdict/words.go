package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
)

// mostText is how much of a failure's text a verdict shows.
const mostText = 500

// say gives a verdict with the words of its code.
func (j judge) say(code string) Decision {
	v := Verdict{Code: code, Since: j.since}
	queue, project := "", j.Row.Project
	if j.Queue != nil {
		queue = j.Queue.Name
	}
	switch code {
	case problem.EngineDisconnected:
		v.Detail = fmt.Sprintf("Temporal at %s cannot be used since %s%s", j.Connection.Address, stamp(j.Connection.DownSince), because(j.Connection))
		v.Advice = "bring Temporal back, or correct the temporal settings; `signalbox system status` shows the connection"
	case problem.NotStarted:
		v.Detail = "Temporal has not confirmed the start; it is tried again every few seconds"
		v.Advice = "`signalbox system status` shows the connection and the reconciler; the servers' logs say why starts have no outcome"
	case problem.NoPoller:
		v.Detail = fmt.Sprintf("nobody polls task queue %s", queue)
		v.Advice = fmt.Sprintf("start a worker for project %s: `signalbox server --roles worker`; `signalbox worker list` shows those that run", project)
		if j.Queue.Elsewhere != "" {
			v.Detail += "; " + j.Queue.Elsewhere
			v.Advice = fmt.Sprintf("make temporal.address and temporal.namespace the same in all processes, so that a worker polls %s; "+
				"`signalbox worker list` shows them", queue)
		}
	case problem.PollerStale:
		p := j.Queue.Workflow
		if p.Alive > 0 {
			p = j.Queue.Activity
		}
		v.Detail = fmt.Sprintf("nobody polls task queue %s any more; %s was the last, at %s", queue, p.StaleBy, stamp(p.StaleAt))
		v.Advice = fmt.Sprintf("start the workers of project %s again, or see what became of them; `signalbox worker list` shows those that run", project)
	case problem.Backlog:
		v.Detail = j.backlog()
		v.Advice = fmt.Sprintf("add workers for task queue %s, or raise worker.max_concurrent_workflow_tasks and worker.max_concurrent_activities; "+
			"`signalbox worker list` shows those that run", queue)
	case problem.ExecutionMissing:
		v.Detail = "Temporal has no execution of this run: it was deleted there, or its data was lost"
		v.Advice = fmt.Sprintf("the reconciler ends it unless the run may be in another Temporal: see `signalbox system reconcile --dry-run`, "+
			"or give it up with `signalbox run cancel %s`", j.Row.ID)
	case problem.ExecutionClosed:
		v.Detail = fmt.Sprintf("the execution has ended in Temporal: %s", j.Execution.Closed)
		v.Advice = "the reconciler writes its end within a minute; `signalbox system reconcile` does it now"
	case problem.Unknown:
		v.Detail = j.unknown()
		v.Advice = fmt.Sprintf("see the history of workflow %s on task queue %s in Temporal; `signalbox run steps %s` shows how far it has come",
			j.Row.ID, queue, j.Row.ID)
	}
	return Decision{Action: Give, Verdict: v}
}

func (j judge) backlog() string {
	p, kind := j.Queue.Workflow, "workflow tasks"
	if j.Execution != nil && j.Execution.Task == nil {
		p, kind = j.Queue.Activity, "activities"
	}
	text := fmt.Sprintf("task queue %s is polled, and its %s wait", j.Queue.Name, kind)
	if p.Backlog > 0 {
		text += fmt.Sprintf(": about %d, the oldest for %s", p.Backlog, p.Age.Round(time.Second))
	}
	return text
}

func (j judge) unknown() string {
	if j.Row.Status == run.Waiting {
		return fmt.Sprintf("it was to go on at %s, and Temporal has not woken it", stamp(j.Row.WaitUntil))
	}
	return "Temporal has the execution open and waits for nothing of it"
}

// retrying gives the verdict of a run whose activity fails again and again.
func (j judge) retrying(a Activity) Decision {
	detail := fmt.Sprintf("activity %s has failed %d times: %s", a.Type, a.Attempt-1, short(a.Failure))
	if !a.NextAt.IsZero() {
		detail += "; it is tried again at " + stamp(a.NextAt)
	}
	return Decision{Action: Give, Verdict: Verdict{
		Code: problem.ActivityRetrying, Since: j.since, Detail: detail,
		Advice: fmt.Sprintf("put right what it needs; the workers that poll %s try again by themselves; `signalbox run steps %s` shows the step",
			j.Queue.Name, j.Row.ID),
	}}
}

func because(c Connection) string {
	switch {
	case c.LastError != "":
		return ": " + short(c.LastError)
	case c.Kind != "":
		return ": " + c.Kind
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// short makes one line of a text, no longer than a verdict shows.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > mostText {
		return string(runes[:mostText]) + "…"
	}
	return text
}
