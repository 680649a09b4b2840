package batch

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/routine"
)

const (
	// lookEvery is how often batches are looked for that nobody told of, and how soon another process takes over.
	lookEvery = time.Second
	// restFor is how long a batch is left alone after Temporal was away.
	restFor = 2 * time.Second
	// mostAtOnce is how many batches are worked at a time. The others wait, in the order of their start.
	mostAtOnce = 16
	// exclusively is the name under which one process works.
	exclusively = "batches"
)

// Runner works through the batches, in whichever process does so at a time.
type Runner struct {
	store    WorkStore
	controls Controls
	now      func() time.Time
	wake     chan struct{}

	mu sync.Mutex
	// efforts are what is known of the batches that this process is at. Nothing depends on it.
	efforts map[string]*effort

	routine routine.Routine
}

// NewRunner returns a runner. Nothing is done before Start.
func NewRunner(store WorkStore, controls Controls, now func() time.Time) *Runner {
	return &Runner{store: store, controls: controls, now: now, wake: make(chan struct{}, 1), efforts: map[string]*effort{}}
}

// Start begins to look for batches.
func (r *Runner) Start(ctx context.Context) error {
	r.routine.Start(auth.WithActor(ctx, auth.System()), r.loop)
	return nil
}

// Stop ends it and joins it: items in flight are let through, and told of, until ctx ends. What is not told by then is done again.
func (r *Runner) Stop(ctx context.Context) error {
	r.routine.Stop(ctx)
	return nil
}

// Wake has batches looked for now. It does not block.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Runner) loop(ctx, work context.Context) {
	for ctx.Err() == nil {
		rest, err := r.look(ctx, work)
		if err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "Batches rest", "error", err)
		}
		r.sleep(ctx, rest)
	}
}

// look works while there is anything to do, unless another process is at it, and says how long to rest then.
func (r *Runner) look(ctx, work context.Context) (time.Duration, error) {
	active, err := r.store.ActiveBatches(ctx, 1)
	if err != nil || len(active) == 0 {
		return lookEvery, err
	}
	ran, err := r.store.Exclusive(ctx, exclusively, func(ctx context.Context) error { return r.act(ctx, work) })
	if !ran {
		// Each try costs a connection.
		return restFor, err
	}
	return lookEvery, err
}

func (r *Runner) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.wake:
	case <-timer.C:
	}
}

// act has every active batch worked until none is left that could go on here: another process may reach Temporal where this one
// does not.
func (r *Runner) act(ctx, work context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	// Whatever ends the loop ends the batches too, after the round that each is at: nobody else can work while they do.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		id string
		ok bool
	}
	ended := make(chan end, mostAtOnce)
	at := map[string]struct{}{}
	rest := map[string]time.Time{}
	for {
		active, err := r.store.ActiveBatches(ctx, mostAtOnce)
		if err != nil {
			return err
		}
		for _, b := range active {
			if _, busy := at[b.ID]; busy || len(at) >= mostAtOnce || time.Now().Before(rest[b.ID]) {
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
		timer := time.NewTimer(lookEvery)
		select {
		case <-ctx.Done():
		case e := <-ended:
			delete(at, e.id)
			if !e.ok {
				rest[e.id] = time.Now().Add(restFor)
			}
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// effort returns what is known of a batch, in a memory that is bounded by what is active.
func (r *Runner) effort(b Batch) *effort {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.efforts[b.ID]
	if e == nil {
		e = &effort{tries: map[int64]int{}, pace: pace{rate: b.Rate}}
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
