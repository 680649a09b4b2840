package diagnose

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// clockSkew is how far a worker's clock may be behind that of Temporal's servers, which date the events of a history.
const clockSkew = time.Minute

// failureCause is why workflow tasks of a run fail. An unknown cause is empty.
type failureCause struct {
	cause, text string
	// since is the time of the first consecutive failure with this cause; zero where it is unknown.
	since time.Time
	// twoBuilds reports that two builds failed with the same cause and text.
	twoBuilds bool
}

// failureCause returns the cause, with the shortage of a worker that explains a task without an answer in time.
func (f diagnosis) failureCause() failureCause {
	b := f.foundCause()
	if f.Queue == nil || f.Queue.Shortage == "" || b.cause != run.Deadlock && b.cause != run.NoAnswer {
		return b
	}
	if b.cause == run.Deadlock {
		b.cause = run.ProcessorShortage
	}
	b.text = f.Queue.Shortage + ": " + b.text
	return b
}

// foundCause chooses among three sources. A failure that a Signalbox worker reported is that of the newest attempt. The
// history has the first consecutive failure. Temporal's list of problems has one word.
func (f diagnosis) foundCause() failureCause {
	x, own := f.Execution, f.Failure
	switch {
	case own != nil && (x == nil || x.Failure == "" || !own.At.Before(x.FailedAt.Add(-clockSkew))) &&
		(x != nil || !own.At.Before(f.since)):
		b := failureCause{cause: own.Cause, text: own.Text, twoBuilds: own.OtherBuild != ""}
		if x != nil && !x.FailedAt.IsZero() {
			b.since = x.FailedAt
			if own.Since.After(b.since) {
				b.since = own.Since
			}
		}
		return b
	case x != nil && x.Failure != "":
		cause := x.Cause
		if f.Foreign && cause != run.NoAnswer {
			cause = run.ForeignWorker
		}
		return failureCause{cause: cause, text: x.Failure, since: x.FailedAt}
	}
	return failureCause{cause: reportedCause(f.Reported), text: f.Reported}
}

// reportedCause translates an entry of Temporal's list of problems, which has the names of Temporal's causes in camel
// case.
func reportedCause(text string) string {
	switch {
	case strings.Contains(text, "NonDeterministic"):
		return run.NonDeterminism
	case strings.Contains(text, "PayloadsTooLarge"), strings.Contains(text, "GrpcMessageTooLarge"),
		strings.Contains(text, "RequestTooLarge"):
		return run.PayloadTooLarge
	}
	return ""
}

// poison reports whether the run is poison: its task has failed for at least PoisonAfter for a cause that lies in the
// run. Temporal must have confirmed that the task is failing.
func (f diagnosis) poison(b failureCause) bool {
	return f.Execution != nil && run.InRun(b.cause, b.twoBuilds) && !b.since.IsZero() && f.PoisonAfter > 0 &&
		f.Now.Sub(b.since) >= f.PoisonAfter
}

// failing returns the verdict of a run with failing workflow tasks.
func (f diagnosis) failing(b failureCause) Decision {
	v := Verdict{
		Code: run.TaskFailing, Cause: cmp.Or(b.cause, run.Other), Since: f.since,
		Detail: "workers fail at its workflow task: " + cmp.Or(short(b.text), "Temporal reports no reason"),
		Advice: f.advice(b.cause),
	}
	if f.poison(b) {
		v.Code = run.Poison
		v.Detail = fmt.Sprintf("workers have failed at its workflow task since %s: %s", stamp(b.since), short(b.text))
		v.Advice = fmt.Sprintf("end it with `signalbox run terminate %s`, correct its workflow or input, and replay it; "+
			"`signalbox project set %s --end-poison` ends such runs, within bounds", f.Row.ID, f.Row.Project)
	}
	return Decision{Action: Report, Verdict: v}
}

// lacksPayload returns the verdict of a run whose rows cannot follow Temporal, because one of its large values is lost.
// Its workflow task fails as soon as it has one.
func (f diagnosis) lacksPayload() Decision {
	return Decision{Action: Report, Verdict: Verdict{
		Code: run.TaskFailing, Cause: run.PayloadMissing, Since: f.since,
		Detail: "no store has one of its large values: what it has done cannot be shown, and it stops at its next step",
		Advice: f.advice(run.PayloadMissing),
	}}
}

// advice returns what an operator can do about a cause.
func (f diagnosis) advice(cause string) string {
	const continues = "; the run then continues by itself. `signalbox worker list` shows them"
	id, queue := f.Row.ID, f.Queue.Name
	switch cause {
	case run.PayloadTooLarge:
		return fmt.Sprintf("a value of the run exceeds a limit of Temporal: end it with `signalbox run terminate %s`, make "+
			"the value smaller in "+
			"the workflow or its input, and replay it; waiting does not help", id)
	case run.Deadlock:
		return fmt.Sprintf("an expression or a value of the run takes a worker more than a second without a pause: end it "+
			"with "+
			"`signalbox run terminate %s`, simplify the workflow, and replay it; if many runs show this, the workers lack "+
			"processor time", id)
	case run.ProcessorShortage:
		return fmt.Sprintf("give the workers that poll %s more processor time: raise their limit, or take other work off "+
			"their machines; `signalbox system status` "+
			"shows what each gets, and the run then continues by itself", queue)
	case run.Panic:
		return fmt.Sprintf("the worker's code has a defect that this run triggers: report it with the detail, and deploy a "+
			"version that "+
			"corrects it to the workers that poll %s"+continues, queue)
	case run.UnknownType:
		return fmt.Sprintf("a Signalbox worker that polls %s does not register the type of runs: replace it with the "+
			"current version; "+
			"`signalbox worker list` shows those that run", queue)
	case run.NonDeterminism:
		return fmt.Sprintf("the version of the workers that poll %s differs from the one that began the run: deploy a "+
			"version that supports its "+
			"interpreter, or report the defect with the detail"+continues, queue)
	case run.NewerInterpreter:
		return fmt.Sprintf("upgrade the workers that poll %s to the version of the newest server, API servers last"+continues,
			queue)
	case run.MissingKey:
		return fmt.Sprintf("add the key that the detail names to encryption.keys of all workers that poll %s and restart "+
			"them"+continues, queue)
	case run.ForeignWorker:
		return fmt.Sprintf("stop the worker of another program that polls task queue %s, or give it another queue; the run "+
			"then continues by itself "+
			"on a Signalbox worker. `signalbox worker list` shows the Signalbox workers", queue)
	case run.DocumentUnavailable:
		return fmt.Sprintf("make the store available to the workers that poll %s: `signalbox system status` and /readyz "+
			"show its state; the "+
			"run then continues by itself", queue)
	case run.PayloadMissing:
		return fmt.Sprintf("what stores large values, the database or payloads.store, was restored from a backup that is "+
			"older than this value: restore a newer one, "+
			"or end the run with `signalbox run terminate %s` and start it again where its calls may be repeated; waiting "+
			"does not help", id)
	case run.NoAnswer:
		return fmt.Sprintf("see the logs of the workers that poll %s: they were killed, hang, or lack processor time; "+
			"Temporal retries the task. "+
			"`signalbox worker list` shows them", queue)
	}
	return fmt.Sprintf("the workers that poll %s must be of a version that can run it: see their logs and `signalbox "+
		"worker list`; "+
		"the run continues by itself once one can", queue)
}
