package stuck

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pause"
)

const (
	// mostFailures is how many failures wait to be written; beyond them the oldest runs' are told by Temporal alone.
	mostFailures = 1000
	// flushEvery is how soon they are.
	flushEvery = 500 * time.Millisecond
)

// Failures keeps the failed workflow tasks of this process's workers, so that whoever looks for runs that are stuck knows why.
// A burst of them costs a statement for each run, and nothing waits for it.
type Failures struct {
	store Store

	mu      sync.Mutex
	waiting map[string]TaskFailure

	cancel context.CancelFunc
	joined sync.WaitGroup
}

// NewFailures returns a writer; what is noted before Start is written after it.
func NewFailures(store Store) *Failures {
	return &Failures{store: store, waiting: map[string]TaskFailure{}}
}

// Note takes a failure to be written. It never blocks.
func (f *Failures) Note(t TaskFailure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, again := f.waiting[t.RunID]; again || len(f.waiting) < mostFailures {
		f.waiting[t.RunID] = t
	}
}

// Start begins to write.
func (f *Failures) Start(ctx context.Context) error {
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.joined.Go(func() {
		for ctx.Err() == nil {
			pause.For(ctx, flushEvery)
			f.flush(ctx)
		}
	})
	return nil
}

// Stop ends the writing and joins it. What is left is not worth waiting for: Temporal tells of it, too.
func (f *Failures) Stop(context.Context) error {
	f.cancel()
	f.joined.Wait()
	return nil
}

// flush writes what waits. What cannot be written is dropped, for the same reason.
func (f *Failures) flush(ctx context.Context) {
	f.mu.Lock()
	batch := make([]TaskFailure, 0, len(f.waiting))
	for _, t := range f.waiting {
		batch = append(batch, t)
	}
	clear(f.waiting)
	f.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	if err := f.store.NoteFailures(ctx, batch); err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Failed workflow tasks could not be noted", "error", err)
	}
}
