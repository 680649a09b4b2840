package diagnose_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

const after = time.Minute

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// rows returns overdue rows, by status and reason.
func rows() map[string]diagnose.Row {
	row := func(status run.Status, change func(*diagnose.Row)) diagnose.Row {
		r := diagnose.Row{ID: "r1", Project: "shop", Status: status, StatusAt: ago(10 * time.Minute)}
		change(&r)
		return r
	}
	return map[string]diagnose.Row{
		"queued worker":    row(run.Queued, func(r *diagnose.Row) { r.QueuedReason = run.QueuedWorker }),
		"queued starting":  row(run.Queued, func(r *diagnose.Row) { r.QueuedReason = run.QueuedStarting }),
		"queued engine":    row(run.Queued, func(r *diagnose.Row) { r.QueuedReason = run.QueuedEngine }),
		"queued admission": row(run.Queued, func(r *diagnose.Row) { r.QueuedReason = run.QueuedAdmission }),
		"running":          row(run.Running, func(r *diagnose.Row) { r.MovedAt = r.StatusAt }),
		"waiting timer": row(run.Waiting, func(r *diagnose.Row) {
			r.WaitingKind, r.WaitUntil = "timer", ago(2*time.Minute)
		}),
		"waiting retry": row(run.Waiting, func(r *diagnose.Row) {
			r.WaitingKind, r.WaitUntil = "retry", ago(2*time.Minute)
		}),
		"waiting event": row(run.Waiting, func(r *diagnose.Row) {
			r.WaitingKind, r.WaitUntil = "event", ago(2*time.Minute)
		}),
		"waiting paused": row(run.Waiting, func(r *diagnose.Row) {
			r.WaitingKind, r.WaitUntil = "paused", ago(2*time.Minute)
		}),
		"waiting quota": row(run.Waiting, func(r *diagnose.Row) { r.WaitingKind, r.WaitUntil = "quota", ago(2*time.Minute) }),
		"waiting child": row(run.Waiting, func(r *diagnose.Row) { r.WaitingKind, r.WaitUntil = "child", ago(2*time.Minute) }),
		"completed":     row(run.Completed, func(*diagnose.Row) {}),
		"failed":        row(run.Failed, func(*diagnose.Row) {}),
		"canceled":      row(run.Canceled, func(*diagnose.Row) {}),
		"terminated":    row(run.Terminated, func(*diagnose.Row) {}),
		"timed out":     row(run.TimedOut, func(*diagnose.Row) {}),
	}
}

