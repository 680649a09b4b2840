package diagnose_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// failing returns the facts of a running run with a task that has failed for a cause since then, according to the
// history.
func failing(cause string, since time.Duration) diagnose.Facts {
	f := facts(rows()["running"])
	f.Execution = &diagnose.Execution{
		Task: &diagnose.Task{Attempt: 5}, Failure: "why", Cause: cause, FailedAt: ago(since), FailedBy: "w1",
	}
	return f
}

// reported adds the failure that the worker of the newest attempt reported.
func reported(f diagnose.Facts, failure diagnose.Failure) diagnose.Facts {
	f.Failure = &failure
	return f
}

func TestOnlyCausesInTheRunArePoison(t *testing.T) {
	t.Parallel()
	for _, cause := range run.Causes() {
		want := run.TaskFailing
		if cause == run.PayloadTooLarge || cause == run.Deadlock {
			want = run.Poison
		}
		for age, code := range map[time.Duration]string{
			15*time.Minute - time.Microsecond: run.TaskFailing, 15 * time.Minute: want, 24 * time.Hour: want,
		} {
			d := diagnose.Decide(failing(cause, age))
			require.Equal(t, diagnose.Report, d.Action)
			require.Equal(t, []string{code, cause}, []string{d.Verdict.Code, d.Verdict.Cause}, "%s for %s", cause, age)
			require.Contains(t, d.Verdict.Detail, "why")
		}
		f := failing(cause, time.Hour)
		f.Foreign = true
		d := diagnose.Decide(f)
		require.Equal(t, run.TaskFailing, d.Verdict.Code, "%s on a worker of another program is not the run's cause", cause)
		if cause != run.NoAnswer {
			require.Equal(t, run.ForeignWorker, d.Verdict.Cause)
		}
		f = failing(cause, time.Hour)
		f.Execution, f.Row.StatusAt, f.Row.MovedAt = nil, ago(time.Hour), ago(time.Hour)
		f.Reported = "PayloadsTooLarge"
		require.Equal(t, diagnose.Describe,
			diagnose.Decide(reported(f, diagnose.Failure{At: ago(time.Second), Text: "why", Cause: run.Deadlock})).Action,
			"poison requires Temporal's confirmation that the task fails now")
	}
}

func TestPanicIsPoisonAfterTwoBuilds(t *testing.T) {
	t.Parallel()
	panicked := diagnose.Failure{
		At: ago(time.Second), Since: ago(20 * time.Minute), Text: "out of cheese", Cause: run.Panic, Build: "b"}
	d := diagnose.Decide(reported(failing(run.Panic, 20*time.Minute), panicked))
	require.Equal(t, []string{run.TaskFailing, run.Panic}, []string{d.Verdict.Code, d.Verdict.Cause})
	require.Contains(t, d.Verdict.Detail, "out of cheese", "the newest failure is shown")

	panicked.OtherBuild = "a"
	require.Equal(t, run.Poison, diagnose.Decide(reported(failing(run.Panic, 20*time.Minute), panicked)).Verdict.Code)
	panicked.Since = ago(14 * time.Minute)
	require.Equal(t, run.TaskFailing, diagnose.Decide(reported(failing(run.Panic, 20*time.Minute), panicked)).Verdict.Code,
		"before that it failed for another cause")
	panicked.Since = ago(20 * time.Minute)
	require.Equal(t, run.TaskFailing, diagnose.Decide(reported(failing(run.Panic, 14*time.Minute), panicked)).Verdict.Code,
		"an earlier failure of the run was over before this one")

	key := diagnose.Failure{At: ago(time.Second), Since: ago(time.Second), Text: "opening a payload",
		Cause: run.MissingKey}
	d = diagnose.Decide(reported(failing(run.Deadlock, time.Hour), key))
	require.Equal(t, []string{run.TaskFailing, run.MissingKey}, []string{d.Verdict.Code, d.Verdict.Cause},
		"the newest attempt counts")
	old := diagnose.Failure{At: ago(2 * time.Hour), Since: ago(2 * time.Hour), Text: "opening a payload",
		Cause: run.MissingKey}
	require.Equal(t, run.Poison, diagnose.Decide(reported(failing(run.Deadlock, time.Hour), old)).Verdict.Code,
		"a failure before the row's status does not")
}

