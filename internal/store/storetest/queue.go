package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// queuedRun returns a run as the service creates it while Temporal is unavailable.
func queuedRun(id string, n int) run.Run {
	r := newRun(id, n)
	r.QueuedReason, r.ExpiresAt = run.QueuedEngine, at(n).Add(time.Hour)
	return r
}

func enqueue(t testing.TB, s Store, r run.Run) run.Run {
	t.Helper()
	stored, made, err := s.EnqueueRun(t.Context(), r, 1000, entry(audit.RunStart, r.Project, r.ID))
	require.NoError(t, err)
	require.True(t, made)
	return stored
}

func queue(t testing.TB, s Store, f run.QueueFilter) []string {
	t.Helper()
	f.Limit = max(f.Limit, 1)
	list, err := s.ListQueued(t.Context(), f)
	require.NoError(t, err)
	var ids []string
	for _, r := range list {
		ids = append(ids, r.ID+" "+r.QueuedReason)
	}
	return ids
}

func requireCount(t testing.TB, s Store, waiting, total int64) {
	t.Helper()
	gotWaiting, gotTotal, err := s.CountQueued(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{waiting, total}, []int64{gotWaiting, gotTotal})
}

func testQueue(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	requireCount(t, s, 0, 0)
	insert(t, s, newRun("direct", 0))
	// In order of acceptance; of two with the same time, the lower ID first.
	for _, r := range []run.Run{queuedRun("c", 2), queuedRun("a", 3), queuedRun("b", 3)} {
		stored := enqueue(t, s, r)
		require.Equal(t, stored, get(t, s, r.ID))
		require.Equal(t, at(0).Add(r.ExpiresAt.Sub(at(0))), stored.ExpiresAt)
	}
	position := func(id string) int64 { return get(t, s, id).QueuePosition }
	require.Equal(t, []int64{0, 1, 2, 3}, []int64{position("direct"), position("c"), position("a"), position("b")})
	requireCount(t, s, 3, 3)
	list, err := s.ListRuns(ctx, run.Filter{Project: here, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, at(3).Add(time.Hour), list[0].ExpiresAt, "lists carry the expiry")
	require.Zero(t, list[0].QueuePosition)

	took, err := s.TakeQueued(ctx, "c", at(5))
	require.NoError(t, err)
	require.True(t, took)
	c := get(t, s, "c")
	require.Equal(t, []any{run.QueuedStarting, at(5), int64(2), int64(0), time.Time{}},
		[]any{c.QueuedReason, c.StatusAt, c.Sequence, c.QueuePosition, c.ExpiresAt})
	took, err = s.TakeQueued(ctx, "c", at(6))
	require.NoError(t, err)
	require.False(t, took, "once")
	requireCount(t, s, 2, 3)
	require.Equal(t, int64(1), position("a"))
	require.Equal(t, []string{"c starting", "a engine", "b engine"}, queue(t, s, run.QueueFilter{Limit: 10}))
	require.Equal(t, []string{"a engine"},
		queue(t, s, run.QueueFilter{After: &run.Cursor{CreatedAt: at(2), ID: "c"}, Limit: 1}))
	require.Equal(t, []string{"b engine"},
		queue(t, s, run.QueueFilter{After: &run.Cursor{CreatedAt: at(3), ID: "a"}, Limit: 1}))

	back, err := s.ReturnQueued(ctx, "c", at(6))
	require.NoError(t, err)
	require.True(t, back)
	require.Equal(t, []any{int64(1), at(2).Add(time.Hour)}, []any{position("c"), get(t, s, "c").ExpiresAt},
		"to its previous position")
	for _, id := range []string{"c", "direct", "none"} {
		back, err = s.ReturnQueued(ctx, id, at(7))
		require.NoError(t, err)
		require.False(t, back, id)
	}

	took, err = s.TakeQueued(ctx, "c", at(8))
	require.NoError(t, err)
	require.True(t, took)
	require.NoError(t, s.MarkHandedOver(ctx, "c", "x", at(9)))
	requireCount(t, s, 2, 2)
	took, err = s.TakeQueued(ctx, "a", at(8))
	require.NoError(t, err)
	require.True(t, took)
	apply(t, s, run.Update{RunID: "a", Position: 1, Steps: []run.Step{{Number: 1, Status: "running", Position: 1}}})
	back, err = s.ReturnQueued(ctx, "a", at(9))
	require.NoError(t, err)
	require.False(t, back, "a run with an update is in Temporal")
}

func testQueueEnds(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for i, id := range []string{"a", "b", "c"} {
		enqueue(t, s, queuedRun(id, i))
	}
	require.Empty(t, queue(t, s, run.QueueFilter{ExpiredAt: at(0).Add(time.Hour - time.Microsecond)}))
	require.Equal(t, []string{"a engine"}, queue(t, s, run.QueueFilter{ExpiredAt: at(0).Add(time.Hour), Limit: 9}))
	took, err := s.TakeQueued(ctx, "b", at(5))
	require.NoError(t, err)
	require.True(t, took)
	require.Equal(t, []string{"a engine", "c engine"},
		queue(t, s, run.QueueFilter{ExpiredAt: at(9).Add(time.Hour), Limit: 9}),
		"what may have been started does not expire")

	end := run.Run{
		ID: "a", Status: run.Failed,
		Error: &run.Error{Type: "x", Status: 503, Title: "Queue expired", Detail: "late", Instance: "/"}, EndedAt: at(7),
	}
	finished, err := s.FinishQueued(ctx, end, entry("run.expire", here, "a"))
	require.NoError(t, err)
	require.True(t, finished)
	want := newRun("a", 0)
	want.Status, want.QueuedReason, want.StatusAt, want.EndedAt, want.Error, want.Sequence = run.Failed, "", at(7), at(7),
		end.Error, 2
	require.Equal(t, want, get(t, s, "a"))
	require.Len(t, audited(t, s, "a"), 2)

	for _, id := range []string{"a", "b"} { // ended, taken
		before := get(t, s, id)
		finished, err = s.FinishQueued(ctx, run.Run{ID: id, Status: run.Canceled, EndedAt: at(8)},
			entry(audit.RunCancel, here, id))
		require.NoError(t, err)
		require.False(t, finished)
		require.Equal(t, before, get(t, s, id))
	}
	_, err = s.FinishQueued(ctx, run.Run{ID: "none", Status: run.Canceled, EndedAt: at(8)},
		entry(audit.RunCancel, here, "none"))
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, "none")

	finished, err = s.FinishQueued(ctx, run.Run{
		ID: "c", Status: run.Canceled, CancelRequested: true, CancelReason: "enough", EndedAt: at(8),
	}, entry(audit.RunCancel, here, "c"))
	require.NoError(t, err)
	require.True(t, finished)
	c := get(t, s, "c")
	require.Equal(t, []any{run.Canceled, true, "enough"}, []any{c.Status, c.CancelRequested, c.CancelReason})
	requireCount(t, s, 0, 1)
}

