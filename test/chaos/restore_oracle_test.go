package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// restoreEvidence is what the oracle judges: what was left of the time before, and everything after.
type restoreEvidence struct {
	plan      restorePlan
	left      remains
	requests  []load.Request          // before the loss
	repeats   map[string]load.Request // of these, after the check was complete, by request ID
	after     []load.Request          // started after that
	workflows map[string]string       // names of the workflows by request ID

	runs       map[string]*signalboxv1.Run                // all runs that are shown
	executions map[string][]enums.WorkflowExecutionStatus // in Temporal, by run ID
	// of the origin: by request ID, how often with each idempotency key
	calls    map[string]map[string]int
	reopened map[string]bool   // runs that the check reports as open in Temporal although they have ended
	once     map[string]string // the events of runs of which Temporal has made no second attempt of a call
}

// findings lists everything that is not as docs/operations.md promises.
func (e *restoreEvidence) findings() []string {
	found := slices.Concat(e.hidden(), e.doubled(), e.unended())
	slices.Sort(found)
	return found
}

// known returns the runs that the restored database or the restored Temporal has, with who has them.
func (e *restoreEvidence) known() map[string]string {
	known := map[string]string{}
	for id, row := range e.left.rows {
		known[id] = fmt.Sprintf("the restored database (%s)", row.status)
	}
	for id := range e.left.executions {
		if _, both := known[id]; both {
			known[id] += " and "
		}
		known[id] += "the restored Temporal"
	}
	return known
}

// hidden lists runs that one of both has and that are not shown.
func (e *restoreEvidence) hidden() (found []string) {
	for id, by := range e.known() {
		if e.runs[id] == nil {
			found = append(found, fmt.Sprintf("run %s is in %s, and is not shown", id, by))
		}
	}
	runOf := e.runOf()
	for _, r := range e.requests {
		// A part that was not restored has all accepted runs: the row is written, and the execution started, before the
		// answer. Temporal does not have those whose start it had not confirmed.
		confirmed := e.plan.temporal == 0 && r.Queued != "starting"
		if r.Outcome == load.Accepted && runOf[r.ID] == "" && (e.plan.database == 0 || confirmed) {
			found = append(found, fmt.Sprintf("run %s of request %s was accepted after %s as %s %s, and is lost although only "+
				"one part was restored",
				r.Run, r.ID, r.Took.Round(time.Millisecond), r.Status, r.Queued))
		}
	}
	for id := range e.executions {
		if e.runs[id] == nil && !e.left.executions[id] {
			found = append(found, fmt.Sprintf("execution %s began after the restore and has no row", id))
		}
	}
	return found
}

// runOf returns the known run of each request, by request ID.
func (e *restoreEvidence) runOf() map[string]string {
	of := map[string]string{}
	for id := range e.known() {
		if request := e.left.rows[id].request; request != "" {
			of[request] = id
		} else if run := e.runs[id]; run != nil {
			of[run.GetRequestId()] = id
		}
	}
	return of
}

// doubled lists requests that have started twice: their repetition was answered with another run although theirs is
// known, or the origin was called for two runs, or twice for one without a cause.
func (e *restoreEvidence) doubled() (found []string) {
	runOf := e.runOf()
	for _, r := range e.requests {
		run, again := runOf[r.ID], e.repeats[r.ID]
		switch {
		case r.Outcome == load.Refused:
			found = append(found, fmt.Sprintf("request %s was refused before the loss: %v", r.ID, r.Err))
			continue
		case again.Outcome != load.Accepted:
			found = append(found, fmt.Sprintf("the repetition of request %s was not accepted: %v", r.ID, again.Err))
		case run != "" && again.Run != run:
			found = append(found, fmt.Sprintf("request %s has run %s, and its repetition was answered with run %s", r.ID, run,
				again.Run))
		}
		allowed := 1
		if run == "" {
			allowed = 2 // that of the run that was lost, and that of the repetition
		}
		if keys := e.calls[r.ID]; len(keys) > allowed {
			found = append(found, fmt.Sprintf("the origin was called for %d runs of request %s, whose run is %q: %v", len(keys),
				r.ID, run, keys))
		}
		for key, times := range e.calls[r.ID] {
			// A Temporal that is older than the call makes it again, and so does the next worker for one that was killed during
			// the call.
			if times > 1 && e.plan.temporal == 0 && (run == "" || e.once[run] != "") {
				found = append(found, fmt.Sprintf("the origin was called %d times for run %s of request %s with the key %s: %s",
					times, run, r.ID, key, e.once[run]))
			}
		}
	}
	for _, r := range e.after {
		if keys := e.calls[r.ID]; len(keys) > 1 {
			found = append(found, fmt.Sprintf(
				"the origin was called for %d runs of request %s, which was sent after the restore", len(keys), r.ID))
		}
	}
	for id, statuses := range e.executions {
		if len(statuses) > 1 {
			found = append(found, fmt.Sprintf("run %s has %d executions: %v", id, len(statuses), statuses))
		}
	}
	return found
}

