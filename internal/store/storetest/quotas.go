package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func setQuota(t testing.TB, s Store, q quota.Quota) quota.Usage {
	t.Helper()
	u, err := s.Quotas().SetQuota(t.Context(), here, q, entry(audit.QuotaSet, here, here))
	require.NoError(t, err)
	return u
}

func admit(t testing.TB, s Store, most int) []string {
	t.Helper()
	ids, err := s.Quotas().Admit(t.Context(), here, most, at(50))
	require.NoError(t, err)
	return ids
}

// queueReasons returns why runs are queued, with their positions if they wait for a slot: "admission 1".
func queueReasons(t testing.TB, s Store, ids ...string) []string {
	t.Helper()
	var all []string
	for _, id := range ids {
		r := get(t, s, id)
		switch {
		case r.QueuePosition > 0:
			all = append(all, fmt.Sprintf("%s %d", r.QueuedReason, r.QueuePosition))
		case r.Status == run.Queued:
			all = append(all, r.QueuedReason)
		default:
			all = append(all, string(r.Status))
		}
	}
	return all
}

func testQuota(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	u, err := s.Quotas().GetQuota(ctx, here)
	require.NoError(t, err)
	require.Equal(t, quota.Usage{}, u)
	want := quota.Quota{ConcurrentRuns: 3, Steps: 100, Period: time.Minute}
	require.Equal(t, want, setQuota(t, s, want).Quota)
	want = quota.Quota{ConcurrentRuns: 1}
	require.Equal(t, want, setQuota(t, s, want).Quota)
	u, err = s.Quotas().GetQuota(ctx, here)
	require.NoError(t, err)
	require.Equal(t, quota.Usage{Quota: want}, u)
	require.Len(t, audited(t, s, here), 2)
	_, err = s.Quotas().GetQuota(ctx, "none")
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	_, err = s.Quotas().SetQuota(ctx, "none", want, entry(audit.QuotaSet, "none", "none"))
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
}

// A row that waits for a slot in a project that never had a limit, however it was created, blocks no other run.
func testQueueWithoutLimit(t *testing.T, open Opener) {
	s := open(t)
	waiting := newRun("r1", 1)
	waiting.QueuedReason = run.QueuedAdmission
	insert(t, s, waiting)
	require.Equal(t, run.QueuedStarting, insert(t, s, newRun("r2", 2)).QueuedReason)
}

func testSlots(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("before", 0))
	setQuota(t, s, quota.Quota{ConcurrentRuns: 2})
	insert(t, s, newRun("a", 1))
	require.Equal(t, []string{"starting", "starting"}, queueReasons(t, s, "before", "a"))
	// The clocks of processes differ: the order is that of acceptance.
	for i, id := range []string{"d", "c", "b"} {
		r := newRun(id, 9-i)
		stored := insert(t, s, r)
		require.Equal(t, []any{run.QueuedAdmission, int64(i + 1)}, []any{stored.QueuedReason, stored.QueuePosition})
		require.Equal(t, stored, get(t, s, id))
	}
	again := newRun("again", 20)
	again.RequestID = "request-c"
	stored, made, err := s.InsertRun(ctx, again, entry(audit.RunStart, here, "again"))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, "c", stored.ID)

	// An awaited child uses its parent's slot, and a run that is in Temporal needs none.
	child, adopted := newRun("child", 1), newRun("adopted", 1)
	child.Trigger, child.Parent = run.TriggerParent, run.Parent{RunID: "a", Path: "/do/0", Depth: 1, Awaited: true}
	adopted.QueuedReason = run.QueuedWorker
	insert(t, s, child)
	require.Equal(t, []string{"starting"}, queueReasons(t, s, "child"))
	require.Empty(t, admit(t, s, 10))
	apply(t, s, state("child", 1, run.Running), state("before", 1, run.Completed))
	u, err := s.Quotas().GetQuota(ctx, here)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 3}, []int64{u.Admitted, u.Queued})

	// A slot is free, and new runs do not overtake queued ones.
	insert(t, s, newRun("e", 1))
	require.Equal(t, []string{"admission 1", "admission 2", "admission 3", "admission 4"},
		queueReasons(t, s, "d", "c", "b", "e"))
	require.Equal(t, []string{"d"}, admit(t, s, 10))
	d := get(t, s, "d")
	require.Equal(t, []any{run.QueuedStarting, at(50), int64(2), int64(0)},
		[]any{d.QueuedReason, d.StatusAt, d.Sequence, d.QueuePosition})
	require.Empty(t, admit(t, s, 10))
	removed, err := s.RemoveUnstarted(ctx, "d", entry(audit.RunStartRefused, here, "d"))
	require.NoError(t, err)
	require.False(t, removed, "it was disclosed to its caller")

	// A run that could not be started returns to its previous position.
	returned, err := s.Quotas().ReturnAdmitted(ctx, "d", at(51))
	require.NoError(t, err)
	require.True(t, returned)
	require.Equal(t, []string{"admission 1", "admission 2"}, queueReasons(t, s, "d", "c"))
	for _, id := range []string{"d", "a", "none"} {
		returned, err = s.Quotas().ReturnAdmitted(ctx, id, at(52))
		require.NoError(t, err)
		require.False(t, returned, id)
	}

	// A lower limit stops no run, an adopted run uses a slot, and a higher limit, or none, admits the queued runs in
	// order.
	insert(t, s, adopted)
	setQuota(t, s, quota.Quota{ConcurrentRuns: 1})
	require.Empty(t, admit(t, s, 10))
	setQuota(t, s, quota.Quota{ConcurrentRuns: 3})
	require.Equal(t, []string{"d"}, admit(t, s, 10))
	setQuota(t, s, quota.Quota{})
	insert(t, s, newRun("f", 1))
	require.Equal(t, []string{"admission 4"}, queueReasons(t, s, "f"))
	require.Equal(t, []string{"c", "b"}, admit(t, s, 2))
	require.Equal(t, []string{"e", "f"}, admit(t, s, 10))
	insert(t, s, newRun("g", 1))
	require.Equal(t, []string{"starting"}, queueReasons(t, s, "g"))
	queues, err := s.Quotas().AdmissionQueues(ctx)
	require.NoError(t, err)
	require.Empty(t, queues)
}

