package livelist_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/livelist"
)

// elsewhere is a store with one run, which another process changes while moving is set.
type elsewhere struct {
	mu       sync.Mutex
	sequence int64
	moving   bool
	reads    int
}

func (e *elsewhere) run() run.Run {
	return run.Run{ID: "r1", Project: here, Status: run.Running, CreatedAt: began, Sequence: e.sequence}
}

func (e *elsewhere) ListRuns(context.Context, run.Filter) ([]run.Run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return []run.Run{e.run()}, nil
}

func (e *elsewhere) RowVersions(context.Context, run.Filter) ([]run.RowVersion, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reads++
	if e.moving {
		e.sequence++
	}
	return []run.RowVersion{{ID: "r1", Sequence: e.sequence}}, nil
}

func (e *elsewhere) CountRuns(context.Context, run.Filter) (run.Counts, error) {
	return run.Counts{}, nil
}

func (e *elsewhere) move(moving bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.moving = moving
}

// during returns the reads of the page within a time.
func (e *elsewhere) during(d time.Duration) int {
	e.mu.Lock()
	before := e.reads
	e.mu.Unlock()
	<-time.After(d)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reads - before
}

// A list that other processes change is read twice per second, one that they leave alone once.
func TestMovingListsAreReadMoreOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &elsewhere{}
		w, err := livelist.New(store, pubsub.NewNotifier()).
			Watch(livelist.Query{Filter: run.Filter{Project: here, Limit: 50}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			for w.Wait(ctx) == nil {
				_, _, err := w.Take(ctx)
				require.NoError(t, err)
			}
		})
		require.InDelta(t, 20, store.during(20*time.Second), 1)
		store.move(true)
		require.InDelta(t, 40, store.during(20*time.Second), 2)
		store.move(false)
		require.InDelta(t, 20, store.during(20*time.Second), 2)
		cancel()
		group.Wait()
		w.Close()
		<-time.After(2 * time.Minute) // the list is kept for a while
	})
}