// unended lists runs that have not the end that they should have, now that everything that runs wait for was sent.
func (e *restoreEvidence) unended() (found []string) {
	for id := range e.known() {
		run := e.runs[id]
		if run == nil {
			continue // hidden
		}
		row, kept := e.left.rows[id]
		if why := e.wrong(run, row, kept); why != "" {
			found = append(found, fmt.Sprintf("run %s of %s is %s, in Temporal %v: %s", id, e.known()[id], shown(run),
				e.executions[id], why))
		}
	}
	again := slices.Clone(e.after)
	runOf := e.runOf()
	for id, r := range e.repeats {
		if runOf[id] == "" {
			again = append(again, r)
		}
	}
	for _, r := range again {
		if r.Outcome != load.Accepted {
			found = append(found, fmt.Sprintf("request %s was not accepted after the restore: %v", r.ID, r.Err))
		} else if run := e.runs[r.Run]; run.GetStatus() != "completed" {
			found = append(found, fmt.Sprintf("run %s of request %s, started after the restore, is %s, in Temporal %v", r.Run,
				r.ID, shown(run), e.executions[r.Run]))
		}
	}
	return found
}

// wrong returns why the end of a run that was known after the restore is not the right one; "" if it is.
func (e *restoreEvidence) wrong(run *signalboxv1.Run, row rowOf, kept bool) string {
	id, status := run.GetId(), run.GetStatus()
	switch {
	case kept && slices.Contains(platform.Ended(), row.status):
		switch open := slices.Contains(e.executions[id], enums.WORKFLOW_EXECUTION_STATUS_RUNNING); {
		case status != row.status:
			return "its end is final, and has changed"
		case open && !e.reopened[id]:
			return "it is open in Temporal, and the check does not report it as reopened_in_temporal"
		}
	case !e.left.executions[id]:
		// A run whose start was not confirmed is started again.
		missing := status == "failed" && strings.HasSuffix(run.GetError().GetType(), "execution_missing")
		if !missing && (status != "completed" || row.status != "queued") {
			return "Temporal does not have it, and it has not failed with execution_missing"
		}
	case status == "completed", e.lacksValue(run):
	default:
		return "it has everything that it waits for, and has not completed"
	}
	return ""
}

// mayLackValues reports whether large values may be lost: Temporal has references to ones that were recorded after the
// backup of the database.
func (p restorePlan) mayLackValues() bool { return p.database > p.temporal && !p.apart }

// lacksValue reports whether a run is open, needs a large value that may be lost, and is shown as stuck with that
// cause.
func (e *restoreEvidence) lacksValue(run *signalboxv1.Run) bool {
	shown := run.GetStuck().GetCause() == "PAYLOAD_MISSING"
	return shown && e.plan.mayLackValues() && e.workflows[run.GetRequestId()] == values &&
		!slices.Contains(platform.Ended(), run.GetStatus())
}

// shown describes a run in a finding.
func shown(r *signalboxv1.Run) string {
	if r == nil {
		return "not shown"
	}
	text := r.GetStatus() + " " + r.GetQueuedReason()
	if r.GetError() != nil {
		text += fmt.Sprintf(" (%s: %s)", r.GetError().GetType(), r.GetError().GetDetail())
	}
	if r.GetStuck() != nil {
		text += fmt.Sprintf(" (%s %s: %s)", r.GetStuck().GetCode(), r.GetStuck().GetCause(), r.GetStuck().GetDetail())
	}
	return strings.TrimSpace(text)
}

