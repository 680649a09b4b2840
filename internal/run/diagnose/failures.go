package diagnose

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// maxFailures is how many runs' failures may wait to be written. Failures of further runs are dropped: Temporal
	// reports them, too.
	maxFailures = 1000
	// flushEvery is how often failures are written.
	flushEvery = 500 * time.Millisecond
)

// Under returns a failure with what its worker gets of a processor. A task that took too long by the clock is no fault
// of its run where the worker is short of processor time.
func (t TaskFailure) Under(worker string, s processor.State) TaskFailure {
	if t.Cause == run.Deadlock && s.Short() {
		t.Cause, t.Text = run.ProcessorShortage, shortageOf(worker, s)+": "+t.Text
	}
	return t
}

// Failures stores the failed workflow tasks of this process's workers, from which the [Watcher] determines causes. A
// burst of failures costs one statement for each run, and no caller waits for it.
type Failures struct {
	*loop.Loop

	store Store

	mu      sync.Mutex
	waiting map[string]TaskFailure
}

// NewFailures returns a writer. Failures noted before Start are written after it.
func NewFailures(store Store) *Failures {
	f := &Failures{store: store, waiting: map[string]TaskFailure{}}
	f.Loop = loop.New(f.flush)
	return f
}

// Note schedules a failure to be written. It never blocks.
func (f *Failures) Note(t TaskFailure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, replaced := f.waiting[t.RunID]; replaced || len(f.waiting) < maxFailures {
		f.waiting[t.RunID] = t
	}
}

// flush writes the waiting failures. Those that cannot be written, or are not written yet when the process stops, are
// dropped: Temporal reports them, too.
func (f *Failures) flush(ctx, _ context.Context) time.Duration {
	f.mu.Lock()
	batch := make([]TaskFailure, 0, len(f.waiting))
	for _, t := range f.waiting {
		batch = append(batch, t)
	}
	clear(f.waiting)
	f.mu.Unlock()
	if len(batch) == 0 {
		return flushEvery
	}
	if err := f.store.NoteFailures(ctx, batch); err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Failed workflow tasks could not be noted", "error", err)
	}
	return flushEvery
}