// situations returns the other facts about a run, by name. want is the code or the action for runs that Temporal has.
func situations() map[string]struct {
	change func(*diagnose.Facts)
	want   string
	// queued is the code or the action for runs that no worker has picked up, where it differs.
	queued string
} {
	execution := func(x diagnose.Execution) func(*diagnose.Facts) {
		return func(f *diagnose.Facts) { f.Execution = &x }
	}
	activity := func(a diagnose.Activity) func(*diagnose.Facts) {
		return execution(diagnose.Execution{Activities: []diagnose.Activity{a}})
	}
	return map[string]struct {
		change func(*diagnose.Facts)
		want   string
		queued string
	}{
		"in another Temporal": {func(f *diagnose.Facts) {
			f.Elsewhere = run.ClusterID{Address: "a:7233", Namespace: "ns", NamespaceID: "n1"}
		}, "IN_ANOTHER_TEMPORAL", ""},
		"nothing more":    {func(*diagnose.Facts) {}, "describe", ""},
		"queue not known": {func(f *diagnose.Facts) { f.Queue = nil }, "keep", ""},
		"no poller":       {func(f *diagnose.Facts) { f.Queue.Workflow = diagnose.Pollers{} }, "NO_POLLER", ""},
		"pollers are dead": {func(f *diagnose.Facts) {
			f.Queue.Workflow = diagnose.Pollers{StaleBy: "w1", StaleAt: ago(time.Hour)}
		}, "POLLER_STALE", ""},
		"workers are elsewhere": {func(f *diagnose.Facts) {
			f.Queue.Workflow = diagnose.Pollers{}
			f.Queue.Elsewhere = "worker w2"
		}, "NO_POLLER", ""},
		"workers have gone elsewhere": {func(f *diagnose.Facts) {
			f.Queue.Workflow = diagnose.Pollers{StaleBy: "w1"}
			f.Queue.Elsewhere = "w2"
		}, "NO_POLLER", ""},
		"a worker reported a failure": {func(f *diagnose.Facts) {
			f.Failure = &diagnose.Failure{At: ago(9 * time.Minute), Text: "panic", Cause: run.Panic}
		}, "describe", "TASK_FAILING"},
		"a failure without a cause": {func(f *diagnose.Facts) {
			f.Failure = &diagnose.Failure{At: ago(9 * time.Minute), Text: "panic"}
		}, "describe", ""},
		"Temporal reports something": {func(f *diagnose.Facts) {
			f.Reported = "WorkflowTaskFailedCauseWorkflowWorkerUnhandledFailure"
		}, "describe", ""},
		"task is poison": {poisonous, "POISON", ""},
		"an older failure": {func(f *diagnose.Facts) {
			f.Failure = &diagnose.Failure{At: ago(time.Hour), Text: "panic"}
		}, "describe", ""},
		"Temporal reports a problem": {func(f *diagnose.Facts) { f.Reported = "NonDeterministicError" }, "TASK_FAILING", ""},
		"an old backlog": {func(f *diagnose.Facts) {
			f.Queue.Workflow.Backlog, f.Queue.Workflow.Age = 9, 2*time.Minute
		}, "describe", "BACKLOG"},
		"a young backlog": {func(f *diagnose.Facts) {
			f.Queue.Workflow.Backlog, f.Queue.Workflow.Age = 9, time.Second
		}, "describe", ""},
		"missing": {execution(diagnose.Execution{Missing: true}), "EXECUTION_MISSING", ""},
		"closed":  {execution(diagnose.Execution{Closed: "Failed"}), "EXECUTION_CLOSED", ""},
		"task fails": {
			execution(diagnose.Execution{Task: &diagnose.Task{Attempt: 3}, Failure: "unknown type"}), "TASK_FAILING", ""},
		"task fails, being tried": {
			execution(diagnose.Execution{Task: &diagnose.Task{Attempt: 2, Started: true}}), "TASK_FAILING", ""},
		"task is being done": {
			execution(diagnose.Execution{Task: &diagnose.Task{Attempt: 1, Started: true, ScheduledAt: ago(time.Hour)}}), "clear",
			""},
		"task waits": {
			execution(diagnose.Execution{Task: &diagnose.Task{Attempt: 1, ScheduledAt: ago(2 * time.Minute)}}), "BACKLOG", ""},
		"task has just come": {
			execution(diagnose.Execution{Task: &diagnose.Task{Attempt: 1, ScheduledAt: ago(time.Second)}}), "clear", ""},
		"activity fails": {
			activity(diagnose.Activity{Type: "emit", Attempt: 4, Failure: "refused"}), "ACTIVITY_RETRYING", ""},
		"activity goes on": {
			activity(diagnose.Activity{Type: "call", Attempt: 1, Started: true, ScheduledAt: ago(time.Hour)}), "clear", ""},
		"activity waits": {
			activity(diagnose.Activity{Type: "call", Attempt: 1, ScheduledAt: ago(2 * time.Minute)}), "BACKLOG", ""},
		"no runner polls": {activity(diagnose.Activity{Type: "signalbox.program", Attempt: 1, ScheduledAt: ago(2 * time.Minute),
			Runners: &diagnose.ProgramQueue{Name: "signalbox.runner-p", Pollers: []diagnose.Poller{
				{Identity: "r1", LastAccess: ago(time.Hour)}}}}), "NO_RUNNER", ""},
		"runners are busy": {activity(diagnose.Activity{Type: "signalbox.program", Attempt: 1, ScheduledAt: ago(2 * time.Minute),
			Runners: &diagnose.ProgramQueue{Name: "signalbox.runner-p", Pollers: []diagnose.Poller{
				{Identity: "r1", LastAccess: ago(time.Second)}}}}), "NO_RUNNER", ""},
		"no program polls": {activity(diagnose.Activity{Type: "signalbox.function", Attempt: 1, ScheduledAt: ago(2 * time.Minute),
			Functions: &diagnose.ProgramQueue{Name: "signalbox.function-p/pricing", Pollers: []diagnose.Poller{
				{Identity: "f1", LastAccess: ago(time.Hour)}}}}), "NO_POLLER", ""},
		"programs are busy": {activity(diagnose.Activity{Type: "signalbox.function", Attempt: 1, ScheduledAt: ago(2 * time.Minute),
			Functions: &diagnose.ProgramQueue{Name: "signalbox.function-p/pricing", Pollers: []diagnose.Poller{
				{Identity: "f1", LastAccess: ago(time.Second)}}}}), "BACKLOG", ""},
		"program has just come": {activity(diagnose.Activity{Type: "signalbox.program", Attempt: 1,
			ScheduledAt: ago(time.Second), Runners: &diagnose.ProgramQueue{Name: "signalbox.runner-p"}}), "clear", ""},
		"activity has just come": {
			activity(diagnose.Activity{Type: "call", Attempt: 1, ScheduledAt: ago(time.Second)}), "clear", ""},
		"nothing is pending": {execution(diagnose.Execution{}), "UNKNOWN", ""},
		"failing, without a poller": {func(f *diagnose.Facts) {
			f.Reported = "x"
			f.Queue.Workflow = diagnose.Pollers{}
		}, "NO_POLLER", ""},
		"disconnected": {func(f *diagnose.Facts) {
			f.Connection = down(2 * time.Minute)
		}, "ENGINE_DISCONNECTED", ""},
		"disconnected for a moment": {func(f *diagnose.Facts) { f.Connection = down(time.Second) }, "keep", ""},
		"activity without a poller": {func(f *diagnose.Facts) {
			activity(diagnose.Activity{Attempt: 1, ScheduledAt: ago(2 * time.Minute)})(f)
			f.Queue.Activity = diagnose.Pollers{}
		}, "NO_POLLER", ""},
	}
}

