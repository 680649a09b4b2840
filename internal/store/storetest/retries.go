package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// attempts returns so many failed attempts.
func attempts(n int) (list []run.Attempt) {
	for i := range n {
		ended := at(i + 2)
		list = append(list, run.Attempt{Number: i + 1, StartedAt: at(i + 1), EndedAt: &ended,
			Error: &run.Error{Type: "t", Status: 503, Title: "away", Detail: "no answer"}})
	}
	return list
}

// retrying is an update of a run that waits for the next attempt of a try.
func retrying(id string, position int64, failed int) run.Update {
	u := state(id, position, run.Waiting)
	u.State.WaitingKind = run.WaitingRetry
	u.Steps = []run.Step{{
		Number: 1, Path: "/do/0/charge", Pointer: "/do/0/charge", Task: "charge", Kind: "try", Status: "waiting",
		WaitingKind: run.WaitingRetry, WaitUntil: at(600), StartedAt: at(1), Position: position, Attempts: attempts(failed),
	}}
	return u
}

// Runs that attempt a task again are selected and grouped, until the task or the run ends.
func testRetries(t *testing.T, open Opener) {
	s := open(t)
	for i, id := range []string{"r1", "r2", "r3", "r4", "calm"} {
		insert(t, s, newRun(id, i))
	}
	apply(t, s, retrying("r1", 5, 2), retrying("r2", 5, 4), retrying("r3", 5, 3), retrying("r4", 5, 9), state("calm", 5, run.Running))
	again := retrying("r3", 6, 3) // its fourth attempt is in progress
	again.State = state("r3", 6, run.Running).State
	again.Steps[0].Status, again.Steps[0].WaitingKind, again.Steps[0].WaitUntil = "running", "", time.Time{}
	again.Steps[0].Attempts = append(again.Steps[0].Attempts, run.Attempt{Number: 4, StartedAt: at(9)})
	paused := retrying("r4", 6, 9)
	paused.State.WaitingKind = run.WaitingPaused
	apply(t, s, again, paused)

	list := func(task string) (ids []string) {
		t.Helper()
		f := run.Filter{Project: here, Retrying: task, Limit: 9}
		require.True(t, f.BeyondRow())
		ids = selected(t, s, f)
		counted, err := s.CountRuns(t.Context(), f)
		require.NoError(t, err)
		total := int64(0)
		for _, n := range counted.Statuses {
			total += n
		}
		require.Equal(t, int64(len(ids)), total, task)
		f.IDs = []string{"r1", "r2", "r3", "r4", "calm"}
		require.Equal(t, ids, selected(t, s, f), "%s among others", task)
		return ids
	}
	groups := func(attempts int, before time.Time) []problem.RetryingGroup {
		t.Helper()
		found, err := s.Problems().RetryingGroups(t.Context(), []string{here}, attempts, before)
		require.NoError(t, err)
		return found
	}
	for _, task := range []string{run.AnyTask, "charge", "/do/0/charge"} {
		require.Equal(t, []string{"r1", "r2", "r3"}, list(task), task)
	}
	require.Empty(t, list("other"))
	require.Empty(t, groups(5, at(0)), "neither so many attempts nor so long")
	group := problem.RetryingGroup{Project: here, Workflow: hello, Task: "charge", Pointer: "/do/0/charge", Count: 3,
		Attempts: 4, Since: at(1), Last: at(4), Error: &run.Error{Type: "t", Status: 503, Title: "away", Detail: "no answer"}}
	require.Equal(t, []problem.RetryingGroup{group}, groups(4, at(0)), "so many attempts")
	require.Equal(t, []problem.RetryingGroup{group}, groups(5, at(1)), "so long")
	samples, err := s.Problems().Samples(t.Context(),
		problem.Finding{Kind: problem.Retrying, Project: here, Workflow: hello, Pointer: "/do/0/charge"}, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"r3", "r2"}, samples)

	done := retrying("r1", 7, 2)
	done.State = state("r1", 7, run.Running).State
	done.Steps[0].Status, done.Steps[0].WaitingKind, done.Steps[0].EndedAt = "completed", "", at(7)
	canceled := state("r2", 7, run.Canceled)
	terminated := state("r3", 7, run.Terminated)
	terminated.State.EndsSteps = true
	apply(t, s, done, canceled, terminated)
	require.Empty(t, list(run.AnyTask))
	require.Empty(t, groups(1, at(99)))
}
