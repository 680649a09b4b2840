package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// ended counts what an observer reports.
type ended batch.Outcomes

func (e ended) RunsEnded(_ context.Context, outcome string, n int64) {
	e[batch.Outcome(outcome)] += n
}

// outcomeBench is a batch that replays failed runs.
type outcomeBench struct {
	Store

	counted  ended
	observer *batch.Observer
}

func (b outcomeBench) observe(t *testing.T) batch.Batch {
	t.Helper()
	require.NoError(t, b.observer.Pass(t.Context()))
	return getBatch(t, b.Store, working)
}

// replay starts the run that replays another and writes that as the result of an item.
func (b outcomeBench) replay(t *testing.T, item batch.Item, id, of string, n int) {
	t.Helper()
	r := newRun(id, n)
	r.ReplayOf = of
	insert(t, b.Store, r)
	item.Status, item.NewRunID = batch.Started, id
	writeItemResults(t, b.Store, n, item)
}

func (b outcomeBench) withOutcome(t *testing.T, outcome batch.Outcome) (ids []string) {
	t.Helper()
	list, err := b.Batches().ListBatchItems(t.Context(),
		batch.ItemFilter{Project: here, Batch: working, Outcome: outcome, Limit: wholePage})
	require.NoError(t, err)
	for _, i := range list {
		require.Equal(t, []any{batch.Started, outcome}, []any{i.Status, i.Outcome})
		ids = append(ids, i.NewRunID)
	}
	return ids
}

func (b outcomeBench) started(t *testing.T, statuses ...run.Status) (ids []string) {
	t.Helper()
	f := run.Filter{Project: here, StartedByBatchID: working, Statuses: statuses, OldestFirst: true, Limit: wholePage}
	list, err := b.ListRuns(t.Context(), f)
	require.NoError(t, err)
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	counts, err := b.CountRuns(t.Context(), f)
	require.NoError(t, err)
	var total int64
	for _, n := range counts.Statuses {
		total += n
	}
	require.EqualValues(t, len(ids), total)
	f.FailureGroup = failureGroup()
	_, err = b.ListRuns(t.Context(), f) // with a condition that selects the runs instead
	require.NoError(t, err)
	return ids
}

func testBatchOutcomes(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	b := outcomeBench{Store: s, counted: ended{}}
	b.observer = batch.NewObserver(s.Batches(), b.counted)
	putWebhook(t, s, newWebhook("w", event.BatchEnded))
	ids := []string{"r1", "r2", "r3", "r4"}
	for n, id := range ids {
		insert(t, s, newRun(id, n))
		end(t, s, id, run.Failed, noAnswer("no answer for order 1"))
	}
	of := newBatch(working, 5)
	of.Action = batch.Replay
	startBatch(t, s, of, wholePage, ids...)
	for n, item := range claim(t, s, 0, 4) {
		b.replay(t, item, "new-"+item.RunID, item.RunID, 6+n)
	}
	got := b.observe(t)
	require.Equal(t, []any{batch.RunsOpen, int64(4), int64(4)}, []any{got.Status, got.Started(), got.OpenRuns()},
		"all are started, and none has ended")
	require.Len(t, b.withOutcome(t, batch.RunOpen), 4)

	end(t, s, "new-r1", run.Completed, nil)
	end(t, s, "new-r2", run.Failed, noAnswer("no answer for order 2"))
	end(t, s, "new-r3", run.TimedOut, noAnswer("no such order"))
	got = b.observe(t)
	require.Equal(t, batch.Outcomes{batch.RunCompleted: 1, batch.FailedSameCause: 1, batch.FailedOtherCause: 1}, got.Ended)
	require.Equal(t, []any{batch.RunsOpen, int64(1)}, []any{got.Status, got.OpenRuns()})
	require.Equal(t, []string{"new-r2"}, b.withOutcome(t, batch.FailedSameCause))
	require.Equal(t, []string{"new-r2", "new-r3"}, b.started(t, run.Failed, run.TimedOut))
	require.Len(t, b.started(t), 4)
	end(t, s, "new-r4", run.Canceled, nil)
	got = b.observe(t)
	require.Equal(t, batch.Completed, got.Status)
	require.False(t, got.RunsEndedAt.IsZero())
	require.Equal(t, got, b.observe(t), "nothing counts twice")
	require.Equal(t, ended{batch.RunCompleted: 1, batch.FailedSameCause: 1, batch.FailedOtherCause: 1,
		batch.RunCanceled: 1}, b.counted)
	for status, want := range map[batch.Status]int{batch.Completed: 1, batch.RunsOpen: 0} {
		list, err := s.Batches().ListBatches(ctx,
			batch.ListFilter{Project: here, Statuses: []batch.Status{status}, Limit: 10})
		require.NoError(t, err)
		require.Len(t, list, want, status)
	}

	// A retry replays the runs that failed, and no others.
	got, err := s.Batches().RetryBatch(ctx, here, working, entry(audit.BatchRetry, here, working))
	require.NoError(t, err)
	require.Equal(t, []any{batch.Running, int64(2), int64(2)}, []any{got.Status, got.Pending(), got.Started()})
	require.Equal(t, batch.Outcomes{
		batch.RunCompleted: 1, batch.RunCanceled: 1, batch.FailedSameCause: 0, batch.FailedOtherCause: 0}, got.Ended)
	for n, item := range claim(t, s, 0, 4) {
		require.Equal(t, "new-"+item.RunID, item.NewRunID)
		b.replay(t, item, "again-"+item.RunID, item.NewRunID, 20+n)
		end(t, s, "again-"+item.RunID, run.Completed, nil)
	}
	got = b.observe(t)
	require.Equal(t, batch.Completed, got.Status)
	require.Equal(t, int64(3), got.Ended[batch.RunCompleted])
	require.Zero(t, got.Ended.Failed())
	require.Equal(t, []string{"new-r1", "new-r4", "again-r2", "again-r3"}, b.started(t), "the newest replay of each")
	_, err = s.Batches().RetryBatch(ctx, here, working, entry(audit.BatchRetry, here, working))
	requireError(t, err, apperror.Refused, apperror.BatchNothingFailed, working)

	var types []string
	_, _, err = s.Outbox().Move(ctx, here, 10, func(e event.Event) event.Event {
		types = append(types, e.Type+" "+string(e.Data))
		return e
	})
	require.NoError(t, err)
	require.Len(t, types, 2, "the batch has ended twice")
	require.Contains(t, types[0], `"started":4,"completed":1,"failedSameCause":1,"failedOtherCause":1,"canceled":1`)
	require.Contains(t, types[1], `"started":4,"completed":3,"failedSameCause":0`)
}