// poisonous sets a task that has failed with a deadlock for 15 minutes.
func poisonous(f *diagnose.Facts) {
	f.Execution = &diagnose.Execution{
		Task: &diagnose.Task{Attempt: 9}, Failure: "[TMPRL1101]", Cause: run.Deadlock, FailedAt: ago(15 * time.Minute)}
}

func down(d time.Duration) diagnose.Connection {
	return diagnose.Connection{
		DownSince: ago(d), Address: "127.0.0.1:7233", Kind: "unreachable", LastError: "connection refused"}
}

func facts(r diagnose.Row) diagnose.Facts {
	return diagnose.Facts{
		Now: now, After: after, PoisonAfter: 15 * time.Minute, Row: r,
		Connection: diagnose.Connection{Usable: true, Address: "127.0.0.1:7233"},
		Queue: &diagnose.Queue{
			Name: "signalbox-shop", Workflow: diagnose.Pollers{Alive: 2}, Activity: diagnose.Pollers{Alive: 2}},
	}
}

// outcome returns the action of a decision, or its code.
func outcome(d diagnose.Decision) string {
	switch d.Action {
	case diagnose.Clear:
		return "clear"
	case diagnose.Keep:
		return "keep"
	case diagnose.Describe:
		return "describe"
	case diagnose.Report:
		return d.Verdict.Code
	}
	return "?"
}

// TestDecideInEverySituation decides all rows in all situations.
func TestDecideInEverySituation(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for name, row := range rows() {
		for situation, s := range situations() {
			f := facts(row)
			s.change(&f)
			want := s.want
			disconnected := strings.HasPrefix(situation, "disconnected")
			switch {
			case row.Status == run.Waiting && row.WaitingKind != "timer" && row.WaitingKind != "retry" &&
				(f.Failure != nil || f.Reported != ""):
				want = "describe" // the run may wait, but must process its workflow tasks
			case row.Status.Terminal(), name == "queued admission",
				row.Status == run.Waiting && row.WaitingKind != "timer" && row.WaitingKind != "retry":
				want = "clear"
			case name == "queued engine" && !disconnected:
				want = "clear"
			case name == "queued starting" && !disconnected && f.Elsewhere == (run.ClusterID{}):
				want = "NOT_STARTED"
			case row.Status == run.Waiting && want == "UNKNOWN":
				want = "TIMER_LATE"
			case name == "queued worker" && s.queued != "":
				want = s.queued
			}
			d := diagnose.Decide(f)
			require.Equal(t, want, outcome(d), "%s, %s", name, situation)
			if d.Action != diagnose.Report {
				require.Zero(t, d.Verdict)
				continue
			}
			found[d.Verdict.Code] = true
			since, due := diagnose.Due(row, now, after)
			require.True(t, due)
			require.Equal(t, since, d.Verdict.Since)
			for _, text := range []string{d.Verdict.Detail, d.Verdict.Advice} {
				require.NotEmpty(t, text, "%s, %s", name, situation)
				require.NotContains(t, text, "\n")
			}
			require.Contains(t, d.Verdict.Detail+d.Verdict.Advice, "signalbox", "%s: the texts name the queue or a command",
				d.Verdict.Code)
		}
	}
	for _, code := range run.Codes() {
		require.True(t, found[code], "no situation leads to %s", code)
	}
}

