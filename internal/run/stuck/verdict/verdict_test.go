package verdict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
)

const after = time.Minute

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// overdue rows, by what they are.
func rows() map[string]verdict.Row {
	row := func(status run.Status, change func(*verdict.Row)) verdict.Row {
		r := verdict.Row{ID: "r1", Project: "shop", Status: status, StatusAt: ago(10 * time.Minute)}
		change(&r)
		return r
	}
	return map[string]verdict.Row{
		"queued worker":    row(run.Queued, func(r *verdict.Row) { r.QueuedReason = run.QueuedWorker }),
		"queued starting":  row(run.Queued, func(r *verdict.Row) { r.QueuedReason = run.QueuedStarting }),
		"queued engine":    row(run.Queued, func(r *verdict.Row) { r.QueuedReason = run.QueuedEngine }),
		"queued admission": row(run.Queued, func(r *verdict.Row) { r.QueuedReason = run.QueuedAdmission }),
		"running":          row(run.Running, func(*verdict.Row) {}),
		"waiting timer":    row(run.Waiting, func(r *verdict.Row) { r.WaitingKind, r.WaitUntil = "timer", ago(2*time.Minute) }),
		"waiting retry":    row(run.Waiting, func(r *verdict.Row) { r.WaitingKind, r.WaitUntil = "retry", ago(2*time.Minute) }),
		"waiting event":    row(run.Waiting, func(r *verdict.Row) { r.WaitingKind, r.WaitUntil = "event", ago(2*time.Minute) }),
		"waiting paused":   row(run.Waiting, func(r *verdict.Row) { r.WaitingKind, r.WaitUntil = "paused", ago(2*time.Minute) }),
		"waiting quota":    row(run.Waiting, func(r *verdict.Row) { r.WaitingKind, r.WaitUntil = "quota", ago(2*time.Minute) }),
		"waiting child":    row(run.Waiting, func(r *verdict.Row) { r.WaitingKind, r.WaitUntil = "child", ago(2*time.Minute) }),
		"completed":        row(run.Completed, func(*verdict.Row) {}),
		"failed":           row(run.Failed, func(*verdict.Row) {}),
		"canceled":         row(run.Canceled, func(*verdict.Row) {}),
		"terminated":       row(run.Terminated, func(*verdict.Row) {}),
		"timed out":        row(run.TimedOut, func(*verdict.Row) {}),
	}
}

