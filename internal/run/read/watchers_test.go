package read_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

// counting counts the reads of watches.
type counting struct {
	run.Store

	runs, steps atomic.Int64
}

func (c *counting) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	c.runs.Add(1)
	return c.Store.GetRun(ctx, project, id)
}

func (c *counting) ChangedSteps(ctx context.Context, id string, f run.ChangedFilter) ([]run.Step, error) {
	c.steps.Add(1)
	return c.Store.ChangedSteps(ctx, id, f)
}

// TestWatchesOfOneRunShareReads compares what the watches of one process read with what they receive.
func TestWatchesOfOneRunShareReads(t *testing.T) {
	t.Parallel()
	const watches, rounds = 60, 10
	b := newBench(t)
	over := &counting{Store: b.store}
	s := b.process(over, nil)
	r := b.begin(t)
	given := make([]atomic.Int64, watches)
	seen := make(chan struct{}, watches*(rounds+2))
	var group sync.WaitGroup
	for i := range watches {
		group.Go(func() {
			steps := map[int64]bool{}
			err := s.Watch(b.ctx, read.Watched{Project: here, ID: r.ID, After: -1}, func(c read.Change) error {
				given[i].Add(1)
				for _, step := range c.Steps {
					steps[step.Number] = true
				}
				seen <- struct{}{}
				return nil
			})
			if err != nil || len(steps) != rounds {
				t.Errorf("watch %d received %d steps: %v", i, len(steps), err)
			}
		})
	}
	await := func() {
		for range watches {
			<-seen
		}
	}
	await() // the run in its current state
	before := over.runs.Load() + over.steps.Load()
	for n := range int64(rounds) {
		status := run.Running
		if n == rounds-1 {
			status = run.Completed
		}
		b.applyState(t, r.ID, 3+n, status, done(n+1, 3+n))
		await() // this process is not notified: the poll of one watch finds the change for all
	}
	group.Wait()
	total := int64(0)
	for i := range given {
		total += given[i].Load()
	}
	reads := over.runs.Load() + over.steps.Load() - before
	t.Logf("%d changes were passed to %d watches by %d reads", total, watches, reads)
	require.GreaterOrEqual(t, total, int64(watches*rounds))
	require.Less(t, reads*4, total, "each read serves many watches")
}
