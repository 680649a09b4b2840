package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// second is the first position of a run's second execution.
const second = 1 << 32

func ids(list []run.Run) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.ID
	}
	return out
}

func testOpenRuns(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	var want []string
	for i, status := range run.Statuses() {
		id := fmt.Sprintf("r%d", i)
		insert(t, s, newRun(id, i))
		if status != run.Queued {
			apply(t, s, state(id, 3, status))
		}
		if !status.Terminal() {
			want = append(want, id)
		}
	}
	list, err := s.OpenRuns(ctx, "", 100)
	require.NoError(t, err)
	require.Equal(t, want, ids(list))
	light := get(t, s, want[1])
	light.Input = nil
	require.Equal(t, light, list[1])
	list, err = s.OpenRuns(ctx, want[0], 1)
	require.NoError(t, err)
	require.Equal(t, want[1:2], ids(list))

	late, early := newRun("s1", 5), newRun("s2", 4)
	insert(t, s, late)
	insert(t, s, early)
	insert(t, s, newRun("s3", 4))
	require.NoError(t, s.MarkHandedOver(ctx, "s3", "x", at(4)))
	list, err = s.StartingRuns(ctx, at(4), "", 100)
	require.NoError(t, err)
	require.Equal(t, []string{"r0", "s2"}, ids(list))
	list, err = s.StartingRuns(ctx, at(5), "r0", 100)
	require.NoError(t, err)
	require.Equal(t, []string{"s1", "s2"}, ids(list))

	list, err = s.FindRuns(ctx, []string{"s1", "none", "r7", "s2"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"s1", "r7", "s2"}, ids(list))
	list, err = s.FindRuns(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, list)
}

// actions returns the actions in the audit log for r1, newest first.
func actions(t *testing.T, s Store) []string {
	t.Helper()
	list, err := s.ListAudit(t.Context(), audit.Filter{Subject: "r1", Limit: 100})
	require.NoError(t, err)
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.Action
	}
	return out
}

func testCorrectRun(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 0))
	noted := entry(audit.RunFinish, here, "r1")
	changed, err := s.CorrectRun(ctx, state("r1", 5, run.Running), nil)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, []string{audit.RunStart}, actions(t, s))
	changed, err = s.CorrectRun(ctx, state("r1", 9, run.Completed), &noted)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, run.Completed, get(t, s, "r1").Status)
	for _, id := range []string{"r1", "none"} {
		changed, err = s.CorrectRun(ctx, state(id, 12, run.Failed), &noted)
		require.NoError(t, err)
		require.False(t, changed)
	}
	require.Equal(t, []string{audit.RunFinish, audit.RunStart}, actions(t, s))
	require.NoError(t, s.WriteAudit(ctx, entry(audit.RunReopened, here, "r1")))
	require.Equal(t, []string{audit.RunReopened, audit.RunFinish, audit.RunStart}, actions(t, s))
	evicted := entry(audit.WorkerEvict, here, "r1")
	for range 2 {
		require.NoError(t, s.WriteAuditOnce(ctx, evicted))
	}
	evicted.Time = evicted.Time.Add(time.Millisecond)
	require.NoError(t, s.WriteAuditOnce(ctx, evicted))
	require.Equal(t, []string{audit.WorkerEvict, audit.WorkerEvict, audit.RunReopened, audit.RunFinish, audit.RunStart},
		actions(t, s))
}

// executed is an update of an execution of r1 with the steps up to the given one.
func executed(execution string, position int64, status run.Status, last int64) run.Update {
	u := state("r1", 9, status)
	u.ExecutionID, u.Position = execution, position
	for n := range last {
		u.Steps = append(u.Steps, run.Step{Number: n + 1, Path: execution, Status: "completed", Position: position})
	}
	return u
}