// situations are all that may be known of a run beside its row; each says what becomes of runs that Temporal has: a code, or an action.
func situations() map[string]struct {
	change func(*verdict.Facts)
	want   string
	// queued is for runs that no worker has picked up, where that is another one.
	queued string
} {
	execution := func(x verdict.Execution) func(*verdict.Facts) {
		return func(f *verdict.Facts) { f.Execution = &x }
	}
	activity := func(a verdict.Activity) func(*verdict.Facts) {
		return execution(verdict.Execution{Activities: []verdict.Activity{a}})
	}
	return map[string]struct {
		change func(*verdict.Facts)
		want   string
		queued string
	}{
		"nothing more":                {func(*verdict.Facts) {}, "ask", ""},
		"queue not known":             {func(f *verdict.Facts) { f.Queue = nil }, "keep", ""},
		"nobody polls":                {func(f *verdict.Facts) { f.Queue.Workflow = verdict.Pollers{} }, "NO_POLLER", ""},
		"pollers are dead":            {func(f *verdict.Facts) { f.Queue.Workflow = verdict.Pollers{StaleBy: "w1", StaleAt: ago(time.Hour)} }, "POLLER_STALE", ""},
		"workers are elsewhere":       {func(f *verdict.Facts) { f.Queue.Workflow = verdict.Pollers{}; f.Queue.Elsewhere = "worker w2" }, "NO_POLLER", ""},
		"workers have gone elsewhere": {func(f *verdict.Facts) { f.Queue.Workflow = verdict.Pollers{StaleBy: "w1"}; f.Queue.Elsewhere = "w2" }, "NO_POLLER", ""},
		"a worker told of a failure": {func(f *verdict.Facts) {
			f.Failure = &verdict.Failure{At: ago(9 * time.Minute), Text: "panic", Cause: problem.Panic}
		}, "ask", "TASK_FAILING"},
		"a failure without a cause":     {func(f *verdict.Facts) { f.Failure = &verdict.Failure{At: ago(9 * time.Minute), Text: "panic"} }, "ask", ""},
		"Temporal reports something":    {func(f *verdict.Facts) { f.Reported = "WorkflowTaskFailedCauseWorkflowWorkerUnhandledFailure" }, "ask", ""},
		"task is poison":                {poisonous, "POISON", ""},
		"an older failure":              {func(f *verdict.Facts) { f.Failure = &verdict.Failure{At: ago(time.Hour), Text: "panic"} }, "ask", ""},
		"Temporal reports a problem":    {func(f *verdict.Facts) { f.Reported = "NonDeterministicError" }, "TASK_FAILING", ""},
		"an old backlog":                {func(f *verdict.Facts) { f.Queue.Workflow.Backlog, f.Queue.Workflow.Age = 9, 2*time.Minute }, "ask", "BACKLOG"},
		"a young backlog":               {func(f *verdict.Facts) { f.Queue.Workflow.Backlog, f.Queue.Workflow.Age = 9, time.Second }, "ask", ""},
		"missing":                       {execution(verdict.Execution{Missing: true}), "EXECUTION_MISSING", ""},
		"closed":                        {execution(verdict.Execution{Closed: "Failed"}), "EXECUTION_CLOSED", ""},
		"task fails":                    {execution(verdict.Execution{Task: &verdict.Task{Attempt: 3}, Failure: "unknown type"}), "TASK_FAILING", ""},
		"task fails, being tried":       {execution(verdict.Execution{Task: &verdict.Task{Attempt: 2, Started: true}}), "TASK_FAILING", ""},
		"task is being done":            {execution(verdict.Execution{Task: &verdict.Task{Attempt: 1, Started: true, ScheduledAt: ago(time.Hour)}}), "clear", ""},
		"task waits":                    {execution(verdict.Execution{Task: &verdict.Task{Attempt: 1, ScheduledAt: ago(2 * time.Minute)}}), "BACKLOG", ""},
		"task has just come":            {execution(verdict.Execution{Task: &verdict.Task{Attempt: 1, ScheduledAt: ago(time.Second)}}), "clear", ""},
		"activity fails":                {activity(verdict.Activity{Type: "emit", Attempt: 4, Failure: "refused"}), "ACTIVITY_RETRYING", ""},
		"activity goes on":              {activity(verdict.Activity{Type: "call", Attempt: 1, Started: true, ScheduledAt: ago(time.Hour)}), "clear", ""},
		"activity waits":                {activity(verdict.Activity{Type: "call", Attempt: 1, ScheduledAt: ago(2 * time.Minute)}), "BACKLOG", ""},
		"activity has just come":        {activity(verdict.Activity{Type: "call", Attempt: 1, ScheduledAt: ago(time.Second)}), "clear", ""},
		"nothing is pending":            {execution(verdict.Execution{}), "UNKNOWN", ""},
		"failing, and nobody polls now": {func(f *verdict.Facts) { f.Reported = "x"; f.Queue.Workflow = verdict.Pollers{} }, "NO_POLLER", ""},
		"disconnected":                  {func(f *verdict.Facts) { f.Connection = down(2 * time.Minute) }, "ENGINE_DISCONNECTED", ""},
		"disconnected for a moment":     {func(f *verdict.Facts) { f.Connection = down(time.Second) }, "keep", ""},
		"activity waits for nobody": {func(f *verdict.Facts) {
			activity(verdict.Activity{Attempt: 1, ScheduledAt: ago(2 * time.Minute)})(f)
			f.Queue.Activity = verdict.Pollers{}
		}, "NO_POLLER", ""},
	}
}

// poisonous is a task that has failed with a deadlock for 15 minutes.
func poisonous(f *verdict.Facts) {
	f.Execution = &verdict.Execution{Task: &verdict.Task{Attempt: 9}, Failure: "[TMPRL1101]", Cause: problem.Deadlock, FailedAt: ago(15 * time.Minute)}
}

func down(d time.Duration) verdict.Connection {
	return verdict.Connection{DownSince: ago(d), Address: "127.0.0.1:7233", Kind: "unreachable", LastError: "connection refused"}
}

func facts(r verdict.Row) verdict.Facts {
	return verdict.Facts{
		Now: now, After: after, PoisonAfter: 15 * time.Minute, Row: r, Connection: verdict.Connection{Usable: true, Address: "127.0.0.1:7233"},
		Queue: &verdict.Queue{Name: "signalbox-shop", Workflow: verdict.Pollers{Alive: 2}, Activity: verdict.Pollers{Alive: 2}},
	}
}

// outcome is a decision in a word.
func outcome(d verdict.Decision) string {
	switch d.Action {
	case verdict.Clear:
		return "clear"
	case verdict.Keep:
		return "keep"
	case verdict.Ask:
		return "ask"
	case verdict.Give:
		return d.Verdict.Code
	}
	return "?"
}

