package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// maxText is how many characters of a failure's text a verdict shows.
const maxText = 500

// verdict returns a verdict of a code, with its detail and advice.
func (f diagnosis) verdict(code string) Decision {
	v := Verdict{Code: code, Since: f.since}
	queue, project := "", f.Row.Project
	if f.Queue != nil {
		queue = f.Queue.Name
	}
	switch code {
	case run.InAnotherTemporal:
		v.Detail = fmt.Sprintf("the run is in another Temporal than the servers use: in %s", run.ClusterName(f.Elsewhere))
		v.Advice = fmt.Sprintf("point temporal.address and temporal.namespace of the servers there, and it continues, or "+
			"end it with "+
			"`signalbox run terminate %s`; `signalbox system status` shows the Temporal of the server", f.Row.ID)
	case run.EngineDisconnected:
		v.Detail = fmt.Sprintf("Temporal at %s cannot be used since %s%s", f.Connection.Address,
			stamp(f.Connection.DownSince), reason(f.Connection))
		v.Advice = "restore Temporal, or correct the temporal settings; `signalbox system status` shows the connection"
	case run.NotStarted:
		v.Detail = "Temporal has not confirmed the start; it is retried every few seconds"
		v.Advice = "`signalbox system status` shows the connection and the reconciler; the servers' logs show why starts " +
			"have no outcome"
	case run.NoPoller:
		v.Detail = fmt.Sprintf("no worker polls task queue %s", queue)
		v.Advice = fmt.Sprintf("start a worker for project %s: `signalbox server --roles worker`; `signalbox worker list` "+
			"shows those that run", project)
		if f.Queue.Elsewhere != "" {
			v.Detail += "; " + f.Queue.Elsewhere
			v.Advice = fmt.Sprintf("make temporal.address and temporal.namespace the same in all processes, so that a worker "+
				"polls %s; "+
				"`signalbox worker list` shows them", queue)
		}
	case run.PollerStale:
		p := f.Queue.Workflow
		if p.Alive > 0 {
			p = f.Queue.Activity
		}
		v.Detail = fmt.Sprintf("no worker polls task queue %s any more; %s was the last, at %s", queue, p.StaleBy,
			stamp(p.StaleAt))
		v.Advice = fmt.Sprintf("start the workers of project %s again, or see why they stopped; `signalbox worker list` "+
			"shows those that run", project)
	case run.Backlog:
		v.Detail = f.backlog()
		v.Advice = fmt.Sprintf("add workers for task queue %s, or raise worker.max_concurrent_workflow_tasks and "+
			"worker.max_concurrent_activities; "+
			"`signalbox worker list` shows those that run", queue)
		if f.backlogged().BusyBy != "" {
			v.Advice += fmt.Sprintf(", `signalbox run list --project %s --status running` the runs that they execute", project)
		}
	case run.ExecutionMissing:
		v.Detail = "Temporal has no execution of this run: it was deleted there, or its data was lost"
		v.Advice = fmt.Sprintf("the reconciler ends it unless the run may be in another Temporal: see `signalbox system "+
			"reconcile --dry-run`, "+
			"or cancel it with `signalbox run cancel %s`", f.Row.ID)
	case run.ExecutionClosed:
		v.Detail = fmt.Sprintf("the execution has ended in Temporal: %s", f.Execution.Closed)
		v.Advice = "the reconciler writes its end within a minute; `signalbox system reconcile` does it now"
	case run.TimerLate:
		v.Detail = fmt.Sprintf("its timer was due at %s, but Temporal has not fired it", stamp(f.Row.WaitUntil))
		v.Advice = "Temporal's queue of timers is behind: give Temporal processor time, and its database what it waits " +
			"for; the run continues by itself; " +
			"the runbook TimersLate has the metrics of Temporal to look at, `signalbox system status` its address"
	case run.Unknown:
		v.Detail = "the execution is open in Temporal and has no pending task or activity"
		v.Advice = fmt.Sprintf("see the history of workflow %s on task queue %s in Temporal; `signalbox run steps %s` "+
			"shows how far it has come",
			f.Row.ID, queue, f.Row.ID)
	}
	return Decision{Action: Report, Verdict: v}
}