// TestWaitingRunsMustProcessTheirTasks has runs in waits that are not over.
func TestWaitingRunsMustProcessTheirTasks(t *testing.T) {
	t.Parallel()
	task := func(attempt int, scheduled time.Duration) *diagnose.Execution {
		return &diagnose.Execution{Task: &diagnose.Task{Attempt: attempt, ScheduledAt: ago(scheduled)}}
	}
	failed := func(first, last time.Duration) *diagnose.Execution {
		x := task(4, last)
		x.Failure, x.FailedAt = "non-determinism", ago(first)
		return x
	}
	for name, tt := range map[string]struct {
		execution *diagnose.Execution
		noPoller  bool
		want      string
		since     time.Time
	}{
		"not described":            {want: "describe"},
		"nothing is pending":       {execution: &diagnose.Execution{}, want: "clear"},
		"its task has just failed": {execution: failed(59*time.Second, time.Second), want: "clear"},
		"its task fails": {
			execution: failed(61*time.Second, time.Second), want: "TASK_FAILING", since: ago(61 * time.Second)},
		"its task times out": {execution: task(3, 2*time.Minute), want: "TASK_FAILING", since: ago(2 * time.Minute)},
		"its task waits":     {execution: task(1, 2*time.Minute), want: "BACKLOG", since: ago(2 * time.Minute)},
		"its task has come":  {execution: task(1, time.Second), want: "clear"},
		"its task has no poller": {
			execution: task(1, 2*time.Minute), noPoller: true, want: "NO_POLLER", since: ago(2 * time.Minute)},
		"a worker executes it": {
			execution: &diagnose.Execution{Task: &diagnose.Task{Attempt: 1, Started: true, ScheduledAt: ago(time.Hour)}},
			want:      "clear"},
		"it has ended, or is missing": {execution: &diagnose.Execution{Missing: true}, want: "clear"},
	} {
		for _, kind := range []string{run.WaitingEvent, run.WaitingTimer, run.WaitingPaused, "quota", "child"} {
			row := diagnose.Row{ID: "r1", Project: "shop", Status: run.Waiting, WaitingKind: kind, StatusAt: ago(time.Hour),
				WaitUntil: now.Add(time.Hour)}
			require.Equal(t, "clear", outcome(diagnose.Decide(facts(row))), "no fact indicates a problem")
			for _, problem := range []func(*diagnose.Facts){
				func(f *diagnose.Facts) { f.Row.CancelRequested = true },
				func(f *diagnose.Facts) { f.Failure = &diagnose.Failure{At: ago(time.Minute), Text: "panic"} },
				func(f *diagnose.Facts) { f.Reported = "NonDeterministicError" },
			} {
				f := facts(row)
				problem(&f)
				f.Execution = tt.execution
				if tt.noPoller {
					f.Queue.Workflow = diagnose.Pollers{}
				}
				d := diagnose.Decide(f)
				require.Equal(t, tt.want, outcome(d), "%s, %s", name, kind)
				require.Equal(t, tt.since, d.Verdict.Since, "%s, %s", name, kind)
				f.Queue = nil
				require.Equal(t, "keep", outcome(diagnose.Decide(f)))
			}
		}
	}
}