// TestEverySituationOfEveryRow judges all rows in all situations.
func TestEverySituationOfEveryRow(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for name, row := range rows() {
		for situation, s := range situations() {
			f := facts(row)
			s.change(&f)
			want := s.want
			disconnected := strings.HasPrefix(situation, "disconnected")
			switch {
			case row.Status == run.Waiting && row.WaitingKind != "timer" && row.WaitingKind != "retry" && (f.Failure != nil || f.Reported != ""):
				want = "ask" // it may wait, and has to take note of something all the same
			case row.Status.Terminal(), name == "queued admission",
				row.Status == run.Waiting && row.WaitingKind != "timer" && row.WaitingKind != "retry":
				want = "clear"
			case name == "queued engine" && !disconnected:
				want = "clear"
			case name == "queued starting" && !disconnected:
				want = "NOT_STARTED"
			case name == "queued worker" && s.queued != "":
				want = s.queued
			}
			d := verdict.Of(f)
			require.Equal(t, want, outcome(d), "%s, %s", name, situation)
			if d.Action != verdict.Give {
				require.Zero(t, d.Verdict)
				continue
			}
			given[d.Verdict.Code] = true
			since, due := verdict.Due(row, now, after)
			require.True(t, due)
			require.Equal(t, since, d.Verdict.Since)
			for _, text := range []string{d.Verdict.Detail, d.Verdict.Advice} {
				require.NotEmpty(t, text, "%s, %s", name, situation)
				require.NotContains(t, text, "\n")
			}
			require.Contains(t, d.Verdict.Detail+d.Verdict.Advice, "signalbox", "%s: it names the queue or a command", d.Verdict.Code)
		}
	}
	for _, code := range problem.Codes() {
		require.True(t, given[code], "no situation leads to %s", code)
	}
}

// TestRunsThatWaitAreJudgedByWhatTheyShouldTakeNoteOf has runs in waits that are not over.
func TestRunsThatWaitAreJudgedByWhatTheyShouldTakeNoteOf(t *testing.T) {
	t.Parallel()
	task := func(attempt int, scheduled time.Duration) *verdict.Execution {
		return &verdict.Execution{Task: &verdict.Task{Attempt: attempt, ScheduledAt: ago(scheduled)}}
	}
	failed := func(first, last time.Duration) *verdict.Execution {
		x := task(4, last)
		x.Failure, x.FailedAt = "non-determinism", ago(first)
		return x
	}
	for name, tt := range map[string]struct {
		execution *verdict.Execution
		nobody    bool
		want      string
		since     time.Time
	}{
		"not asked":                   {want: "ask"},
		"nothing is pending":          {execution: &verdict.Execution{}, want: "clear"},
		"its task has just failed":    {execution: failed(59*time.Second, time.Second), want: "clear"},
		"its task fails":              {execution: failed(61*time.Second, time.Second), want: "TASK_FAILING", since: ago(61 * time.Second)},
		"its task times out":          {execution: task(3, 2*time.Minute), want: "TASK_FAILING", since: ago(2 * time.Minute)},
		"its task waits":              {execution: task(1, 2*time.Minute), want: "BACKLOG", since: ago(2 * time.Minute)},
		"its task has come":           {execution: task(1, time.Second), want: "clear"},
		"its task is for nobody":      {execution: task(1, 2*time.Minute), nobody: true, want: "NO_POLLER", since: ago(2 * time.Minute)},
		"a worker is at it":           {execution: &verdict.Execution{Task: &verdict.Task{Attempt: 1, Started: true, ScheduledAt: ago(time.Hour)}}, want: "clear"},
		"it has ended, or is missing": {execution: &verdict.Execution{Missing: true}, want: "clear"},
	} {
		for _, kind := range []string{run.WaitingEvent, run.WaitingTimer, run.WaitingPaused, "quota", "child"} {
			row := verdict.Row{ID: "r1", Project: "shop", Status: run.Waiting, WaitingKind: kind, StatusAt: ago(time.Hour), WaitUntil: now.Add(time.Hour)}
			require.Equal(t, "clear", outcome(verdict.Of(facts(row))), "nothing tells of trouble")
			for _, trouble := range []func(*verdict.Facts){
				func(f *verdict.Facts) { f.Row.CancelRequested = true },
				func(f *verdict.Facts) { f.Failure = &verdict.Failure{At: ago(time.Minute), Text: "panic"} },
				func(f *verdict.Facts) { f.Reported = "NonDeterministicError" },
			} {
				f := facts(row)
				trouble(&f)
				f.Execution = tt.execution
				if tt.nobody {
					f.Queue.Workflow = verdict.Pollers{}
				}
				d := verdict.Of(f)
				require.Equal(t, tt.want, outcome(d), "%s, %s", name, kind)
				require.Equal(t, tt.since, d.Verdict.Since, "%s, %s", name, kind)
				f.Queue = nil
				require.Equal(t, "keep", outcome(verdict.Of(f)))
			}
		}
	}
}

