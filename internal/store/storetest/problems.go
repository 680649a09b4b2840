package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func testProblems(t *testing.T, open Opener) {
	s := open(t)
	require.NoError(t, s.CreateProject(t.Context(), project.Project{Name: "other", CreatedAt: at(0)},
		entry(audit.ProjectCreate, "other", "other")))
	t.Run("found", func(t *testing.T) { testFindProblems(t, s) })
	t.Run("recorded", func(t *testing.T) { testRecordProblems(t, s) })
}

func testFindProblems(t *testing.T, s Store) {
	p, ctx, both := s.Problems(), t.Context(), []string{here, "other"}
	for n, id := range []string{"s1", "s2", "s3", "moved", "f1", "f2", "old", "fine"} {
		insert(t, s, newRun(id, n))
	}
	replay := newRun("replay", 20)
	replay.ReplayOf = "f1"
	insert(t, s, replay)
	for _, id := range []string{"s1", "s2", "moved"} {
		giveVerdict(t, s, here, id, run.NoPoller)
	}
	giveVerdict(t, s, here, "s3", run.Backlog)
	end(t, s, "f1", run.Failed, noAnswer("no answer for order 1"))
	end(t, s, "f2", run.TimedOut, noAnswer("no answer for order 2"))
	end(t, s, "moved", run.Completed, nil)
	end(t, s, "fine", run.Completed, nil)

	stuck, err := p.StuckGroups(ctx, both)
	require.NoError(t, err)
	group := problem.StuckGroup{
		Project: here, Code: run.Backlog, Causes: []string{"cause"}, Count: 1, Since: at(2), CheckedAt: at(9),
		Detail: "no worker\uFFFD polls", Advice: "start a worker",
	}
	second := group
	second.Code, second.Count = run.NoPoller, 2
	require.Equal(t, []problem.StuckGroup{group, second}, stuck, "a verdict on a run that went on is void")
	samples, err := p.Samples(ctx, problem.Finding{Kind: problem.Stuck, Project: here, Code: run.NoPoller}, 5)
	require.NoError(t, err)
	require.Equal(t, []string{"s2", "s1"}, samples)

	ended := get(t, s, "f1").EndedAt
	failed, more, err := p.FailureGroups(ctx, both, ended.Add(-time.Second), 10)
	require.NoError(t, err)
	require.Len(t, failed, 1)
	g := failed[0]
	require.Equal(t, []any{here, failureGroup(), int64(2), int64(1), "f2", hello, "1.0.0", "no answer for order 2"},
		[]any{g.Project, g.Key, g.Count, g.NotReplayed, g.Newest.ID, g.Newest.Workflow, g.Newest.Version,
			g.Newest.Error.Title})
	require.Equal(t, map[int64]int64{ended.Unix() / 3600: 2}, g.Hours)
	require.Equal(t, ended, g.First)
	require.False(t, more[here])
	_, more, err = p.FailureGroups(ctx, both, ended.Add(-time.Second), 1)
	require.NoError(t, err)
	require.True(t, more[here], "there are more failures than are read")
	failed, _, err = p.FailureGroups(ctx, both, ended.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Empty(t, failed)
	samples, err = p.Samples(ctx, problem.Finding{Kind: problem.Failure, Project: here, FailureGroup: failureGroup()}, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"f2"}, samples)

	busy, err := p.OpenRuns(ctx, both)
	require.NoError(t, err)
	require.Equal(t, []string{here}, busy)
	dead, err := p.DeadDeliveries(ctx, both)
	require.NoError(t, err)
	require.Empty(t, dead)
	stuck, err = p.StuckGroups(ctx, []string{"other"})
	require.NoError(t, err)
	require.Empty(t, stuck)
}

func testRecordProblems(t *testing.T, s Store) {
	p, ctx := s.Problems(), t.Context()
	only := func(projects ...string) (list []problem.Record) {
		t.Helper()
		list, err := p.Problems(ctx, projects)
		require.NoError(t, err)
		return list
	}
	found := problem.Record{
		Finding: problem.Finding{
			ID: "stuck.other.NO_POLLER", Kind: problem.Stuck, Code: run.NoPoller, Project: "other", Title: "no worker",
			Count: 3},
		FirstSeen: at(1), LastSeen: at(1),
	}
	record := func(r problem.Recording) {
		t.Helper()
		require.NoError(t, p.Record(ctx, []problem.Recording{r}))
	}
	record(problem.Recording{Record: found})
	require.Equal(t, []problem.Record{found}, only("other", ""))
	require.Empty(t, only(here))

	handled := found
	handled.Revision, handled.AcknowledgedAt, handled.Acknowledger, handled.Owner, handled.Note = 1, at(2), "ada", "eve",
		"known"
	handle := func(r problem.Record, before int64, absent bool) bool {
		t.Helper()
		written, err := p.Handle(ctx, r, before, absent, entry(audit.ProblemAcknowledge, "other", r.ID))
		require.NoError(t, err)
		return written
	}
	require.False(t, handle(handled, 0, true), "there is a record")
	require.False(t, handle(handled, 7, false), "the record has another revision")
	require.True(t, handle(handled, 0, false))
	require.False(t, handle(handled, 0, false), "another operator was faster")
	require.Equal(t, []problem.Record{handled}, only("other"))
	require.Len(t, audited(t, s, handled.ID), 1)

	found.Count = 9
	record(problem.Recording{Record: found})
	require.Equal(t, []problem.Record{handled}, only("other"), "the recorder has read an older revision")
	seen := handled
	seen.Count, seen.LastSeen, seen.ResolvedAt, seen.Owner = 9, at(5), at(5), "sam"
	record(problem.Recording{Record: seen})
	seen.Owner = "eve"
	require.Equal(t, []problem.Record{seen}, only("other"), "what operators did stays")

	again := problem.Record{Finding: found.Finding, FirstSeen: at(99), LastSeen: at(99), Revision: 2}
	record(problem.Recording{Record: again, Again: true})
	require.Equal(t, []problem.Record{again}, only("other"))
	record(problem.Recording{Record: again, Gone: true})
	require.Len(t, only("other"), 1, "it exists")
	again.ResolvedAt = at(100)
	record(problem.Recording{Record: again})
	record(problem.Recording{Record: again, Gone: true})
	require.Empty(t, only("other"))

	_, err := p.Handle(ctx, problem.Record{Finding: found.Finding, Handling: problem.Handling{Note: "a\x00"}}, 0, true,
		entry(audit.ProblemUpdate, "other", "x"))
	require.ErrorContains(t, err, "note holds a NUL character")
}