// TestProgressIsOverdueOnlyAfterTheLimit checks 59, 60 and 61 seconds for every kind of progress.
func TestProgressIsOverdueOnlyAfterTheLimit(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]func(time.Duration) diagnose.Row{
		"queued": func(d time.Duration) diagnose.Row {
			return diagnose.Row{Status: run.Queued, QueuedReason: run.QueuedWorker, StatusAt: ago(d)}
		},
		"running": func(d time.Duration) diagnose.Row { return diagnose.Row{Status: run.Running, StatusAt: ago(d)} },
		"running, a step ago": func(d time.Duration) diagnose.Row {
			return diagnose.Row{Status: run.Running, StatusAt: ago(time.Hour), MovedAt: ago(d)}
		},
		"timer": func(d time.Duration) diagnose.Row {
			return diagnose.Row{Status: run.Waiting, WaitingKind: "timer", StatusAt: ago(time.Hour), WaitUntil: ago(d)}
		},
	} {
		for d, want := range map[time.Duration]bool{
			59 * time.Second: false, after: false, 61 * time.Second: true, -time.Hour: false} {
			since, due := diagnose.Due(shape(d), now, after)
			require.Equal(t, want, due, "%s for %v", name, d)
			require.Equal(t, ago(d), since)
		}
	}
	_, due := diagnose.Due(diagnose.Row{Status: run.Waiting, WaitingKind: "timer", StatusAt: ago(time.Hour)}, now, after)
	require.False(t, due, "a wait that is not overdue has no time")
}

func TestDeadPollersDoNotCount(t *testing.T) {
	t.Parallel()
	workers := []diagnose.Worker{{Identity: "live", Live: true, Compatible: true}, {Identity: "killed"}}
	for name, tt := range map[string]struct {
		poller diagnose.Poller
		alive  bool
	}{
		"live, polls":             {diagnose.Poller{Identity: "live", LastAccess: ago(50 * time.Second)}, true},
		"live, polls no more":     {diagnose.Poller{Identity: "live", LastAccess: ago(90 * time.Second)}, false},
		"late heartbeat, polls":   {diagnose.Poller{Identity: "killed", LastAccess: ago(15 * time.Second)}, true},
		"without heartbeats":      {diagnose.Poller{Identity: "killed", LastAccess: ago(25 * time.Second)}, false},
		"dead for ninety seconds": {diagnose.Poller{Identity: "killed", LastAccess: ago(90 * time.Second)}, false},
		"another program's":       {diagnose.Poller{Identity: "other", LastAccess: ago(65 * time.Second)}, true},
		"another program's, dead": {diagnose.Poller{Identity: "other", LastAccess: ago(90 * time.Second)}, false},
		"a clock that is ahead":   {diagnose.Poller{Identity: "other", LastAccess: ago(-time.Minute)}, true},
	} {
		p := diagnose.CountPollers([]diagnose.Poller{tt.poller}, workers, now)
		if tt.alive {
			require.Equal(t, diagnose.Pollers{Alive: 1}, p, name)
		} else {
			require.Equal(t, diagnose.Pollers{StaleBy: tt.poller.Identity, StaleAt: tt.poller.LastAccess}, p, name)
		}
	}
	p := diagnose.CountPollers(
		[]diagnose.Poller{{Identity: "a", LastAccess: ago(4 * time.Minute)}, {Identity: "b", LastAccess: ago(2 * time.Minute)},
			{Identity: "live", LastAccess: ago(0)}}, workers, now)
	require.Equal(t, diagnose.Pollers{Alive: 1, StaleBy: "b", StaleAt: ago(2 * time.Minute)}, p, "the last one is named")
}

func TestIncompatibleWorkersAreNamed(t *testing.T) {
	t.Parallel()
	here, there, dead := diagnose.Worker{Identity: "a", Live: true, Compatible: true},
		diagnose.Worker{Identity: "b", Live: true, Fingerprint: "namespace other"},
		diagnose.Worker{Identity: "c", Fingerprint: "namespace other"}
	require.Empty(t, diagnose.Elsewhere([]diagnose.Worker{here, dead}))
	require.Equal(t, "worker b uses namespace other", diagnose.Elsewhere([]diagnose.Worker{here, dead, there}))
}

// TestDetailIsShort checks that a long failure becomes one short line.
func TestDetailIsShort(t *testing.T) {
	t.Parallel()
	f := facts(rows()["running"])
	f.Execution = &diagnose.Execution{
		Task: &diagnose.Task{Attempt: 2}, Failure: "panic:\n" + strings.Repeat("goroutine 1\n\t", 1000)}
	d := diagnose.Decide(f)
	require.NotContains(t, d.Verdict.Detail, "\n")
	require.Less(t, len(d.Verdict.Detail), 600)
}

