package verdict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
)

// failing are facts about a running run whose task has failed for a cause since then, as the history says.
func failing(cause string, since time.Duration) verdict.Facts {
	f := facts(rows()["running"])
	f.Execution = &verdict.Execution{
		Task: &verdict.Task{Attempt: 5}, Failure: "why", Cause: cause, FailedAt: ago(since), FailedBy: "w1",
	}
	return f
}

// reported adds what the worker of the newest attempt reported.
func reported(f verdict.Facts, failure verdict.Failure) verdict.Facts {
	f.Failure = &failure
	return f
}

func TestOnlyCausesInTheRunArePoison(t *testing.T) {
	t.Parallel()
	for _, cause := range problem.Causes() {
		want := problem.TaskFailing
		if cause == problem.PayloadTooLarge || cause == problem.Deadlock {
			want = problem.Poison
		}
		for age, code := range map[time.Duration]string{
			15*time.Minute - time.Microsecond: problem.TaskFailing, 15 * time.Minute: want, 24 * time.Hour: want,
		} {
			d := verdict.Of(failing(cause, age))
			require.Equal(t, verdict.Give, d.Action)
			require.Equal(t, []string{code, cause}, []string{d.Verdict.Code, d.Verdict.Cause}, "%s for %s", cause, age)
			require.Contains(t, d.Verdict.Detail, "why")
		}
		f := failing(cause, time.Hour)
		f.Foreign = true
		d := verdict.Of(f)
		require.Equal(t, problem.TaskFailing, d.Verdict.Code, "%s at a worker of another program is not the run's", cause)
		if cause != problem.NoAnswer {
			require.Equal(t, problem.ForeignWorker, d.Verdict.Cause)
		}
		f = failing(cause, time.Hour)
		f.Execution, f.Row.StatusAt = nil, ago(time.Hour)
		f.Reported = "PayloadsTooLarge"
		require.Equal(t, verdict.Ask, verdict.Of(reported(f, verdict.Failure{At: ago(time.Second), Text: "why", Cause: problem.Deadlock})).Action,
			"poison takes Temporal's confirmation that the task fails now")
	}
}

func TestAPanicIsPoisonOnTwoBuilds(t *testing.T) {
	t.Parallel()
	panicked := verdict.Failure{At: ago(time.Second), Since: ago(20 * time.Minute), Text: "out of cheese", Cause: problem.Panic, Build: "b"}
	d := verdict.Of(reported(failing(problem.Panic, 20*time.Minute), panicked))
	require.Equal(t, []string{problem.TaskFailing, problem.Panic}, []string{d.Verdict.Code, d.Verdict.Cause})
	require.Contains(t, d.Verdict.Detail, "out of cheese", "the newest failure is shown")

	panicked.OtherBuild = "a"
	require.Equal(t, problem.Poison, verdict.Of(reported(failing(problem.Panic, 20*time.Minute), panicked)).Verdict.Code)
	panicked.Since = ago(14 * time.Minute)
	require.Equal(t, problem.TaskFailing, verdict.Of(reported(failing(problem.Panic, 20*time.Minute), panicked)).Verdict.Code,
		"before that it failed for another cause")
	panicked.Since = ago(20 * time.Minute)
	require.Equal(t, problem.TaskFailing, verdict.Of(reported(failing(problem.Panic, 14*time.Minute), panicked)).Verdict.Code,
		"an earlier failure of the run was over before this one")

	key := verdict.Failure{At: ago(time.Second), Since: ago(time.Second), Text: "opening a payload", Cause: problem.MissingKey}
	d = verdict.Of(reported(failing(problem.Deadlock, time.Hour), key))
	require.Equal(t, []string{problem.TaskFailing, problem.MissingKey}, []string{d.Verdict.Code, d.Verdict.Cause}, "the newest attempt counts")
	old := verdict.Failure{At: ago(2 * time.Hour), Since: ago(2 * time.Hour), Text: "opening a payload", Cause: problem.MissingKey}
	require.Equal(t, problem.Poison, verdict.Of(reported(failing(problem.Deadlock, time.Hour), old)).Verdict.Code, "a failure before this row does not")
}

func TestEachCauseHasItsAdvice(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, cause := range problem.Causes() {
		advice := verdict.Of(failing(cause, time.Minute)).Verdict.Advice
		require.Contains(t, advice, "signalbox")
		require.Empty(t, seen[advice], "%s has the advice of %s", cause, seen[advice])
		seen[advice] = cause
	}
}