// noRunner returns the verdict of a run with a program that no runner has begun.
func (f diagnosis) noRunner(q ProgramQueue) Decision {
	v := Verdict{Code: run.NoRunner, Since: f.since,
		Detail: fmt.Sprintf("no runner polls task queue %s, on which its program waits", q.Name),
		Advice: fmt.Sprintf("start a runner for project %s: `signalbox server --roles runner`", f.Row.Project)}
	if q.alive(f.Now) {
		v.Detail = fmt.Sprintf("task queue %s has runners, but its program waits: they execute other programs", q.Name)
		v.Advice = "add runners (`signalbox server --roles runner`), or raise runner.max_concurrent_programs"
	}
	return Decision{Action: Report, Verdict: v}
}

// noProgram returns the verdict of a run with a Go function that its program has not begun.
func (f diagnosis) noProgram(q ProgramQueue) Decision {
	v := Verdict{Code: run.NoPoller, Since: f.since,
		Detail: fmt.Sprintf("no program polls task queue %s, on which its Go function waits", q.Name),
		Advice: "start the program with the function, with the address and the namespace of this Temporal; the end of the " +
			"queue's name is the program's"}
	if q.alive(f.Now) {
		v.Code = run.Backlog
		v.Detail = fmt.Sprintf("task queue %s has programs, but its Go function waits: they execute other functions", q.Name)
		v.Advice = "start more processes of the program, or raise its MaxConcurrent"
	}
	return Decision{Action: Report, Verdict: v}
}

// forActivity reports whether the run waits for an activity, not for a workflow task.
func (f diagnosis) forActivity() bool { return f.Execution != nil && f.Execution.Task == nil }

// backlogged returns the pollers for what the run waits for.
func (f diagnosis) backlogged() Pollers {
	if f.forActivity() {
		return f.Queue.Activity
	}
	return f.Queue.Workflow
}

func (f diagnosis) backlog() string {
	p, kind := f.backlogged(), "workflow tasks"
	if f.forActivity() {
		kind = "activities"
	}
	text := fmt.Sprintf("task queue %s has pollers, but its %s wait", f.Queue.Name, kind)
	if p.BusyBy != "" {
		text = fmt.Sprintf("the %s of task queue %s wait: worker %s is busy, all its slots for them are in use or wait for "+
			"processor time since %s",
			kind, f.Queue.Name, p.BusyBy, stamp(p.BusySince))
	}
	if p.Backlog > 0 {
		text += fmt.Sprintf(": about %d, the oldest for %s", p.Backlog, p.Age.Round(time.Second))
	}
	if f.Queue.Shortage != "" {
		text += "; " + f.Queue.Shortage
	}
	return text
}

// retrying returns the verdict of a run with an activity that fails repeatedly.
func (f diagnosis) retrying(a Activity) Decision {
	detail := fmt.Sprintf("activity %s has failed %d times: %s", a.Type, a.Attempt-1, short(a.Failure))
	if !a.NextAt.IsZero() {
		detail += "; the next attempt is at " + stamp(a.NextAt)
	}
	return Decision{Action: Report, Verdict: Verdict{
		Code: run.ActivityRetrying, Since: f.since, Detail: detail,
		Advice: fmt.Sprintf("correct the cause; the workers that poll %s retry it by themselves; `signalbox run steps %s` "+
			"shows the step",
			f.Queue.Name, f.Row.ID),
	}}
}

func reason(c Connection) string {
	switch {
	case c.LastError != "":
		return ": " + short(c.LastError)
	case c.Kind != "":
		return ": " + c.Kind
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// short returns a text as one line of at most maxText characters.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return text
}