// TestProgressIsOverdueAfterTheTimeToTheInstant looks at 59, 60 and 61 seconds, whatever it is that makes no progress.
func TestProgressIsOverdueAfterTheTimeToTheInstant(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]func(time.Duration) verdict.Row{
		"queued": func(d time.Duration) verdict.Row {
			return verdict.Row{Status: run.Queued, QueuedReason: run.QueuedWorker, StatusAt: ago(d)}
		},
		"running": func(d time.Duration) verdict.Row { return verdict.Row{Status: run.Running, StatusAt: ago(d)} },
		"running, a step ago": func(d time.Duration) verdict.Row {
			return verdict.Row{Status: run.Running, StatusAt: ago(time.Hour), MovedAt: ago(d)}
		},
		"timer": func(d time.Duration) verdict.Row {
			return verdict.Row{Status: run.Waiting, WaitingKind: "timer", StatusAt: ago(time.Hour), WaitUntil: ago(d)}
		},
	} {
		for d, want := range map[time.Duration]bool{59 * time.Second: false, after: false, 61 * time.Second: true, -time.Hour: false} {
			since, due := verdict.Due(shape(d), now, after)
			require.Equal(t, want, due, "%s for %v", name, d)
			require.Equal(t, ago(d), since)
		}
	}
	_, due := verdict.Due(verdict.Row{Status: run.Waiting, WaitingKind: "timer", StatusAt: ago(time.Hour)}, now, after)
	require.False(t, due, "a wait that is not overdue has no time")
}

func TestPollersThatAreDeadDoNotCount(t *testing.T) {
	t.Parallel()
	workers := []verdict.Worker{{Identity: "live", Live: true, Here: true}, {Identity: "killed"}}
	for name, tt := range map[string]struct {
		poller verdict.Poller
		alive  bool
	}{
		"its signs of life come":          {verdict.Poller{Identity: "live", LastAccess: ago(50 * time.Second)}, true},
		"they come, and it polls no more": {verdict.Poller{Identity: "live", LastAccess: ago(90 * time.Second)}, false},
		"they have ended":                 {verdict.Poller{Identity: "killed", LastAccess: ago(25 * time.Second)}, false},
		"dead for ninety seconds":         {verdict.Poller{Identity: "killed", LastAccess: ago(90 * time.Second)}, false},
		"somebody else's":                 {verdict.Poller{Identity: "other", LastAccess: ago(65 * time.Second)}, true},
		"somebody else's, dead":           {verdict.Poller{Identity: "other", LastAccess: ago(90 * time.Second)}, false},
		"a clock that is ahead":           {verdict.Poller{Identity: "other", LastAccess: ago(-time.Minute)}, true},
	} {
		p := verdict.Count([]verdict.Poller{tt.poller}, workers, now)
		if tt.alive {
			require.Equal(t, verdict.Pollers{Alive: 1}, p, name)
		} else {
			require.Equal(t, verdict.Pollers{StaleBy: tt.poller.Identity, StaleAt: tt.poller.LastAccess}, p, name)
		}
	}
	p := verdict.Count([]verdict.Poller{{"a", ago(4 * time.Minute)}, {"b", ago(2 * time.Minute)}, {"live", ago(0)}}, workers, now)
	require.Equal(t, verdict.Pollers{Alive: 1, StaleBy: "b", StaleAt: ago(2 * time.Minute)}, p, "the last one is named")
}

func TestWorkersElsewhereAreNamed(t *testing.T) {
	t.Parallel()
	here, there, dead := verdict.Worker{Identity: "a", Live: true, Here: true}, verdict.Worker{Identity: "b", Live: true, Place: "namespace other"},
		verdict.Worker{Identity: "c", Place: "namespace other"}
	require.Empty(t, verdict.Elsewhere([]verdict.Worker{here, dead}))
	require.Equal(t, "worker b works at namespace other", verdict.Elsewhere([]verdict.Worker{here, dead, there}))
}

// TestWordsAreShort keeps a failure's text from filling the screen.
func TestWordsAreShort(t *testing.T) {
	t.Parallel()
	f := facts(rows()["running"])
	f.Execution = &verdict.Execution{Task: &verdict.Task{Attempt: 2}, Failure: "panic:\n" + strings.Repeat("goroutine 1\n\t", 1000)}
	d := verdict.Of(f)
	require.NotContains(t, d.Verdict.Detail, "\n")
	require.Less(t, len(d.Verdict.Detail), 600)
}