func TestEachCauseHasItsOwnAdvice(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, cause := range run.Causes() {
		advice := diagnose.Decide(failing(cause, time.Minute)).Verdict.Advice
		require.Contains(t, advice, "signalbox")
		require.Empty(t, seen[advice], "%s has the advice of %s", cause, seen[advice])
		seen[advice] = cause
	}
}

// A worker that is not allowed to run looks like one that computes without end.
func TestDeadlockOnAWorkerShortOfProcessorTimeIsNotPoison(t *testing.T) {
	t.Parallel()
	const shortage = "worker w1 gets 24 % of a processor (limited to 25 % of a processor and throttled in 93 % of the " +
		"last minute's periods)"
	for name, f := range map[string]diagnose.Facts{
		"by the history": failing(run.Deadlock, time.Hour),
		"by the worker's report": reported(failing(run.Deadlock, time.Hour),
			diagnose.Failure{At: ago(time.Second), Since: ago(time.Hour), Text: "why", Cause: run.Deadlock}),
		"a task without an answer": failing(run.NoAnswer, time.Hour),
	} {
		f.Queue.Shortage = shortage
		d := diagnose.Decide(f)
		want := run.ProcessorShortage
		if name == "a task without an answer" {
			want = run.NoAnswer
		}
		require.Equal(t, []string{run.TaskFailing, want}, []string{d.Verdict.Code, d.Verdict.Cause}, name)
		require.Contains(t, d.Verdict.Detail, shortage, name)
		require.Contains(t, d.Verdict.Detail, "why", name)
	}
	f := failing(run.PayloadTooLarge, time.Hour)
	f.Queue.Shortage = shortage
	require.Equal(t, run.Poison, diagnose.Decide(f).Verdict.Code, "no shortage explains a value that is too large")

	f = facts(rows()["running"])
	f.Queue.Shortage = shortage
	f.Execution = &diagnose.Execution{Task: &diagnose.Task{Attempt: 1, ScheduledAt: ago(2 * time.Minute)}}
	d := diagnose.Decide(f)
	require.Equal(t, run.Backlog, d.Verdict.Code)
	require.Contains(t, d.Verdict.Detail, shortage)
}

func TestFailureIsReportedWithTheShortageOfItsWorker(t *testing.T) {
	t.Parallel()
	used, throttled := 0.24, 0.93
	short := processor.State{Used: &used, Throttled: &throttled}
	failure := diagnose.TaskFailure{Cause: run.Deadlock, Text: "[TMPRL1101] no yield"}
	got := failure.Under("w1", short)
	require.Equal(t, run.ProcessorShortage, got.Cause)
	require.Equal(t, "worker w1 gets 24 % of a processor (throttled in 93 % of the last minute's periods): [TMPRL1101] "+
		"no yield", got.Text)
	require.Equal(t, failure, failure.Under("w1", processor.State{}), "nothing is known")
	failure.Cause = run.Panic
	require.Equal(t, failure, failure.Under("w1", short))
}

func TestShortageIsThatOfTheWorkerThatGetsTheLeast(t *testing.T) {
	t.Parallel()
	of := func(id string, used, throttled float64, live bool) diagnose.Worker {
		return diagnose.Worker{Identity: id, Live: live, Compatible: true,
			Registered: worker.Worker{Processor: processor.State{Used: &used, Throttled: &throttled}}}
	}
	require.Empty(t, diagnose.Shortage(
		[]diagnose.Worker{of("idle", 0, 0, true), {Identity: "unknown", Live: true, Compatible: true}}))
	require.Contains(t, diagnose.Shortage([]diagnose.Worker{
		of("w1", 0.5, 0.9, true), of("w2", 0.24, 0.9, true), of("dead", 0.1, 0.9, false), of("idle", 0, 0, true),
	}), "worker w2 gets 24 % of a processor")
}