// TestBusyWorkersAreNotStale: a live worker whose slots are in use does not poll, for as long as that takes, and
// Temporal forgets it after five minutes.
func TestBusyWorkersAreNotStale(t *testing.T) {
	t.Parallel()
	busy := diagnose.Worker{Identity: "w1", Live: true, Compatible: true, BusySince: ago(2 * time.Minute)}
	free, dead, elsewhere := busy, busy, busy
	free.BusySince, dead.Live, elsewhere.Compatible = time.Time{}, false, false
	polled := []diagnose.Poller{{Identity: "w1", LastAccess: ago(2 * time.Minute)}}
	executes := diagnose.Pollers{Alive: 1, Busy: 1, BusyBy: "w1", BusySince: ago(2 * time.Minute)}
	for _, tt := range []struct {
		worker diagnose.Worker
		listed []diagnose.Poller
		want   diagnose.Pollers
	}{
		{busy, polled, executes},
		{busy, nil, executes},
		{busy, []diagnose.Poller{{Identity: "w1", LastAccess: ago(time.Second)}}, executes},
		{free, polled, diagnose.Pollers{StaleBy: "w1", StaleAt: ago(2 * time.Minute)}},
		{dead, polled, diagnose.Pollers{StaleBy: "w1", StaleAt: ago(2 * time.Minute)}},
		{elsewhere, nil, diagnose.Pollers{}},
	} {
		require.Equal(t, tt.want, diagnose.CountPollers(tt.listed, []diagnose.Worker{tt.worker}, now))
	}
	f := facts(rows()["queued worker"])
	f.Queue.Workflow = executes
	f.Queue.Workflow.Backlog, f.Queue.Workflow.Age = 273, 2*time.Minute
	d := diagnose.Decide(f)
	require.Equal(t, run.Backlog, d.Verdict.Code)
	require.Equal(t, "the workflow tasks of task queue signalbox-shop wait: worker w1 is busy, all its slots for them "+
		"are in use or wait for "+
		"processor time since 2026-03-01T11:58:00Z: about 273, the oldest for 2m0s", d.Verdict.Detail)
	require.Contains(t, d.Verdict.Advice, "`signalbox run list --project shop --status running`")
}

// TestFirstTaskThatFails: a run whose first workflow task a worker has taken is running, and has no records. Its
// failures count as those of a queued run.
func TestFirstTaskThatFails(t *testing.T) {
	t.Parallel()
	f := facts(rows()["running"])
	f.Failure = &diagnose.Failure{At: ago(9 * time.Minute), Text: "panic", Cause: run.Panic}
	require.Equal(t, diagnose.Describe, diagnose.Decide(f).Action, "it has records: the next attempt may have succeeded")
	f.Row.MovedAt = time.Time{}
	require.Equal(t, run.TaskFailing, diagnose.Decide(f).Verdict.Code)
}

// A run in another Temporal is never missing. Where an adoption has left it there, it has its verdict in any wait.
func TestRunInAnotherTemporal(t *testing.T) {
	t.Parallel()
	there := run.ClusterID{Address: "a:7233", Namespace: "ns", NamespaceID: "n1"}
	missing := &diagnose.Execution{Missing: true}
	for name, row := range rows() {
		f := diagnose.Facts{Now: now, After: after, Row: row, Connection: diagnose.Connection{Usable: true},
			Queue: &diagnose.Queue{Workflow: diagnose.Pollers{Alive: 1}}, Execution: missing}
		f.Elsewhere = there
		_, due := diagnose.Due(row, now, after)
		d := diagnose.Decide(f)
		if due && row.QueuedReason != run.QueuedEngine {
			require.Equal(t, run.InAnotherTemporal, d.Verdict.Code, name)
			require.Contains(t, d.Verdict.Detail, "a:7233", name)
			require.Contains(t, d.Verdict.Advice, "signalbox run terminate r1", name)
		} else {
			require.NotEqual(t, run.ExecutionMissing, d.Verdict.Code, name)
		}
		f.Row.LeftIn = there
		if d = diagnose.Decide(f); row.Status.Terminal() {
			require.Equal(t, diagnose.Decision{}, d, name)
			continue
		}
		require.Equal(t, []any{diagnose.Report, run.InAnotherTemporal, row.StatusAt},
			[]any{d.Action, d.Verdict.Code, d.Verdict.Since}, name)
		f.Elsewhere = run.ClusterID{}
		require.NotEqual(t, run.InAnotherTemporal, diagnose.Decide(f).Verdict.Code, "the server uses that Temporal again")
	}
}
