package chaos_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// agree corrects both sides with the commands of docs/operations.md until the check is complete, and repeats all
// requests.
func (x *installation) agree(left remains) {
	x.t.Helper()
	x.fix()
	c, runs := x.checked(), x.runs()
	// Temporal lists some executions only after its restart.
	executions, err := load.Executions(x.t.Context(), platform.DialTemporal(x.t, x.temporal.Address))
	require.NoError(x.t, err)
	adopted, foreign, open := 0, int64(0), int64(0)
	for id, statuses := range executions {
		left.executions[id] = true
		switch {
		case left.rows[id].status != "":
		case runs[id] != nil:
			adopted++
		default:
			foreign++
			if slices.Contains(statuses, enums.WORKFLOW_EXECUTION_STATUS_RUNNING) {
				open++
			}
		}
	}
	var reported int64
	for _, f := range c.Comparison.Foreign {
		reported += f.Count
	}
	// Ended executions of a workflow that is not published are reported by the comparison that searches them, and two
	// minutes long. All of them have their row once it is published and they are searched again.
	require.True(x.t, open <= reported && reported <= foreign,
		"%d executions without a row, %d open; the check reports %d: %+v", foreign, open, reported, c)
	require.Equal(x.t, adopted > 0, c.Maintenance.Active, "%d runs got their row, so that the database was restored: %+v",
		adopted, c.Maintenance)
	if c.Maintenance.Active {
		x.repeatInMaintenance(runs)
		require.Equal(x.t, platform.ExitOK, x.server.CLI(x.t, "system", "maintenance", "off").Code)
	}
	if x.plan.late {
		x.publish(late)
		x.reconcile("--since", time.Now().Add(-x.plan.oldest()-time.Hour).UTC().Format(time.RFC3339))
		x.fix()
	}
}

// fix corrects what the check finds until it is complete.
func (x *installation) fix() {
	x.t.Helper()
	platform.Eventually(x.t, checkLimit, func() string {
		if r := x.server.CLI(x.t, "restore", "check", "--fix", "--yes"); r.Code != platform.ExitOK {
			return r.String()
		}
		return ""
	})
}

// repeatInMaintenance repeats requests while the maintenance lasts: those whose run is known are answered with it, the
// others are refused.
func (x *installation) repeatInMaintenance(runs map[string]*signalboxv1.Run) {
	x.t.Helper()
	known := map[string]string{}
	for id, r := range runs {
		known[r.GetRequestId()] = id
	}
	var mu sync.Mutex
	var wrong []string
	x.repeat(func(r, again load.Request) {
		mu.Lock()
		defer mu.Unlock()
		if again.Run != known[r.ID] || known[r.ID] == "" && again.Outcome != load.Refused {
			wrong = append(wrong, fmt.Sprintf("request %s of run %q was answered during the maintenance with run %q: %v", r.ID,
				known[r.ID], again.Run, again.Err))
		}
	})
	require.Empty(x.t, wrong, lines(wrong))
}

// repeat repeats all requests.
func (x *installation) repeat(f func(r, again load.Request)) {
	for _, l := range x.loads {
		each(l.Requests(), func(r load.Request) { f(r, l.Repeat(x.t.Context(), r)) })
	}
}

// runs returns all runs of the workflows by ID.
func (x *installation) runs() map[string]*signalboxv1.Run {
	x.t.Helper()
	runs := map[string]*signalboxv1.Run{}
	workflows := map[string]bool{}
	for _, l := range x.loads {
		workflows[l.Workflow()] = true
	}
	for workflow := range workflows {
		for _, r := range x.server.AllRuns(x.t, workflow, 500) {
			runs[r.GetId()] = r
		}
	}
	return runs
}

// judge sends all events, waits until nothing is found any more, and ends what lacks a value.
func (x *installation) judge(e *restoreEvidence) string {
	x.t.Helper()
	var keys []string
	for _, r := range x.requests(waits, values) {
		keys = append(keys, r.ID)
	}
	platform.Eventually(x.t, checkLimit, func() string {
		if err := x.send("again", keys); err != nil {
			return err.Error()
		}
		return ""
	})
	temporal := platform.DialTemporal(x.t, x.temporal.Address)
	platform.Eventually(x.t, checkLimit, func() string {
		if err := x.collect(e, temporal); err != nil {
			return err.Error()
		}
		if found := e.findings(); len(found) > 0 {
			return load.FirstOf(found)
		}
		return ""
	})
	lacking := x.endLacking(e)
	x.fix()
	return x.summary(e, lacking)
}