// testQueueBound has many callers in several processes fill the queue: it accepts exactly as many runs as its limit.
func testQueueBound(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	const callers, limit = 50, 20
	// A run that is being handed over keeps its position: it may be returned.
	enqueue(t, stores[0], queuedRun("taken", 0))
	_, err := stores[0].TakeQueued(t.Context(), "taken", at(1))
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		wg.Go(func() {
			id := fmt.Sprintf("r%02d", i)
			_, _, errs[i] = stores[i%2].EnqueueRun(t.Context(), queuedRun(id, i), limit, entry(audit.RunStart, here, "many"))
		})
	}
	wg.Wait()
	refused := 0
	for _, err := range errs {
		if err != nil {
			require.ErrorIs(t, err, run.ErrQueueFull)
			refused++
		}
	}
	require.Equal(t, callers-limit+1, refused)
	requireCount(t, stores[0], limit-1, limit)
	require.Len(t, audited(t, stores[0], "many"), limit-1)

	// A run that is in the queue is found, even if the queue is full.
	list, err := stores[0].ListQueued(t.Context(), run.QueueFilter{Limit: 100})
	require.NoError(t, err)
	again := queuedRun("again", 99)
	again.RequestID = list[limit-1].RequestID
	stored, made, err := stores[1].EnqueueRun(t.Context(), again, limit, entry(audit.RunStart, here, "many"))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, list[limit-1].ID, stored.ID)
}

func testDiscloseRun(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	_, err := s.MarkDisclosed(ctx, here, "none")
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, "none")
	want := insert(t, s, newRun("told", 1))
	for range 2 {
		r, err := s.MarkDisclosed(ctx, here, "told")
		require.NoError(t, err)
		require.Equal(t, want, r)
	}
	removed, err := s.RemoveUnstarted(ctx, "told", entry(audit.RunStartRefused, here, "told"))
	require.NoError(t, err)
	require.False(t, removed)
	require.Equal(t, want, get(t, s, "told"))
}

// testDiscloseOrRemove discloses a run while it is removed concurrently: it is disclosed and kept, or removed for both
// callers.
func testDiscloseOrRemove(t *testing.T, open Opener) {
	a, b, ctx := open(t), open(t), t.Context()
	for i := range 20 {
		id := fmt.Sprintf("r%d", i)
		insert(t, a, newRun(id, i))
		var removed bool
		var errTell, errRemove error
		var wg sync.WaitGroup
		wg.Go(func() { _, errTell = a.MarkDisclosed(ctx, here, id) })
		wg.Go(func() { removed, errRemove = b.RemoveUnstarted(ctx, id, entry(audit.RunStartRefused, here, id)) })
		wg.Wait()
		require.NoError(t, errRemove)
		if removed {
			requireError(t, errTell, apperror.NotFound, apperror.RunNotFound, id)
			continue
		}
		require.NoError(t, errTell)
		get(t, a, id)
	}
}
