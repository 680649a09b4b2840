package read_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

// watching is a watch in the background of the test.
type watching struct {
	changes chan read.Change
	ended   chan error
	stop    context.CancelFunc
}

func (b *bench) watch(t *testing.T, id string, after int64) *watching {
	t.Helper()
	ctx, stop := context.WithCancel(b.ctx)
	w := &watching{changes: make(chan read.Change, 100), ended: make(chan error, 1), stop: stop}
	t.Cleanup(stop)
	go func() {
		w.ended <- b.Watch(ctx, read.Watched{Project: here, ID: id, After: after}, func(c read.Change) error {
			w.changes <- c
			return nil
		})
	}()
	return w
}

// next returns the next change as "sequence status: steps".
func (w *watching) next(t *testing.T) string {
	t.Helper()
	select {
	case c := <-w.changes:
		return format(c)
	case <-time.After(time.Minute):
		t.Fatal("no change received")
		return ""
	}
}

func format(c read.Change) string {
	line := fmt.Sprintf("%d %s:", c.Run.Sequence, c.Run.Status)
	for _, s := range c.Steps {
		line += fmt.Sprintf(" %d %s", s.Number, s.Status)
	}
	return line
}

func (w *watching) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.ended:
		require.Empty(t, w.changes, "no further changes")
		return err
	case <-time.After(time.Minute):
		t.Fatal("the watch did not end")
		return nil
	}
}

func running(number, position int64) run.Step {
	return run.Step{Number: number, Status: "running", Position: position}
}

func done(number, position int64) run.Step {
	return run.Step{Number: number, Status: "completed", Position: position}
}

func TestWatchPassesEveryChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	w := b.watch(t, r.ID, -1)
	require.Equal(t, "2 queued:", w.next(t), "the current state is passed at once")
	b.applyState(t, r.ID, 3, run.Running, running(1, 3))
	b.changes.Notify(r.ID)
	require.Equal(t, "3 running: 1 running", w.next(t))
	// No notification is sent for this one: another process wrote it.
	b.applyState(t, r.ID, 7, run.Waiting, done(1, 7), running(2, 7))
	require.Equal(t, "4 waiting: 1 completed 2 running", w.next(t))
	b.applyState(t, r.ID, 9, run.Completed, done(2, 9))
	b.changes.Notify(r.ID)
	require.Equal(t, "5 completed: 2 completed", w.next(t))
	require.NoError(t, w.end(t))
}

func TestWatchNamesStepsThatATryHasCaught(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	try := func(status string, position int64) run.Step {
		return run.Step{Number: 1, Path: "/do/0/t", Kind: "try", Status: status, Position: position}
	}
	b.applyState(t, r.ID, 3, run.Running, try("running", 3),
		run.Step{Number: 2, Path: "/do/0/t/try/0/a", Kind: "call", Status: "failed", Position: 3})
	w := b.watch(t, r.ID, -1)
	first := <-w.changes
	require.Equal(t, new(false), first.Steps[1].Caught)
	require.Empty(t, first.Caught)
	b.applyState(t, r.ID, 5, run.Completed, try("completed", 5))
	b.changes.Notify(r.ID)
	last := <-w.changes
	require.Equal(t, "4 completed: 1 completed", format(last))
	require.Equal(t, []int64{2}, last.Caught)
	require.NoError(t, w.end(t))
}

func TestWatchMergesConcurrentChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	b.applyState(t, r.ID, 3, run.Running, running(1, 3), running(2, 3))
	b.applyState(t, r.ID, 5, run.Waiting, done(1, 5))
	b.applyState(t, r.ID, 7, run.Failed, running(3, 7))
	w := b.watch(t, r.ID, -1)
	require.Equal(t, "5 failed: 2 running 1 completed 3 running", w.next(t),
		"each step once, in its current state, in order of its change")
	require.NoError(t, w.end(t))
}

func TestWatchContinuesFromASequence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	b.applyState(t, r.ID, 3, run.Running, running(1, 3))
	b.applyState(t, r.ID, 5, run.Running, running(2, 5))
	b.applyState(t, r.ID, 7, run.Completed, done(2, 7))
	for after, want := range map[int64]string{
		0: "5 completed: 1 running 2 completed", 3: "5 completed: 2 completed", 4: "5 completed: 2 completed",
		5: "5 completed:", 99: "5 completed:",
	} {
		w := b.watch(t, r.ID, after)
		require.Equal(t, want, w.next(t), "after %d", after)
		require.NoError(t, w.end(t))
	}
}

