package read_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// lose makes the engine report that the run ended a minute ago, while its row is open.
func (b *bench) lose() {
	b.engine.inspect = func(_ context.Context, r run.Run) (run.Execution, error) {
		return run.Execution{
			RunID: r.ID, ExecutionID: r.ExecutionID, Relation: run.RelationSame, ClosedAt: b.clock().Add(-time.Minute),
			Accepted:   7,
			AcceptedAt: b.clock().Add(-time.Minute), StartedAt: b.clock().Add(-time.Hour),
		}, nil
	}
}

func TestGetRequestsTheRepairOfARunThatIsBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	b.lose()
	b.advance(run.QuietAfter - time.Millisecond)
	got, err := b.Get(b.ctx, here, r.ID)
	require.NoError(t, err)
	require.Equal(t, r, got)
	require.Empty(t, b.engine.called(), "a run that has just changed is not compared")

	b.advance(time.Millisecond)
	got, err = b.Get(b.ctx, here, r.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"inspect " + r.ID}, b.engine.called())
	require.Equal(t, "the run ended in Temporal at 2026-03-01T11:59:03Z, and its end is not written", got.Behind.Reason)
	got.Behind = nil
	require.Equal(t, r, got, "it returns the row")

	// Every process finds the request, and while it exists, nothing is compared again.
	b.advance(time.Hour)
	got, err = b.Get(b.ctx, here, r.ID)
	require.NoError(t, err)
	require.NotNil(t, got.Behind)
	require.Empty(t, b.engine.called())
	claimed, ok, err := b.store.ClaimRepair(b.ctx, func(int) time.Duration { return time.Minute })
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []any{r.ID, true, false}, []any{claimed.RunID, claimed.Behind, claimed.Force})

	b.applyState(t, r.ID, 5, run.Completed)
	require.NoError(t, b.store.EndRepair(b.ctx, claimed))
	b.advance(time.Hour)
	_, err = b.Get(b.ctx, here, r.ID)
	require.NoError(t, err)
	require.Empty(t, b.engine.called(), "a run that has ended is not compared")
	_, err = b.Get(b.ctx, here, "none")
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, `"none"`)
}

func TestGetComparesARunOncePerInterval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	b.advance(time.Minute)
	for _, answer := range []error{run.ErrNotKnown, unavailable()} {
		b.engine.inspect = func(context.Context, run.Run) (run.Execution, error) { return run.Execution{}, answer }
		for range 3 {
			got, err := b.Get(b.ctx, here, r.ID)
			require.NoError(t, err, "the row is the best available answer")
			require.Equal(t, r, got)
		}
		require.Len(t, b.engine.called(), 1)
		b.advance(5 * time.Second)
	}
}

// TestGetIsNotDelayed has a Temporal that does not answer.
func TestGetIsNotDelayed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.begin(t), b.begin(t)
	b.advance(time.Minute)
	b.engine.inspect = func(ctx context.Context, _ run.Run) (run.Execution, error) {
		<-ctx.Done()
		return run.Execution{}, ctx.Err()
	}
	for _, r := range []run.Run{first, second, first} {
		got, err := b.Get(b.ctx, here, r.ID)
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	require.Len(t, b.engine.called(), 1, "after a slow comparison, no other follows for a while")
}

func TestGetIgnoresRunsThatThisProcessIsAboutToWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	b.lose()
	b.advance(time.Minute)
	holding := b.process(b.store, func(id string) bool { return id == r.ID })
	got, err := holding.Get(b.ctx, here, r.ID)
	require.NoError(t, err)
	require.Nil(t, got.Behind)
	require.Empty(t, b.engine.called())
}

func TestBehindBecause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old := now.Add(-run.WriteLag)
	open := run.Run{Status: run.Running, Position: 10}
	done := run.Run{Status: run.Terminated, Position: 10}
	x := run.Execution{Open: true, Relation: run.RelationSame, StartedAt: old.Add(-time.Hour), AcceptedAt: old,
		Accepted: 10}
	change := func(do func(*run.Execution)) run.Execution {
		changed := x
		do(&changed)
		return changed
	}
	closed := change(func(x *run.Execution) { x.Open, x.ClosedAt = false, old })
	ahead := change(func(x *run.Execution) { x.Accepted = 11 })
	for name, tt := range map[string]struct {
		row    run.Run
		x      run.Execution
		behind bool
	}{
		"up to date": {open, x, false},
		"ahead":      {open, ahead, true},
		"ahead just now": {open, change(func(x *run.Execution) {
			x.Accepted, x.AcceptedAt = 11, old.Add(time.Millisecond)
		}), false},
		"ahead by a clock that is ahead": {open, change(func(x *run.Execution) {
			x.Accepted, x.AcceptedAt = 11, now.Add(time.Minute)
		}), true},
		"closed": {open, closed, true},
		"closed by a clock that is ahead": {open, change(func(x *run.Execution) {
			x.Open, x.ClosedAt = false, now.Add(time.Minute)
		}), true},
		"closed just now": {open, change(func(x *run.Execution) {
			x.Open, x.ClosedAt = false, old.Add(time.Millisecond)
		}), false},
		"ended":        {done, closed, false},
		"ended, ahead": {done, ahead, true},
		"reset": {open, change(func(x *run.Execution) {
			x.Relation, x.Accepted = run.RelationReset, 99
		}), false},
		"continued": {open, change(func(x *run.Execution) {
			x.Relation, x.Accepted = run.RelationSuccessor, 3
		}), true},
		"continued, no task": {open, change(func(x *run.Execution) {
			x.Relation, x.Accepted = run.RelationSuccessor, 0
		}), false},
	} {
		require.Equal(t, tt.behind, run.BehindBecause(tt.row, tt.x, now) != "", name)
	}
}