// A child that is not awaited needs a slot like any other run: it continues after its parent has ended.
func testSlotsOfChildren(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	child := func(id, parent string, awaited bool) run.Run {
		r := newRun(id, 1)
		r.Trigger, r.Parent = run.TriggerParent,
			run.Parent{RunID: parent, Path: "/do/0", Depth: 1, Key: "key-" + id, Awaited: awaited}
		return r
	}
	used := func() []int64 {
		u, err := s.Quotas().GetQuota(ctx, here)
		require.NoError(t, err)
		return []int64{u.Admitted, u.Queued}
	}
	insert(t, s, newRun("parent", 0))
	insert(t, s, child("before", "parent", false))
	insert(t, s, child("awaited", "parent", true))
	require.Equal(t, []string{"starting", "starting", "starting"}, queueReasons(t, s, "parent", "before", "awaited"))
	setQuota(t, s, quota.Quota{ConcurrentRuns: 3})
	require.Equal(t, []int64{2, 0}, used(), "also those that were there before the limit")

	insert(t, s, child("placed", "parent", false))
	insert(t, s, child("waits", "parent", false))
	insert(t, s, child("of it", "placed", true))
	require.Equal(t, []string{"starting", "admission 1", "starting"}, queueReasons(t, s, "placed", "waits", "of it"))
	require.Equal(t, []int64{3, 1}, used())
	require.Empty(t, admit(t, s, 10))
	apply(t, s, state("parent", 1, run.Completed), state("placed", 1, run.Running))
	require.Equal(t, []int64{2, 1}, used(), "it has its own slot without its parent")
	require.Equal(t, []string{"waits"}, admit(t, s, 10))
	require.Equal(t, []int64{3, 0}, used())

	// A child whose start was refused, and that was not disclosed, is removed like any other run.
	removed, err := s.RemoveUnstarted(ctx, "before", entry(audit.RunStartRefused, here, "before"))
	require.NoError(t, err)
	require.True(t, removed)
	require.Equal(t, []int64{2, 0}, used())
}

func testAdmissionQueueEnds(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	setQuota(t, s, quota.Quota{ConcurrentRuns: 1})
	for i, id := range []string{"a", "b", "c", "d"} {
		insert(t, s, newRun(id, i))
	}
	queued := queuedRun("e", 5)
	require.Equal(t, int64(4), enqueue(t, s, queued).QueuePosition)
	require.Equal(t, []string{"admission 4"}, queueReasons(t, s, "e"))
	require.Zero(t, get(t, s, "e").ExpiresAt)
	requireCount(t, s, 0, 0)
	finished, err := s.FinishQueued(ctx, run.Run{
		ID: "c", Status: run.Canceled, CancelRequested: true, CancelReason: "enough", EndedAt: at(8),
	}, entry(audit.RunCancel, here, "c"))
	require.NoError(t, err)
	require.True(t, finished)
	require.Equal(t, []string{"starting", "admission 1", "canceled", "admission 2", "admission 3"},
		queueReasons(t, s, "a", "b", "c", "d", "e"))
	finished, err = s.FinishMissing(ctx, "a", run.Failed, nil, at(9), entry(audit.RunExecutionMissing, here, "a"))
	require.NoError(t, err)
	require.True(t, finished)
	require.Equal(t, []string{"b"}, admit(t, s, 1))
	queues, err := s.Quotas().AdmissionQueues(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{here: 2}, queues)
	held, err := s.Quotas().HeldUp(ctx)
	require.NoError(t, err)
	require.Equal(t, []quota.Held{{Project: here, Queued: 2}}, held)
}