func testFollowExecution(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 0))
	apply(t, s, executed("a", 20, run.Waiting, 2))
	apply(t, s, executed("b", second+20, run.Waiting, 4))
	before, list := get(t, s, "r1"), steps(t, s, "r1")

	// Before the reset is followed, updates of its execution are ignored: both those with lower positions and those
	// with the same number in the chain.
	for _, strange := range []run.Update{executed("c", 30, run.Running, 1), executed("d", second+30, run.Completed, 5)} {
		before.Position = get(t, s, "r1").Position
		require.Empty(t, apply(t, s, strange))
		require.Equal(t, run.Waiting, get(t, s, "r1").Status)
		require.Equal(t, "b", get(t, s, "r1").ExecutionID)
		require.Equal(t, list, steps(t, s, "r1"))
	}
	noted := entry(audit.RunFollowReset, here, "r1")
	followed, err := s.FollowExecution(ctx, executed("c", 12, run.Running, 1), "a", nil, noted)
	require.NoError(t, err)
	require.False(t, followed, "the row shows another one")
	require.Equal(t, before, get(t, s, "r1"))

	followed, err = s.FollowExecution(ctx, executed("c", 12, run.Running, 1), "b", []string{"b", "a"}, noted)
	require.NoError(t, err)
	require.True(t, followed)
	want := before
	want.Status, want.WaitingKind, want.ExecutionID, want.Position, want.Sequence = run.Running, "", "c", 12,
		before.Sequence+1
	require.Equal(t, want, get(t, s, "r1"))
	list = steps(t, s, "r1")
	require.Len(t, list, 1)
	require.Equal(t, []any{"c", want.Sequence}, []any{list[0].Path, list[0].Sequence})
	require.Equal(t, []string{audit.RunFollowReset, audit.RunStart}, actions(t, s))

	// Late updates of replaced executions are ignored, whatever their position is; those of the followed execution
	// apply.
	for _, late := range []run.Update{executed("a", 40, run.Completed, 3), executed("b", second+40, run.Completed, 5)} {
		require.Empty(t, apply(t, s, late))
		require.Equal(t, want, get(t, s, "r1"))
		require.Equal(t, list, steps(t, s, "r1"))
	}
	require.Len(t, apply(t, s, executed("c", 15, run.Waiting, 2)), 1)
	require.Len(t, steps(t, s, "r1"), 2)

	// Again, and this time the execution has ended already.
	followed, err = s.FollowExecution(ctx, executed("e", 9, run.Completed, 1), "c", []string{"c"}, noted)
	require.NoError(t, err)
	require.True(t, followed)
	require.Equal(t, run.Completed, get(t, s, "r1").Status)
	require.False(t, get(t, s, "r1").EndedAt.IsZero())
	for _, u := range []run.Update{executed("b", second+50, run.Failed, 6), executed("c", 50, run.Failed, 6)} {
		apply(t, s, u)
		require.Len(t, steps(t, s, "r1"), 1)
	}
	followed, err = s.FollowExecution(ctx, executed("f", 12, run.Running, 1), "e", nil, noted)
	require.NoError(t, err)
	require.False(t, followed, "an end is final")
	followed, err = s.FollowExecution(ctx, run.Update{RunID: "none", State: &run.State{Status: run.Running}}, "", nil,
		noted)
	require.NoError(t, err)
	require.False(t, followed)
}

func testHome(t *testing.T, open Opener) {
	a, b, ctx := open(t), open(t), t.Context()
	home := func() run.RunsCluster {
		t.Helper()
		h, err := b.RunsCluster(ctx)
		require.NoError(t, err)
		return h
	}
	move := func(from run.ClusterID, to run.RunsCluster) bool {
		t.Helper()
		moved, err := a.MoveRunsCluster(ctx, from, to)
		require.NoError(t, err)
		return moved
	}
	first := run.RunsCluster{
		ClusterID: run.ClusterID{Address: "a:7233", Namespace: "default", NamespaceID: "n1"}, Since: at(1)}
	next := run.RunsCluster{ClusterID: run.ClusterID{Address: "b:7233", Namespace: "other", NamespaceID: "n2"},
		Since: at(2)}
	require.Equal(t, run.RunsCluster{}, home())
	require.False(t, move(first.ClusterID, next), "there is none to move from")
	require.True(t, move(run.ClusterID{}, first))
	require.Equal(t, first, home())
	require.False(t, move(run.ClusterID{}, next), "it is not the first")
	for _, from := range []run.ClusterID{
		{Address: "b:7233", Namespace: "default", NamespaceID: "n1"},
		{Address: "a:7233", Namespace: "other", NamespaceID: "n1"},
		{Address: "a:7233", Namespace: "default", NamespaceID: "n2"},
	} {
		require.False(t, move(from, next), "another process was faster: %v", from)
	}
	require.Equal(t, first, home())
	require.True(t, move(first.ClusterID, next))
	require.Equal(t, next, home())

	known := func() run.Comparisons {
		t.Helper()
		known, err := b.Comparisons(ctx)
		require.NoError(t, err)
		return known
	}
	require.Zero(t, known())
	mark := func(from, until time.Time) bool {
		t.Helper()
		marked, err := a.MarkSearched(ctx, from, until)
		require.NoError(t, err)
		return marked
	}
	require.True(t, mark(time.Time{}, at(5)))
	require.False(t, mark(time.Time{}, at(6)), "another process was faster")
	require.False(t, mark(at(4), at(6)))
	require.True(t, mark(at(5), at(9)))
	require.True(t, mark(at(9), at(7)), "an operator has it searched again")
	require.NoError(t, a.MarkCompared(ctx, at(8)))
	require.Equal(t, run.Comparisons{SearchedUntil: at(7), ComparedAt: at(8)}, known())
	require.NoError(t, a.MarkRestored(ctx, at(12), at(8)))
	require.Equal(t, run.Comparisons{SearchedUntil: at(7), ComparedAt: at(8), RestoredAt: at(12), RestoredTo: at(8)},
		known())
}

