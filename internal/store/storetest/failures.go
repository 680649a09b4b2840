package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func noAnswer(title string) *run.Error {
	return &run.Error{Type: "communication", Status: 503, Title: title, Detail: "why", Instance: "/do/0/reserve"}
}

// failureGroup returns the key of the runs of newRun that fail with noAnswer.
func failureGroup() string {
	r := newRun("", 1)
	r.Status, r.Error = run.Failed, noAnswer("no answer for order 1")
	return run.FailureGroup(r)
}

// end ends a run with an error.
func end(t testing.TB, s Store, id string, status run.Status, p *run.Error) {
	t.Helper()
	u := state(id, 1, status)
	u.State.Error = p
	apply(t, s, u)
}

func testFailureGroups(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	require.NoError(t, s.CreateProject(ctx, project.Project{Name: "other", CreatedAt: at(0)},
		entry(audit.ProjectCreate, "other", "other")))
	for n, id := range []string{"failed", "late", "missing", "queued", "completed", "elsewhere", "open"} {
		r := newRun(id, n)
		if id == "queued" {
			r.QueuedReason, r.ExpiresAt = run.QueuedEngine, at(9)
		}
		insert(t, s, r)
	}
	foreign := newRun("foreign", 9)
	foreign.Project = "other"
	insert(t, s, foreign)
	replay := newRun("replay", 10)
	replay.ReplayOf = "failed"
	insert(t, s, replay)

	end(t, s, "failed", run.Failed, noAnswer("no answer for order 4711"))
	end(t, s, "late", run.TimedOut, noAnswer("no answer for order 12"))
	end(t, s, "completed", run.Completed, nil)
	end(t, s, "elsewhere", run.Failed, noAnswer("no such order"))
	end(t, s, "foreign", run.Failed, noAnswer("no answer for order 5"))
	finished, err := s.FinishMissing(ctx, "missing", run.Failed, noAnswer("no answer for order 6"), at(9),
		entry(audit.RunFinish, here, "missing"))
	require.NoError(t, err)
	require.True(t, finished)
	queued := run.Run{ID: "queued", Status: run.Failed, EndedAt: at(9), Error: noAnswer("no answer for order 7")}
	finished, err = s.FinishQueued(ctx, queued, entry(audit.RunQueueExpired, here, "queued"))
	require.NoError(t, err)
	require.True(t, finished)

	listed := func(change func(*run.Filter)) (ids []string) {
		t.Helper()
		f := run.Filter{Project: here, FailureGroup: failureGroup(), OldestFirst: true, Limit: 10}
		change(&f)
		list, err := s.ListRuns(ctx, f)
		require.NoError(t, err)
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	all := []string{"failed", "late", "missing", "queued"}
	require.Equal(t, all, listed(func(*run.Filter) {}))
	require.Equal(t, []string{"queued", "missing"}, listed(func(f *run.Filter) { f.OldestFirst, f.Limit = false, 2 }))
	require.Equal(t, all[2:], listed(func(f *run.Filter) { f.After = &run.Cursor{CreatedAt: at(1), ID: "late"} }))
	require.Equal(t, []string{"late"}, listed(func(f *run.Filter) {
		f.Statuses = []run.Status{run.TimedOut, run.Completed}
	}))
	require.Equal(t, all[1:], listed(func(f *run.Filter) { f.NotReplayed = true }))
	require.Equal(t, []string{"missing"}, listed(func(f *run.Filter) { f.Text = "mi" }))
	require.Equal(t, []string{"missing"}, listed(func(f *run.Filter) { f.Text = "request-mi" }))
	require.Equal(t, all, listed(func(f *run.Filter) {
		f.Workflow, f.Version, f.Trigger = hello, "1.0.0", run.TriggerAPI
	}))
	require.Empty(t, listed(func(f *run.Filter) { f.Workflow = "demo/other" }))
	require.Equal(t, []string{"late", "missing"}, listed(func(f *run.Filter) { f.Since, f.Until = at(1), at(3) }))
	require.Empty(t, listed(func(f *run.Filter) { f.Stuck = []string{run.AnyCode} }), "stuck runs have not ended")
	require.Equal(t, []string{"foreign"}, listed(func(f *run.Filter) { f.Project = "other" }))
	require.Empty(t, listed(func(f *run.Filter) { f.FailureGroup = "0000000000000000" }))

	counts, err := s.CountRuns(ctx, run.Filter{Project: here, Workflow: hello, FailureGroup: failureGroup()})
	require.NoError(t, err)
	require.Equal(t, run.Counts{Statuses: map[string]int64{"failed": 3, "timed_out": 1}, Stuck: map[string]int64{}},
		counts)
	counts, err = s.CountRuns(ctx, run.Filter{Project: here, FailureGroup: failureGroup(), Since: at(2)})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"failed": 2}, counts.Statuses)
	states, err := s.Batches().RunStates(ctx, batch.Batch{
		Project: here, CreatedAt: at(99), Filter: &run.Filter{FailureGroup: failureGroup(), NotReplayed: true},
	}, nil)
	require.NoError(t, err)
	var total int64
	for _, state := range states {
		total += state.Count
	}
	require.Equal(t, int64(3), total)
}