// testSlotsAtOnce has many callers in several processes compete for a few slots. Several processes then admit further
// runs.
func testSlotsAtOnce(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	const callers, limit = 40, 7
	setQuota(t, stores[0], quota.Quota{ConcurrentRuns: limit})
	var wg sync.WaitGroup
	got := make([]run.Run, callers)
	for i := range callers {
		wg.Go(func() {
			id := fmt.Sprintf("r%02d", i)
			var err error
			if got[i], _, err = stores[i%2].InsertRun(t.Context(), newRun(id, i), entry(audit.RunStart, here, id)); err != nil {
				t.Errorf("insert %s: %v", id, err)
			}
		})
	}
	wg.Wait()
	var placed, waits []string
	slices.SortFunc(got, func(a, b run.Run) int { return int(a.QueuePosition - b.QueuePosition) })
	for _, r := range got {
		if r.QueuedReason == run.QueuedStarting {
			placed = append(placed, r.ID)
		} else {
			waits = append(waits, r.ID)
			require.Equal(t, int64(len(waits)), r.QueuePosition)
		}
	}
	require.Len(t, placed, limit)
	for i, id := range placed[:5] {
		apply(t, stores[0], state(id, int64(i+1), run.Completed))
	}
	admitted := make([][]string, 4)
	for i := range admitted {
		wg.Go(func() {
			var err error
			if admitted[i], err = stores[i%2].Quotas().Admit(t.Context(), here, 3, at(60)); err != nil {
				t.Errorf("admit: %v", err)
			}
		})
	}
	wg.Wait()
	require.ElementsMatch(t, waits[:5], slices.Concat(admitted...))
}

// grant requests steps for a run.
func grant(t testing.TB, s Store, id string, granted, entered int64) quota.Grant {
	t.Helper()
	g, err := s.Quotas().GrantSteps(t.Context(),
		quota.Request{Project: here, RunID: id, Granted: granted, Entered: entered})
	require.NoError(t, err)
	return g
}

// waitsForSteps returns an update after which a run waits for steps, with the number of steps it has entered.
func waitsForSteps(id string, position, steps int64) run.Update {
	u := state(id, position, run.Waiting)
	u.State.WaitingKind, u.State.StepsTotal = run.WaitingQuota, steps
	return u
}

func testStepsOfAPeriod(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	require.False(t, insert(t, s, newRun("before", 0)).Metered)
	free := grant(t, s, "before", 0, 0)
	require.Positive(t, free.Steps)
	require.True(t, free.Until.After(time.Now()))

	q := quota.Quota{Steps: 50, Period: quota.LongestPeriod}
	setQuota(t, s, q)
	for i, id := range []string{"a", "b"} {
		require.True(t, insert(t, s, newRun(id, i)).Metered)
		require.True(t, get(t, s, id).Metered)
	}
	require.False(t, get(t, s, "before").Metered)
	g := grant(t, s, "a", 0, 0)
	length := q.Period.Microseconds()
	next := time.UnixMicro((time.Now().UnixMicro()/length + 1) * length).UTC()
	require.Equal(t, quota.Grant{Steps: 2, Until: next, Used: 2, Limit: 50}, g)
	require.Equal(t, g, grant(t, s, "a", 0, 0), "an answer that was lost")
	require.Equal(t, quota.Grant{Steps: 2, Until: next, Used: 4, Limit: 50}, grant(t, s, "a", 2, 2))
	for i := range int64(23) {
		require.EqualValues(t, 2, grant(t, s, "b", 2*i, 2*i).Steps)
	}
	require.Equal(t, quota.Grant{Until: next, Used: 50, Limit: 50}, grant(t, s, "a", 4, 4))
	require.Zero(t, grant(t, s, "b", 46, 46).Steps)

	apply(t, s, waitsForSteps("a", 2, 4), waitsForSteps("b", 3, 46))
	require.Equal(t, &run.QuotaUsage{Used: 50, Limit: 50, ResetAt: next}, get(t, s, "a").Quota)
	u, err := s.Quotas().GetQuota(ctx, here)
	require.NoError(t, err)
	require.Equal(t, []any{int64(50), int64(0), int64(2), next}, []any{u.Used, u.Left, u.Waiting, u.Next})
	ids, err := s.Quotas().WaitingForSteps(ctx, here, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, ids)

	// One run is resumed: it gets as many steps as the limit once more, and the other one none.
	for id, waits := range map[string]bool{"a": true, "before": false, "none": false} {
		resumed, err := s.Quotas().ResumeSteps(ctx, here, id)
		require.NoError(t, err)
		require.Equal(t, waits, resumed, id)
	}
	resumed := func() []string {
		ids, err := s.Quotas().ResumedSteps(ctx, here, 10)
		require.NoError(t, err)
		return ids
	}
	require.Equal(t, []string{"a"}, resumed())
	require.Equal(t, quota.Grant{Steps: 50, Until: next, Used: 100, Limit: 50}, grant(t, s, "a", 4, 4))
	require.Empty(t, resumed(), "it has had its steps")
	require.Zero(t, grant(t, s, "a", 54, 54).Steps, "once")
	require.Zero(t, grant(t, s, "b", 46, 46).Steps)

	// A higher limit, a lower one, another length: no step is granted twice.
	setQuota(t, s, quota.Quota{Steps: 53, Period: q.Period})
	require.EqualValues(t, 2, grant(t, s, "b", 46, 46).Steps)
	require.EqualValues(t, 1, grant(t, s, "b", 48, 48).Steps)
	setQuota(t, s, quota.Quota{Steps: 10, Period: q.Period})
	require.Zero(t, grant(t, s, "b", 49, 49).Steps)
	u = setQuota(t, s, quota.Quota{Steps: 54, Period: q.Period / 2})
	require.Equal(t, []int64{103, 1}, []int64{u.Used, u.Left})
	require.EqualValues(t, 1, grant(t, s, "b", 49, 49).Steps)
	require.Zero(t, grant(t, s, "b", 50, 50).Steps)
}

