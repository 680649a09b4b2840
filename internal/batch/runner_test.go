package batch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func unavailable() error {
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal cannot be used").WithRetry(time.Second)
}

func TestEveryRunIsProcessedOnceAndRecorded(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.run(t)
	p.controls.set(func() { p.controls.status["r0002"] = run.Completed })
	p.controls.answer = func(c call) error {
		switch c.run {
		case "r0003":
			return apperror.New(apperror.NotFound, apperror.RunNotFound, "run %q does not exist", c.run)
		case "r0004":
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "odd")
		}
		return nil
	}
	b := p.start(t, batch.StartRequest{Action: batch.Terminate, RunIDs: names(40), Rate: batch.MaxRate})
	b = p.await(t, b.ID, completed)
	require.Equal(t, []int64{40, 37, 2, 1, 0}, []int64{b.Total, b.Succeeded, b.Refused, b.Failed, b.Pending()})
	calls := p.controls.done()
	require.Len(t, calls, 40)
	for _, c := range calls {
		require.Equal(t, "token ada", c.actor, "controls are called in the name of the batch's actor")
		require.Equal(t, "stale (batch "+b.ID+")", c.reason)
	}
	refused := p.items(t, b.ID, batch.Refused)
	require.Equal(t, "r0002", refused[0].RunID)
	require.Equal(t, "run r0002 has ended already: it is completed", refused[0].Error)
	require.Contains(t, refused[1].Error, "does not exist")
	require.Equal(t, "odd", p.items(t, b.ID, batch.Failed)[0].Error)
	require.False(t, p.items(t, b.ID, batch.Succeeded)[0].EndedAt.IsZero())
}

func TestReplaysAreNotRepeatedAfterCrash(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	// The first runner dies with items in flight: it has done them, without a record.
	b := p.start(t, batch.StartRequest{Action: batch.Replay, RunIDs: names(30), Rate: batch.MaxRate, Version: "latest"})
	died, kill := context.WithCancel(p.ctx)
	var done atomic.Int32
	p.controls.answer = func(call) error {
		if done.Add(1) == 2 {
			kill()
		}
		return nil
	}
	first := batch.NewRunner(dying{p.store.Batches(), died}, p.controls, time.Now)
	require.NoError(t, first.Start(p.ctx))
	<-died.Done()
	require.NoError(t, first.Stop(p.ctx))
	got, err := p.Get(p.ctx, here, b.ID)
	require.NoError(t, err)
	require.EqualValues(t, 30, got.Pending(), "nothing was recorded")

	p.run(t)
	b = p.await(t, b.ID, completed)
	require.EqualValues(t, 30, b.Succeeded)
	require.Greater(t, len(p.controls.done()), 30, "some were retried")
	require.Len(t, p.controls.made, 30, "and started no second run")
	for _, i := range p.items(t, b.ID, "") {
		require.True(t, strings.HasPrefix(i.NewRunID, "new-"+i.RunID+"-"), i.NewRunID)
	}
}

// dying records nothing once ctx has ended.
type dying struct {
	batch.WorkStore

	dead context.Context
}

func (d dying) WriteItems(ctx context.Context, id string, items []batch.Item, at time.Time) error {
	if d.dead.Err() != nil {
		return d.dead.Err()
	}
	return d.WorkStore.WriteItems(ctx, id, items, at)
}

func TestItemsDoneBeforeCrashSucceed(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	b := p.start(t, batch.StartRequest{Action: batch.Cancel, RunIDs: names(3), Rate: batch.MaxRate})
	_, _, err := p.store.Batches().ClaimItems(p.ctx, b.ID, 0, 2)
	require.NoError(t, err)
	// Two items were in flight in the runner that died: one run ended canceled, the other by itself. So did a third run
	// whose item had not begun.
	p.controls.set(func() {
		p.controls.status["r0001"], p.controls.status["r0002"], p.controls.status["r0003"] = run.Canceled, run.Completed,
			run.Canceled
	})
	p.run(t)
	p.await(t, b.ID, completed)
	list := p.items(t, b.ID, "")
	require.Equal(t, []batch.ItemStatus{batch.Succeeded, batch.Refused, batch.Refused},
		[]batch.ItemStatus{list[0].Status, list[1].Status, list[2].Status})
}

func TestBatchWaitsForTemporal(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.run(t)
	p.controls.set(func() { p.controls.ready = unavailable() })
	p.controls.answer = func(c call) error {
		if c.action == "cancel" {
			return unavailable()
		}
		return nil
	}
	replay := p.start(t, batch.StartRequest{Action: batch.Replay, RunIDs: names(5), Rate: batch.MaxRate})
	cancel := p.start(t, batch.StartRequest{Action: batch.Cancel, RunIDs: names(5), Rate: batch.MaxRate})
	for _, id := range []string{replay.ID, cancel.ID} {
		b := p.await(t, id, func(b batch.Batch) bool { return b.Waiting != "" })
		require.Equal(t, "temporal cannot be used", b.Waiting)
		require.Equal(t, batch.Running, b.Status)
		require.EqualValues(t, 5, b.Pending(), "no item failed")
	}
	p.controls.set(func() { p.controls.ready, p.controls.answer = nil, nil })
	for _, id := range []string{replay.ID, cancel.ID} {
		b := p.await(t, id, completed)
		require.EqualValues(t, 5, b.Succeeded)
		require.Empty(t, b.Waiting)
	}
	require.Len(t, p.controls.made, 5)
}

func TestFailingItemDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.run(t)
	p.controls.answer = func(c call) error {
		if c.run == "r0001" {
			return unavailable()
		}
		return nil
	}
	b := p.start(t, batch.StartRequest{Action: batch.Cancel, RunIDs: names(6), Rate: 8})
	p.await(t, b.ID, func(b batch.Batch) bool { return b.Succeeded == 5 })
	b = p.await(t, b.ID, completed)
	require.EqualValues(t, 1, b.Failed, "it reached the maximum of attempts while Temporal was available")
	require.Equal(t, "r0001", p.items(t, b.ID, batch.Failed)[0].RunID)
}

func TestPauseTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.run(t)
	b := p.start(t, batch.StartRequest{Action: batch.Cancel, RunIDs: names(500), Rate: 20})
	p.await(t, b.ID, func(b batch.Batch) bool { return b.Succeeded >= 5 })
	b, err := p.Pause(p.ctx, here, b.ID)
	require.NoError(t, err)
	require.Equal(t, batch.Paused, b.Status)
	require.Less(t, b.Succeeded, int64(500))
	// A round of five may have been in flight.
	require.Never(t, func() bool {
		return len(p.controls.done()) > int(b.Succeeded)+5
	}, 700*time.Millisecond, 50*time.Millisecond)
	_, err = p.Unpause(p.ctx, here, b.ID)
	require.NoError(t, err)
	before := len(p.controls.done())
	require.Eventually(t, func() bool { return len(p.controls.done()) > before }, soon, 10*time.Millisecond)
	_, err = p.Pause(p.ctx, here, b.ID)
	require.NoError(t, err)
	entries, err := p.store.ListAudit(p.ctx, audit.Filter{Subject: b.ID, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []string{audit.BatchPause, audit.BatchUnpause, audit.BatchPause, audit.BatchStart},
		[]string{entries[0].Action, entries[1].Action, entries[2].Action, entries[3].Action})
}

func TestRetryRepeatsOnlyFailedItems(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.run(t)
	p.controls.answer = func(c call) error {
		if c.run <= "r0003" {
			return apperror.New(apperror.Refused, apperror.WorkflowPaused, "the workflow is paused")
		}
		return nil
	}
	b := p.start(t, batch.StartRequest{Action: batch.Replay, RunIDs: names(10), Rate: batch.MaxRate})
	b = p.await(t, b.ID, completed)
	require.EqualValues(t, 3, b.Failed, "a workflow can be unpaused, so the item is not refused")
	p.controls.set(func() { p.controls.answer = nil })
	before := len(p.controls.done())
	b, err := p.Retry(p.ctx, here, b.ID)
	require.NoError(t, err)
	require.EqualValues(t, 3, b.Pending())
	b = p.await(t, b.ID, completed)
	require.EqualValues(t, 10, b.Succeeded)
	require.Len(t, p.controls.done()[before:], 3)
	_, err = p.Retry(p.ctx, here, b.ID)
	require.True(t, apperror.Is(err, apperror.BatchNothingFailed))
}

// Of two runners on one store, one works, and the other takes over.
func TestAnotherProcessTakesOver(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	stop := p.run(t)
	p.run(t)
	b := p.start(t, batch.StartRequest{Action: batch.Replay, RunIDs: names(60), Rate: 100})
	p.await(t, b.ID, func(b batch.Batch) bool { return b.Succeeded > 0 })
	stop()
	b = p.await(t, b.ID, completed)
	require.EqualValues(t, 60, b.Succeeded)
	require.Len(t, p.controls.done(), 60, "after a regular stop no item is repeated")
}

func TestRateIsKept(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.run(t)
	begun := time.Now()
	b := p.start(t, batch.StartRequest{Action: batch.Cancel, RunIDs: names(60), Rate: 40})
	p.await(t, b.ID, completed)
	// The first quarter of a second's worth begins at once.
	require.GreaterOrEqual(t, time.Since(begun), 1200*time.Millisecond)
}

// blind fails once to list the batches while they are in progress, and counts how often the lock is acquired.
type blind struct {
	batch.WorkStore

	failed atomic.Bool
	turns  atomic.Int32
}

func (b *blind) ActiveBatches(ctx context.Context, limit int) ([]batch.Batch, error) {
	list, err := b.WorkStore.ActiveBatches(ctx, limit)
	if err == nil && limit > 1 && len(list) > 0 && list[0].Succeeded > 0 && !b.failed.Swap(true) {
		return nil, errors.New("the database is unavailable")
	}
	return list, err
}

