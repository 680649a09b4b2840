package batch

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

const (
	// pollEvery is how often batches are polled without a notification, and how soon another process takes over.
	pollEvery = time.Second
	// retryDelay is how long a batch is not tried after Temporal was unavailable.
	retryDelay = 2 * time.Second
	// maxActive is the number of batches in progress at a time. The others wait, in the order of their start.
	maxActive = 16
	// lockName is the name of the lock that elects one process.
	lockName = "batches"
)

// Runner processes the batches in the elected process.
type Runner struct {
	*loop.Loop

	store    WorkStore
	controls Controls
	now      func() time.Time

	mu sync.Mutex
	// efforts are the states of the batches in progress here. They may be lost at any time.
	efforts map[string]*effort
	// turns has one slot for each project, which a batch holds while it has items in flight. So many batches take no more
	// of the platform than one.
	turns *semaphore.Keyed
}

// NewRunner returns a runner. It does nothing before Start.
func NewRunner(store WorkStore, controls Controls, now func() time.Time) *Runner {
	r := &Runner{store: store, controls: controls, now: now, efforts: map[string]*effort{}, turns: semaphore.NewKeyed(1)}
	r.Loop = loop.New(r.run)
	return r
}

func (r *Runner) run(ctx, work context.Context) time.Duration {
	ctx, work = auth.WithActor(ctx, auth.System()), auth.WithActor(work, auth.System())
	delay, err := r.poll(ctx, work)
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Batches make no progress", "error", err)
	}
	return delay
}

// poll processes batches while there are any, unless another process does, and returns the delay before the next poll.
func (r *Runner) poll(ctx, work context.Context) (time.Duration, error) {
	active, err := r.store.ActiveBatches(ctx, 1)
	if err != nil || len(active) == 0 {
		return pollEvery, err
	}
	ran, err := r.store.Exclusive(ctx, lockName, func(ctx context.Context) error { return r.runActive(ctx, work) })
	if !ran {
		// Each attempt costs a connection.
		return retryDelay, err
	}
	return pollEvery, err
}

// runActive processes every active batch until none can proceed here; it returns then, because another process may
// reach Temporal where this one does not.
func (r *Runner) runActive(ctx, work context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	// The batches end with the loop, after their current round: no other process can work while they run.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		id string
		ok bool
	}
	ended := make(chan end, maxActive)
	at := map[string]struct{}{}
	retryAt := map[string]time.Time{}
	for {
		active, err := r.store.ActiveBatches(ctx, maxActive)
		if err != nil {
			return err
		}
		for _, b := range active {
			if _, busy := at[b.ID]; busy || len(at) >= maxActive || time.Now().Before(retryAt[b.ID]) {
				continue
			}
			at[b.ID] = struct{}{}
			e := r.effort(b)
			group.Go(func() {
				ended <- end{b.ID, r.advance(ctx, work, e)}
			})
		}
		if len(at) == 0 {
			return nil
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-ctx.Done():
		case e := <-ended:
			delete(at, e.id)
			if !e.ok {
				retryAt[e.id] = time.Now().Add(retryDelay)
			}
		case <-r.Woken():
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// effort returns the state of a batch. Only active batches have one, which bounds the memory.
func (r *Runner) effort(b Batch) *effort {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.efforts[b.ID]
	if e == nil {
		e = &effort{tries: map[int64]int{}, pace: newPace(b.Rate)}
		r.efforts[b.ID] = e
	}
	e.batch = b
	return e
}

func (r *Runner) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.efforts, id)
}