// testRestoredRows counts what the audit log has about the time since a backup.
func testRestoredRows(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	rows := func(since time.Time) system.RestoredRows {
		t.Helper()
		found, err := s.RestoredRows(ctx, since)
		require.NoError(t, err)
		return found
	}
	require.Zero(t, rows(at(1)))
	insert(t, s, newRun("r1", 3))
	insert(t, s, newRun("r2", 5))
	for n, action := range []string{
		audit.RunAdopt, audit.RunAdopt, audit.RunExecutionMissing, audit.RunAdopt, audit.RunCancel} {
		e := entry(action, here, "r1")
		e.Time = at(n)
		require.NoError(t, s.WriteAudit(ctx, e))
	}
	require.Equal(t, system.RestoredRows{Newest: at(5)}, rows(time.Time{}), "no restore was found")
	require.Equal(t, system.RestoredRows{Newest: at(5), Adopted: 2, Missing: 1}, rows(at(1)))
	require.Equal(t, system.RestoredRows{Newest: at(5), Adopted: 1}, rows(at(3)))
	stuck := verdictOf(run.TaskFailing)
	stuck.Cause = run.PayloadMissing
	_, err := s.Verdicts().ChangeVerdicts(ctx, here, at(9),
		[]diagnose.Change{{RunID: "r1", Sequence: get(t, s, "r1").Sequence, To: stuck}})
	require.NoError(t, err)
	list, err := s.FindRuns(ctx, []string{"r1"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, run.PayloadMissing, list[0].Stuck.Cause,
		"the reconciler does not compare its row with a history that cannot be read")
}

// testLeftRuns adopts another Temporal, and returns to the first.
func testLeftRuns(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	a := run.RunsCluster{ClusterID: run.ClusterID{Address: "a:7233", Namespace: "default", NamespaceID: "n1"},
		Since: at(1)}
	b := run.RunsCluster{ClusterID: run.ClusterID{Address: "b:7233", Namespace: "default", NamespaceID: "n2"},
		Since: at(2)}
	opened := func() map[string]int64 {
		t.Helper()
		n, err := s.OpenInCluster(ctx)
		require.NoError(t, err)
		return n
	}
	left := func() map[string]run.ClusterID {
		t.Helper()
		list, err := s.LeftRuns(ctx)
		require.NoError(t, err)
		return list
	}
	claim := func(from, to run.RunsCluster) bool {
		t.Helper()
		claimed, err := s.ClaimRuns(ctx, from.ClusterID, to)
		require.NoError(t, err)
		return claimed
	}
	adopt := func(from, to run.RunsCluster) (map[string]int64, bool) {
		t.Helper()
		n, adopted, err := s.AdoptCluster(ctx, from.ClusterID, to, entry(audit.SystemAdoptTemporal, "", to.Address))
		require.NoError(t, err)
		return n, adopted
	}
	require.True(t, claim(run.RunsCluster{}, a))
	require.False(t, claim(run.RunsCluster{}, b), "it is not the first")
	queued := newRun("queued", 1)
	queued.QueuedReason, queued.ExpiresAt = run.QueuedEngine, at(9)
	_, _, err := s.EnqueueRun(ctx, queued, 10, entry(audit.RunStart, here, "queued"))
	require.NoError(t, err)
	insert(t, s, newRun("ended", 2))
	apply(t, s, state("ended", 3, run.Completed))
	require.Empty(t, opened(), "neither has an open run in Temporal")
	require.True(t, claim(a, b))
	require.True(t, claim(b, a))

	insert(t, s, newRun("starting", 3))
	insert(t, s, newRun("waiting", 4))
	apply(t, s, state("waiting", 5, run.Waiting))
	require.Equal(t, map[string]int64{here: 2}, opened())
	require.False(t, claim(a, b))
	_, adopted := adopt(b, a)
	require.False(t, adopted, "it is not the recorded one")
	require.Empty(t, left())
	n, adopted := adopt(a, b)
	require.True(t, adopted)
	require.Equal(t, map[string]int64{here: 2}, n)
	require.Empty(t, opened())
	require.Equal(t, map[string]run.ClusterID{"starting": a.ClusterID, "waiting": a.ClusterID}, left())
	written, err := s.ListAudit(ctx, audit.Filter{Action: audit.SystemAdoptTemporal, Limit: 10})
	require.NoError(t, err)
	require.Len(t, written, 1, "an adoption that changed nothing is not written")
	in, err := s.LeftIn(ctx, "waiting")
	require.NoError(t, err)
	require.Equal(t, a.ClusterID, in)
	in, err = s.LeftIn(ctx, "queued")
	require.NoError(t, err)
	require.Zero(t, in)
	candidates, err := s.Verdicts().Left(ctx, 10)
	require.NoError(t, err)
	require.Len(t, candidates, 2)
	require.Equal(t, []any{"starting", a.ClusterID, run.Queued},
		[]any{candidates[0].ID, candidates[0].LeftIn, candidates[0].Status})
	require.Equal(t, []any{"waiting", a.ClusterID, run.Waiting},
		[]any{candidates[1].ID, candidates[1].LeftIn, candidates[1].Status})

	// A run of the adopted one is left there in its turn, and those of the first continue.
	insert(t, s, newRun("later", 6))
	require.Equal(t, map[string]int64{here: 1}, opened())
	require.False(t, claim(b, a))
	n, adopted = adopt(b, a)
	require.True(t, adopted)
	require.Equal(t, map[string]int64{here: 1}, n)
	require.Equal(t, map[string]run.ClusterID{"later": b.ClusterID}, left())
	require.Equal(t, map[string]int64{here: 2}, opened())
	moved, err := s.MoveRunsCluster(ctx, a.ClusterID, b)
	require.NoError(t, err)
	require.True(t, moved)
	require.Empty(t, left())

	// Runs in a Temporal that has lost its data are not left there: they are lost.
	_, adopted = adopt(b, a)
	require.True(t, adopted)
	_, adopted = adopt(a, b)
	require.True(t, adopted)
	apply(t, s, state("starting", 7, run.Completed))
	require.Empty(t, left(), "the others have returned")
	_, adopted = adopt(b, a)
	require.True(t, adopted)
	require.Len(t, left(), 2)
	b.NamespaceID = "n4"
	_, adopted = adopt(a, b)
	require.True(t, adopted)
	require.Empty(t, left())
}

func testWorkerPlaces(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	beat := func(id string, f worker.Fingerprint) {
		t.Helper()
		require.NoError(t, s.BeatWorker(ctx, worker.Worker{ServerID: id, StartedAt: at(1), Fingerprint: f}, time.Hour))
	}
	clusters := func() []run.ClusterID {
		t.Helper()
		list, err := s.WorkerClusters(ctx)
		require.NoError(t, err)
		return list
	}
	require.Empty(t, clusters())
	beat("host-1", worker.Fingerprint{Contract: "abc", Address: "b:7233", Namespace: "default", NamespaceID: "n2"})
	beat("host-2", worker.Fingerprint{Contract: "abc", Address: "a:7233", Namespace: "default", NamespaceID: "n1"})
	beat("host-3", worker.Fingerprint{Contract: "abd", Address: "a:7233", Namespace: "default", NamespaceID: "n1"})
	beat("host-4", worker.Fingerprint{Contract: "abc", Address: "c:7233", Namespace: "default"})
	require.Equal(t, []run.ClusterID{
		{Address: "a:7233", Namespace: "default", NamespaceID: "n1"},
		{Address: "b:7233", Namespace: "default", NamespaceID: "n2"},
	}, clusters(), "each once, and none that was never reached")
	require.NoError(t, s.LeaveWorker(ctx, "host-1"))
	require.Len(t, clusters(), 1)
}
