package start_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// marking counts the writes of accepted starts.
type marking struct {
	run.Store

	marks atomic.Int64
}

func (m *marking) MarkHandedOver(ctx context.Context, id, executionID string, at time.Time) error {
	m.marks.Add(1)
	return m.Store.MarkHandedOver(ctx, id, executionID, at)
}

// startedHere starts a run with a first workflow task that this process executes, whose first update is awaited until
// the service closes. One start at a time may wait for Temporal.
func startedHere(t *testing.T,
	change ...func(*start.Options)) (*bench, *start.Service, *marking, *pubsub.Notifier, run.Run) {
	t.Helper()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	store, projected := &marking{Store: b.store}, pubsub.NewNotifier()
	s := b.process(t, store, func(o *start.Options) {
		o.Executes, o.Projected, o.MaxHandOvers = func(string, string) bool { return true }, projected, 1
		o.FirstUpdateWithin = time.Hour
		for _, f := range change {
			f(o)
		}
	})
	r, created, err := s.Start(b.ctx, request())
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, []any{run.Queued, run.QueuedWorker, "execution-" + r.ID},
		[]any{r.Status, r.QueuedReason, r.ExecutionID})
	return b, s, store, projected, r
}

func TestFirstUpdateSavesTheWriteOfTheStart(t *testing.T) {
	t.Parallel()
	b, s, store, projected, r := startedHere(t)
	kept, err := b.store.GetRun(b.ctx, r.Project, r.ID)
	require.NoError(t, err)
	require.Equal(t, run.QueuedStarting, kept.QueuedReason, "the row is written by the first update")
	projected.Notify(r.ID)
	require.NoError(t, s.Close(b.ctx))
	require.Zero(t, store.marks.Load())
}

func TestStartIsWrittenWithoutAFirstUpdate(t *testing.T) {
	t.Parallel()
	b, s, store, _, r := startedHere(t, func(o *start.Options) { o.FirstUpdateWithin = time.Millisecond })
	require.Eventually(t, func() bool { return store.marks.Load() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, s.Close(b.ctx)) // waits for the write
	require.Equal(t, int64(1), store.marks.Load())
	kept, err := b.store.GetRun(b.ctx, r.Project, r.ID)
	require.NoError(t, err)
	require.Equal(t, []any{run.QueuedWorker, r.ExecutionID}, []any{kept.QueuedReason, kept.ExecutionID})
}

// TestControlsFindAnAcceptedRun controls a run before its first update: it has been accepted, so no control may be
// refused because it is starting.
func TestControlsFindAnAcceptedRun(t *testing.T) {
	t.Parallel()
	b, s, store, _, r := startedHere(t)
	kept, err := b.store.GetRun(b.ctx, r.Project, r.ID)
	require.NoError(t, err)
	now, err := s.Confirmed(b.ctx, kept)
	require.NoError(t, err)
	require.Equal(t, []any{run.QueuedWorker, int64(1)}, []any{now.QueuedReason, store.marks.Load()})
	require.NoError(t, s.Close(b.ctx))
	other, err := s.Confirmed(b.ctx, now)
	require.NoError(t, err)
	require.Equal(t, now, other)
}

func TestFirstUpdateIsAwaitedWithoutASlot(t *testing.T) {
	t.Parallel()
	b, s, store, projected, r := startedHere(t)
	next, created, err := s.Start(b.ctx, request())
	require.NoError(t, err)
	require.True(t, created)
	require.Zero(t, store.marks.Load(), "the first start still waits for its update")
	projected.Notify(r.ID)
	projected.Notify(next.ID)
	require.NoError(t, s.Close(b.ctx))
	require.Zero(t, store.marks.Load())
}

func TestRepeatedRequestFindsAnAcceptedRun(t *testing.T) {
	t.Parallel()
	b, s, store, _, r := startedHere(t, func(o *start.Options) {
		o.AnswerWithin = 500 * time.Millisecond // less than the time for which the first update is awaited
	})
	req := request()
	req.RequestID = r.RequestID
	again, created, err := s.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, []any{r.ID, run.QueuedWorker, r.ExecutionID}, []any{again.ID, again.QueuedReason, again.ExecutionID})
	require.Equal(t, int64(1), store.marks.Load())
	require.NoError(t, s.Close(b.ctx))
}
