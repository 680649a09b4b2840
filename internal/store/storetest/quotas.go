package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
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

// standing is why runs are queued, with their places where they wait for one: "admission 1".
func standing(t testing.TB, s Store, ids ...string) []string {
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
	requireFault(t, err, fault.NotFound, fault.ProjectNotFound, "none")
	_, err = s.Quotas().SetQuota(ctx, "none", want, entry(audit.QuotaSet, "none", "none"))
	requireFault(t, err, fault.NotFound, fault.ProjectNotFound, "none")
}

func testPlaces(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("before", 0))
	setQuota(t, s, quota.Quota{ConcurrentRuns: 2})
	insert(t, s, newRun("a", 1))
	require.Equal(t, []string{"starting", "starting"}, standing(t, s, "before", "a"))
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

	// A child has its parent's place, and what Temporal has it has.
	child, adopted := newRun("child", 1), newRun("adopted", 1)
	child.Trigger, child.Parent = run.TriggerParent, run.Parent{RunID: "a", Path: "/do/0", Depth: 1}
	adopted.QueuedReason, adopted.Trigger = run.QueuedWorker, "adopted"
	insert(t, s, child)
	require.Equal(t, []string{"starting"}, standing(t, s, "child"))
	require.Empty(t, admit(t, s, 10))
	apply(t, s, state("child", 1, run.Running), state("before", 1, run.Completed))
	u, err := s.Quotas().GetQuota(ctx, here)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 3}, []int64{u.Admitted, u.Queued})

	// A place is free, and newcomers do not overtake.
	insert(t, s, newRun("e", 1))
	require.Equal(t, []string{"admission 1", "admission 2", "admission 3", "admission 4"}, standing(t, s, "d", "c", "b", "e"))
	require.Equal(t, []string{"d"}, admit(t, s, 10))
	d := get(t, s, "d")
	require.Equal(t, []any{run.QueuedStarting, at(50), int64(2), int64(0)}, []any{d.QueuedReason, d.StatusAt, d.Sequence, d.QueuePosition})
	require.Empty(t, admit(t, s, 10))
	removed, err := s.RemoveUnstarted(ctx, "d", entry(audit.RunStartRefused, here, "d"))
	require.NoError(t, err)
	require.False(t, removed, "its caller was told of it")

	// One that could not be started goes back to where it was.
	returned, err := s.Quotas().ReturnAdmitted(ctx, "d", at(51))
	require.NoError(t, err)
	require.True(t, returned)
	require.Equal(t, []string{"admission 1", "admission 2"}, standing(t, s, "d", "c"))
	for _, id := range []string{"d", "a", "none"} {
		returned, err = s.Quotas().ReturnAdmitted(ctx, id, at(52))
		require.NoError(t, err)
		require.False(t, returned, id)
	}

	// A lower limit stops nobody, an adopted run takes a place, a higher limit and none at all let them in, in order.
	insert(t, s, adopted)
	setQuota(t, s, quota.Quota{ConcurrentRuns: 1})
	require.Empty(t, admit(t, s, 10))
	setQuota(t, s, quota.Quota{ConcurrentRuns: 3})
	require.Equal(t, []string{"d"}, admit(t, s, 10))
	setQuota(t, s, quota.Quota{})
	insert(t, s, newRun("f", 1))
	require.Equal(t, []string{"admission 4"}, standing(t, s, "f"))
	require.Equal(t, []string{"c", "b"}, admit(t, s, 2))
	require.Equal(t, []string{"e", "f"}, admit(t, s, 10))
	insert(t, s, newRun("g", 1))
	require.Equal(t, []string{"starting"}, standing(t, s, "g"))
	queues, err := s.Quotas().AdmissionQueues(ctx)
	require.NoError(t, err)
	require.Empty(t, queues)
}

func testAdmissionQueueEnds(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	setQuota(t, s, quota.Quota{ConcurrentRuns: 1})
	for i, id := range []string{"a", "b", "c", "d"} {
		insert(t, s, newRun(id, i))
	}
	queued := queuedRun("e", 5)
	require.Equal(t, int64(4), enqueue(t, s, queued).QueuePosition)
	require.Equal(t, []string{"admission 4"}, standing(t, s, "e"))
	require.Zero(t, get(t, s, "e").ExpiresAt)
	requireCount(t, s, 0, 0)
	finished, err := s.FinishQueued(ctx, run.Run{
		ID: "c", Status: run.Canceled, CancelRequested: true, CancelReason: "enough", EndedAt: at(8),
	}, entry(audit.RunCancel, here, "c"))
	require.NoError(t, err)
	require.True(t, finished)
	require.Equal(t, []string{"starting", "admission 1", "canceled", "admission 2", "admission 3"}, standing(t, s, "a", "b", "c", "d", "e"))
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

// testPlacesAtOnce has many callers in several processes ask for few places, which then are given to more of them by several
// processes.
func testPlacesAtOnce(t *testing.T, open Opener) {
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