func (b *blind) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (bool, error) {
	b.turns.Add(1)
	return b.WorkStore.Exclusive(ctx, name, fn)
}

func TestFailedPollReleasesLock(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	s := &blind{WorkStore: p.store.Batches()}
	r := batch.NewRunner(s, p.controls, time.Now)
	b := p.start(t, batch.StartRequest{Action: batch.Cancel, RunIDs: names(100), Rate: 1})
	require.NoError(t, r.Start(p.ctx))
	t.Cleanup(func() { require.NoError(t, r.Stop(context.WithoutCancel(p.ctx))) })
	require.Eventually(t, func() bool {
		return s.turns.Load() > 1
	}, soon, 5*time.Millisecond, "the lock is released long before the batch ends")
	require.True(t, s.failed.Load())
	before, err := p.Get(p.ctx, here, b.ID)
	require.NoError(t, err)
	after := p.await(t, b.ID, func(b batch.Batch) bool { return b.Succeeded > before.Succeeded })
	require.Len(t, p.controls.done(), int(after.Succeeded), "every item that began was recorded")
}

func TestRunsInAnotherTemporalCanBeRetried(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.controls.answer = func(call) error {
		return apperror.New(apperror.Refused, apperror.RunElsewhere, "since yesterday the runs have been in another Temporal")
	}
	p.run(t)
	b := p.await(t, p.start(t, batch.StartRequest{Action: batch.Cancel, RunIDs: names(2)}).ID, completed)
	require.Equal(t, []int64{2, 0, 0, 2}, []int64{b.Total, b.Succeeded, b.Refused, b.Failed})
	require.Contains(t, p.items(t, b.ID, batch.Failed)[0].Error, "in another Temporal")

	p.controls.set(func() { p.controls.answer = nil })
	_, err := p.Retry(p.ctx, here, b.ID)
	require.NoError(t, err)
	b = p.await(t, b.ID, completed)
	require.Equal(t, []int64{2, 0, 0}, []int64{b.Succeeded, b.Refused, b.Failed})
}

// counting is a store that controls how many started runs no worker has picked up.
type counting struct {
	batch.WorkStore

	untaken func(runIDs []string) int64
}

func (c counting) CountNotTaken(_ context.Context, runIDs []string) (int64, error) {
	return c.untaken(runIDs), nil
}

func TestReplaysAreInFlightUntilPickedUp(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	b := p.start(t, batch.StartRequest{Action: batch.Replay, RunIDs: names(20), Rate: batch.MaxRate})
	looks := 0
	var begun []int // replays, at each check
	s := counting{p.store.Batches(), func(runIDs []string) int64 {
		begun = append(begun, len(p.controls.done()))
		if looks++; looks%3 != 0 {
			return int64(len(runIDs))
		}
		return 0
	}}
	r := batch.NewRunner(s, p.controls, time.Now)
	require.NoError(t, r.Start(p.ctx))
	p.await(t, b.ID, completed)
	require.NoError(t, r.Stop(context.WithoutCancel(p.ctx)))
	require.GreaterOrEqual(t, len(begun), 12)
	require.Equal(t, []int{4, 4, 4, 8, 8, 8, 12, 12, 12, 16, 16, 16}, begun[:12],
		"the next ones begin when the last ones are picked up")
}

func TestBusyWorkersDelayReplaysForASecond(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	r := batch.NewRunner(counting{p.store.Batches(), func(runIDs []string) int64 {
		return int64(len(runIDs))
	}}, p.controls, time.Now)
	begun := time.Now()
	b := p.start(t, batch.StartRequest{Action: batch.Replay, RunIDs: names(8), Rate: batch.MaxRate})
	require.NoError(t, r.Start(p.ctx))
	t.Cleanup(func() { require.NoError(t, r.Stop(context.WithoutCancel(p.ctx))) })
	p.await(t, b.ID, completed)
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
}

func TestBatchesOfOneProjectShareInFlightLimit(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	arrive, leave := make(chan struct{}), make(chan struct{})
	var inFlight atomic.Int32
	p.controls.answer = func(call) error {
		defer inFlight.Add(-1)
		if n := inFlight.Add(1); n > 4 {
			t.Errorf("%d items are in flight", n)
		}
		arrive <- struct{}{}
		<-leave
		return nil
	}
	var ids []string
	for range 4 {
		ids = append(ids, p.start(t, batch.StartRequest{Action: batch.Replay, RunIDs: names(40), Rate: batch.MaxRate}).ID)
	}
	p.run(t)
	for range 4 * 40 / 4 {
		for range 4 {
			<-arrive
		}
		for range 4 {
			leave <- struct{}{}
		}
	}
	for _, id := range ids {
		require.EqualValues(t, 40, p.await(t, id, completed).Succeeded)
	}
}