func testUnusedSteps(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	setQuota(t, s, quota.Quota{Steps: 1000, Period: quota.LongestPeriod})
	for i, id := range []string{"a", "b", "c"} {
		insert(t, s, newRun(id, i))
		require.EqualValues(t, 50, grant(t, s, id, 0, 0).Steps)
	}
	grant(t, s, "gone", 0, 0)
	returned := func(want int, used int64) {
		t.Helper()
		n, err := s.Quotas().ReturnSteps(ctx, 10)
		require.NoError(t, err)
		require.Equal(t, want, n)
		u, err := s.Quotas().GetQuota(ctx, here)
		require.NoError(t, err)
		require.Equal(t, used, u.Used)
	}
	returned(1, 200) // the use of a run without a row is unknown
	apply(t, s, state("a", 7, run.Completed), state("b", 9, run.Running))
	returned(1, 157)
	returned(0, 157)
	apply(t, s, state("b", 60, run.Failed))
	returned(1, 157)
	require.EqualValues(t, 50, grant(t, s, "a", 50, 7).Steps, "asked for when it ended")
	returned(1, 157)
	insert(t, s, newRun("refused", 3))
	require.EqualValues(t, 50, grant(t, s, "refused", 0, 0).Steps)
	removed, err := s.RemoveUnstarted(ctx, "refused", entry(audit.RunStartRefused, here, "refused"))
	require.NoError(t, err)
	require.True(t, removed)
	returned(0, 157)
}

// testStepsAtOnce has many runs in several processes request steps: together they are granted as many as the quota.
func testStepsAtOnce(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	const runs, limit = 16, 100
	setQuota(t, stores[0], quota.Quota{Steps: limit, Period: quota.LongestPeriod})
	var wg sync.WaitGroup
	got := make([]int64, runs)
	for i := range runs {
		wg.Go(func() {
			for {
				g, err := stores[i%2].Quotas().GrantSteps(t.Context(),
					quota.Request{Project: here, RunID: fmt.Sprint(i), Granted: got[i], Entered: got[i]})
				if err != nil || g.Steps == 0 {
					if err != nil {
						t.Errorf("grant: %v", err)
					}
					return
				}
				got[i] += g.Steps
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for _, n := range got {
		total += n
	}
	require.EqualValues(t, limit, total)
}

// testPeriodEnds waits for the next period: unused steps of the last one are void, and its used steps no longer count.
func testPeriodEnds(t *testing.T, open Opener) {
	s := open(t)
	setQuota(t, s, quota.Quota{Steps: 2, Period: time.Second})
	granted := int64(0)
	perPeriod := map[time.Time]int64{}
	require.Eventually(t, func() bool {
		g := grant(t, s, "a", granted, granted)
		granted += g.Steps
		perPeriod[g.Until] += g.Steps
		return len(perPeriod) == 3
	}, 20*time.Second, 10*time.Millisecond)
	for until, steps := range perPeriod {
		require.LessOrEqual(t, steps, int64(2), until)
		require.Zero(t, until.Nanosecond(), "periods begin at multiples of their length")
	}
	require.GreaterOrEqual(t, granted, int64(4))
}
