package verdict

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run/problem"
)

// clockSkew is by how much a worker's clock may be behind that of Temporal's servers, which date the events of a history.
const clockSkew = time.Minute

// blame is why workflow tasks of a run fail, as far as it is known: an unknown cause is empty.
type blame struct {
	cause, text string
	// since is when the first failure in a row had this cause; zero where that is not known.
	since time.Time
	// twoBuilds says that two builds failed with the same cause and text.
	twoBuilds bool
}

// blame chooses among three sources. A failure that one of our workers reported is the newest attempt. The history has the first failure
// in a row. Temporal's list of problems has a word.
func (j judge) blame() blame {
	x, own := j.Execution, j.Failure
	switch {
	case own != nil && (x == nil || x.Failure == "" || !own.At.Before(x.FailedAt.Add(-clockSkew))) && (x != nil || !own.At.Before(j.since)):
		b := blame{cause: own.Cause, text: own.Text, twoBuilds: own.OtherBuild != ""}
		if x != nil && !x.FailedAt.IsZero() {
			b.since = x.FailedAt
			if own.Since.After(b.since) {
				b.since = own.Since
			}
		}
		return b
	case x != nil && x.Failure != "":
		cause := x.Cause
		if j.Foreign && cause != problem.NoAnswer {
			cause = problem.ForeignWorker
		}
		return blame{cause: cause, text: x.Failure, since: x.FailedAt}
	}
	return blame{cause: reportedCause(j.Reported), text: j.Reported}
}

// reportedCause translates the words of Temporal's list of problems, which are the names of its causes in camel case.
func reportedCause(text string) string {
	switch {
	case strings.Contains(text, "NonDeterministic"):
		return problem.NonDeterminism
	case strings.Contains(text, "PayloadsTooLarge"), strings.Contains(text, "GrpcMessageTooLarge"), strings.Contains(text, "RequestTooLarge"):
		return problem.PayloadTooLarge
	}
	return ""
}

// poison reports whether the run is poison: its task fails, and has failed for long enough, for a cause that lies in the run. Temporal
// must have confirmed that the task is failing.
func (j judge) poison(b blame) bool {
	return j.Execution != nil && problem.InRun(b.cause, b.twoBuilds) && !b.since.IsZero() && j.PoisonAfter > 0 &&
		j.Now.Sub(b.since) >= j.PoisonAfter
}

// failing gives the verdict of a run whose workflow tasks fail.
func (j judge) failing(b blame) Decision {
	v := Verdict{
		Code: problem.TaskFailing, Cause: cmp.Or(b.cause, problem.Other), Since: j.since,
		Detail: "workers fail at its workflow task: " + cmp.Or(short(b.text), "Temporal does not say why"),
		Advice: j.advice(b.cause),
	}
	if j.poison(b) {
		v.Code = problem.Poison
		v.Detail = fmt.Sprintf("workers have failed at its workflow task since %s: %s", stamp(b.since), short(b.text))
		v.Advice = fmt.Sprintf("end it with `signalbox run terminate %s`, correct its workflow or input, and replay it; "+
			"`signalbox project set %s --end-poison` ends such runs, within bounds", j.Row.ID, j.Row.Project)
	}
	return Decision{Action: Give, Verdict: v}
}

// advice is what to do about a cause.
func (j judge) advice(cause string) string {
	const goesOn = "; the run goes on by itself then. `signalbox worker list` shows them"
	id, queue := j.Row.ID, j.Queue.Name
	switch cause {
	case problem.PayloadTooLarge:
		return fmt.Sprintf("a value of the run exceeds a limit of Temporal: end it with `signalbox run terminate %s`, make the value smaller in "+
			"the workflow or its input, and replay it; waiting does not help", id)
	case problem.Deadlock:
		return fmt.Sprintf("an expression or a value of the run takes a worker more than a second without a pause: end it with "+
			"`signalbox run terminate %s`, simplify the workflow, and replay it; if many runs show this, the workers lack processor time", id)
	case problem.Panic:
		return fmt.Sprintf("the worker's code has a defect that this run meets: report it with the detail, and deploy a version that "+
			"corrects it to the workers that poll %s"+goesOn, queue)
	case problem.UnknownType:
		return fmt.Sprintf("a Signalbox worker that polls %s does not register the type of runs: replace it with the current version; "+
			"`signalbox worker list` shows those that run", queue)
	case problem.NonDeterminism:
		return fmt.Sprintf("the version of the workers that poll %s differs from the one that began the run: deploy a version that supports its "+
			"interpreter, or report the defect with the detail"+goesOn, queue)
	case problem.NewerInterpreter:
		return fmt.Sprintf("upgrade the workers that poll %s to the version of the newest server, API servers last"+goesOn, queue)
	case problem.MissingKey:
		return fmt.Sprintf("add the key that the detail names to encryption.keys of all workers that poll %s and restart them"+goesOn, queue)
	case problem.ForeignWorker:
		return fmt.Sprintf("stop the worker of another program that polls task queue %s, or give it another queue; the run goes on by itself "+
			"with a Signalbox worker. `signalbox worker list` shows which ones are ours", queue)
	case problem.DocumentUnavailable:
		return fmt.Sprintf("bring the store back for the workers that poll %s: `signalbox system status` and /readyz show its state; the run "+
			"goes on by itself then", queue)
	case problem.NoAnswer:
		return fmt.Sprintf("see the logs of the workers that poll %s: they were killed, hang, or lack processor time; the task is tried again by "+
			"itself. `signalbox worker list` shows them", queue)
	}
	return fmt.Sprintf("the workers that poll %s must be of a version that can run it: see their logs and `signalbox worker list`; "+
		"it goes on by itself once one can", queue)
}