func TestOracleOfRestores(t *testing.T) {
	t.Parallel()
	const completed, running = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	run := func(status string) *signalboxv1.Run {
		return &signalboxv1.Run{Id: "run", RequestId: "request", Status: status}
	}
	for name, tt := range map[string]struct {
		change func(*restoreEvidence)
		want   string
	}{
		"nothing": {change: func(*restoreEvidence) {}},
		"no row": {want: "run run is in the restored Temporal, and is not shown", change: func(e *restoreEvidence) {
			e.left.rows, e.runs = nil, nil
		}},
		"another run": {want: "its repetition was answered with run other", change: func(e *restoreEvidence) {
			e.repeats["request"] = load.Request{ID: "request", Run: "other", Outcome: load.Accepted}
		}},
		"two runs called": {want: "called for 2 runs", change: func(e *restoreEvidence) {
			e.calls["request"]["other"] = 1
		}},
		"called twice": {want: "called 2 times", change: func(e *restoreEvidence) {
			e.calls["request"]["key"], e.once = 2, map[string]string{"run": "ActivityTaskStarted"}
		}},
		"called twice by an older Temporal": {change: func(e *restoreEvidence) {
			e.calls["request"]["key"], e.plan.temporal = 2, 1
		}},
		"called twice as its worker was killed": {change: func(e *restoreEvidence) {
			e.calls["request"]["key"], e.once = 2, map[string]string{"run": ""}
		}},
		"open": {want: "has not completed", change: func(e *restoreEvidence) {
			e.runs["run"] = run("waiting")
		}},
		"open without a value": {change: func(e *restoreEvidence) {
			e.runs["run"] = run("running")
			e.runs["run"].Stuck = &signalboxv1.Stuck{Code: "TASK_FAILING", Cause: "PAYLOAD_MISSING"}
			e.workflows["request"] = values
		}},
		"open without a value that is apart": {want: "PAYLOAD_MISSING", change: func(e *restoreEvidence) {
			e.runs["run"] = run("running")
			e.runs["run"].Stuck = &signalboxv1.Stuck{Code: "TASK_FAILING", Cause: "PAYLOAD_MISSING"}
			e.workflows["request"], e.plan.apart = values, true
		}},
		"missing": {want: "has not failed with execution_missing", change: func(e *restoreEvidence) {
			e.left.executions, e.executions = nil, nil
		}},
		"reopened": {want: "does not report it", change: func(e *restoreEvidence) {
			e.left.rows["run"] = rowOf{request: "request", status: "completed"}
			e.executions["run"] = []enums.WorkflowExecutionStatus{running}
		}},
		"executed twice": {want: "has 2 executions", change: func(e *restoreEvidence) {
			e.executions["run"] = []enums.WorkflowExecutionStatus{completed, completed}
		}},
		"lost by the part that was not restored": {
			want: "is lost although only one part was restored", change: func(e *restoreEvidence) {
				e.left, e.executions, e.runs = remains{}, nil, nil
			}},
		"neither has it": {change: func(e *restoreEvidence) {
			e.left, e.executions, e.plan.temporal = remains{}, nil, 1
			e.runs = map[string]*signalboxv1.Run{"other": run("completed")}
			e.repeats["request"] = load.Request{ID: "request", Run: "other", Outcome: load.Accepted}
			e.calls["request"]["other"] = 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &restoreEvidence{
				plan: restorePlan{database: 2},
				left: remains{rows: map[string]rowOf{"run": {request: "request", status: "running"}},
					executions: map[string]bool{"run": true}},
				requests:   []load.Request{{ID: "request", Run: "run", Outcome: load.Accepted}},
				repeats:    map[string]load.Request{"request": {ID: "request", Run: "run", Outcome: load.Accepted}},
				workflows:  map[string]string{"request": short},
				runs:       map[string]*signalboxv1.Run{"run": run("completed")},
				executions: map[string][]enums.WorkflowExecutionStatus{"run": {completed}},
				calls:      map[string]map[string]int{"request": {"key": 1}},
			}
			tt.change(e)
			found := e.findings()
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Contains(t, strings.Join(found, "\n"), tt.want)
		})
	}
}