// TestWatchSplitsManySteps has more steps in one sequence than one change holds, and a caller that disconnects in
// between.
func TestWatchSplitsManySteps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	const steps, page = 1203, 500
	var all []run.Step
	for n := range int64(steps) {
		all = append(all, done(n+1, 3))
	}
	b.applyState(t, r.ID, 3, run.Completed, all...)
	last := b.row(t, r.ID).Sequence

	var sizes []int
	var sequences []int64
	seen := map[int64]bool{}
	require.NoError(t, b.Watch(b.ctx, read.Watched{Project: here, ID: r.ID, After: -1}, func(c read.Change) error {
		sizes, sequences = append(sizes, len(c.Steps)), append(sequences, c.Run.Sequence)
		for _, s := range c.Steps {
			require.False(t, seen[s.Number], "step %d twice", s.Number)
			seen[s.Number] = true
		}
		return nil
	}))
	require.Equal(t, []int{page, page, steps - 2*page}, sizes)
	require.Equal(t, []int64{last - 1, last - 1, last}, sequences, "only the last part completes the sequence")
	require.Len(t, seen, steps)

	leaving := errors.New("the client disconnected")
	var after int64
	err := b.Watch(b.ctx, read.Watched{Project: here, ID: r.ID, After: -1}, func(c read.Change) error {
		after = c.Run.Sequence
		return leaving
	})
	require.ErrorIs(t, err, leaving)
	again := map[int64]bool{}
	require.NoError(t, b.Watch(b.ctx, read.Watched{Project: here, ID: r.ID, After: after}, func(c read.Change) error {
		for _, s := range c.Steps {
			again[s.Number] = true
		}
		return nil
	}))
	require.Len(t, again, steps, "a watch that continues from the received sequence misses nothing")
}

func TestWatchOfExactlyOnePage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	var all []run.Step
	for n := range int64(500) {
		all = append(all, done(n+1, 3))
	}
	b.applyState(t, r.ID, 3, run.Completed, all...)
	var given []string
	require.NoError(t, b.Watch(b.ctx, read.Watched{Project: here, ID: r.ID, After: -1}, func(c read.Change) error {
		given = append(given, fmt.Sprintf("%d %d", c.Run.Sequence, len(c.Steps)))
		return nil
	}))
	require.Equal(t, []string{"2 500", "3 0"}, given)
}

func TestWatchEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	w := b.watch(t, r.ID, -1)
	require.Equal(t, "2 queued:", w.next(t))
	w.stop()
	require.ErrorIs(t, w.end(t), context.Canceled)
}

func TestWatchOfAMissingRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.Watch(b.ctx, read.Watched{Project: here, ID: "none", After: -1}, func(read.Change) error {
		t.Error("no change expected")
		return nil
	})
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, `"none"`)
}

// TestWatchEndsWhenItsRunIsRemoved: a definitely rejected start removes its row while a watch of it is open.
func TestWatchEndsWhenItsRunIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.insert(t)
	w := b.watch(t, r.ID, -1)
	require.Equal(t, "1 queued:", w.next(t))
	removed, err := b.store.RemoveUnstarted(b.ctx, r.ID, entry(b, r.ID))
	require.NoError(t, err)
	require.True(t, removed)
	requireError(t, w.end(t), apperror.NotFound, apperror.RunNotFound, r.ID)
}

func TestWatchRequestsTheRepairOfARunThatIsBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.begin(t)
	b.lose()
	b.advance(time.Minute)
	w := b.watch(t, r.ID, r.Sequence)
	require.Equal(t, "2 queued:", w.next(t), "the current state is passed at once")
	claimed, ok, err := b.store.ClaimRepair(b.ctx, func(int) time.Duration { return time.Minute })
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, r.ID, claimed.RunID)
	b.applyState(t, r.ID, 9, run.Completed, done(1, 9))
	require.Equal(t, "3 completed: 1 completed", w.next(t), "a watch of a run whose records were lost receives its end")
	require.NoError(t, w.end(t))
}

func TestChanges(t *testing.T) {
	t.Parallel()
	c := pubsub.NewNotifier()
	one, stopOne := c.Subscribe("r1")
	two, stopTwo := c.Subscribe("r1")
	other, stopOther := c.Subscribe("r2")
	defer stopOther()
	c.Notify("r1")
	c.Notify("r1") // without a read in between, it does not block
	c.Notify("r3")
	require.Len(t, one, 1)
	require.Len(t, two, 1)
	require.Empty(t, other)
	<-one
	stopOne()
	c.Notify("r1")
	require.Empty(t, one)
	stopTwo()
	stopTwo()
	c.Notify("r1")
	c.Notify("r2")
	require.Len(t, other, 1)
}