// collect reads the present state.
func (x *installation) collect(e *restoreEvidence, temporal client.Client) (err error) {
	x.t.Helper()
	e.runs = x.runs()
	if e.executions, err = load.Executions(x.t.Context(), temporal); err != nil {
		return err
	}
	e.calls, e.once, e.reopened = map[string]map[string]int{}, map[string]string{}, map[string]bool{}
	for _, call := range x.origin.Calls("POST /calls") {
		var body struct{ Key string }
		if err := json.Unmarshal([]byte(call.Body), &body); err != nil {
			return err
		}
		if e.calls[body.Key] == nil {
			e.calls[body.Key] = map[string]int{}
		}
		e.calls[body.Key][call.IdempotencyKey]++
	}
	runOf := e.runOf()
	for request, keys := range e.calls {
		for _, times := range keys {
			if run := runOf[request]; times > 1 && run != "" && e.plan.temporal == 0 {
				e.once[run] = x.once(temporal, run)
			}
		}
	}
	if slices.ContainsFunc(e.open(), func(id string) bool {
		return slices.Contains(platform.Ended(), e.runs[id].GetStatus())
	}) {
		for _, c := range x.checked().Comparison.Corrections {
			if c.Kind == "reopened_in_temporal" {
				e.reopened[c.RunID] = true
			}
		}
	}
	return nil
}

// open returns the runs that are open in Temporal.
func (e *restoreEvidence) open() (ids []string) {
	for id, statuses := range e.executions {
		if slices.Contains(statuses, enums.WORKFLOW_EXECUTION_STATUS_RUNNING) {
			ids = append(ids, id)
		}
	}
	return ids
}

// once returns the types and times of the events of a run of which Temporal has made no second attempt of a call:
// neither of its activity, nor of the workflow task that made it. "": it has made one.
func (x *installation) once(temporal client.Client, run string) string {
	var events []string
	for _, event := range platform.History(x.t, temporal, run).GetEvents() {
		failed := event.GetWorkflowTaskTimedOutEventAttributes() != nil ||
			event.GetWorkflowTaskFailedEventAttributes() != nil ||
			event.GetActivityTaskTimedOutEventAttributes() != nil // the run makes the call again, with the same key
		if failed || event.GetActivityTaskStartedEventAttributes().GetAttempt() > 1 {
			return ""
		}
		events = append(events, fmt.Sprintf("%v at %s", event.GetEventType(),
			event.GetEventTime().AsTime().Format(time.StampMilli)))
	}
	return strings.Join(events, ", ")
}

// endLacking terminates the runs that lack a value, as docs/what-is-wrong.md says, and returns their number. Runs that
// lost their input have a warning.
func (x *installation) endLacking(e *restoreEvidence) (lacking int) {
	x.t.Helper()
	for id, run := range e.runs {
		if e.lacksValue(run) {
			_, err := x.server.Control(x.t.Context(), "terminate", id, "it lacks a large value")
			require.NoError(x.t, err)
			x.server.Await(x.t, id, checkLimit, "terminated")
			lacking++
		}
		if row := e.left.rows[id]; row.status == "" && e.left.executions[id] && e.workflows[run.GetRequestId()] == values {
			warned := strings.Contains(fmt.Sprint(x.server.Run(x.t, id).GetWarnings()), "INPUT_MISSING")
			require.Equal(x.t, e.plan.mayLackValues(), warned, "the warning INPUT_MISSING of run %s, whose row is from Temporal",
				id)
		}
	}
	return lacking
}

// summary describes what the schedule had to do with.
func (x *installation) summary(e *restoreEvidence, lacking int) string {
	count := map[string]int{}
	for id := range e.known() {
		_, kept := e.left.rows[id]
		switch {
		case kept && e.left.executions[id]:
			count["both"]++
		case kept:
			count["database"]++
		default:
			count["Temporal"]++
		}
	}
	restarted, unanswered, runOf := 0, 0, e.runOf()
	for _, r := range e.requests {
		if runOf[r.ID] == "" {
			restarted++
		}
		if r.Outcome == load.Lost {
			unanswered++
		}
	}
	return fmt.Sprintf("%d requests, %d without an answer: runs in both %d, in the database alone %d, in Temporal alone "+
		"%d, in neither %d; reopened in Temporal %d, without a large value %d; %d runs after the restore",
		len(e.requests), unanswered, count["both"], count["database"], count["Temporal"], restarted, len(e.reopened), lacking,
		len(e.after))
}
