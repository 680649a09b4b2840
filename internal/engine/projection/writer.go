package projection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Store is where updates go.
type Store interface {
	ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error)
}

// Observer is told what was written, for metrics and for watches.
type Observer interface {
	// Written is called after each batch: the runs that were in it, their changes of status, and how long the oldest
	// update had waited.
	Written(ctx context.Context, runIDs []string, transitions []run.Transition, lag time.Duration)
}

const (
	// batchSteps bounds the steps of one transaction.
	batchSteps = 2000
	// maxBacklogSteps bounds what waits for the store. Beyond it updates are dropped; the runs are found to be behind
	// when they next do something or are read, and are made up for from their histories.
	maxBacklogSteps = 200_000
	// retryFirst and retryMost bound the pace of attempts while the store is away.
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Writer writes updates to the store in batches: while one transaction is under way, what comes in is gathered for the
// next. A store that is away delays rows and touches no run.
type Writer struct {
	store    Store
	observer Observer
	now      func() time.Time

	mu      sync.Mutex
	pending map[string]*waiting
	order   []string
	steps   int
	dropped bool
	wake    chan struct{}

	stopping chan struct{}
	done     chan struct{}
	cancel   context.CancelFunc
}

type waiting struct {
	update run.Update
	since  time.Time
}

// NewWriter returns a writer. Nothing is written before Start.
func NewWriter(store Store, observer Observer, now func() time.Time) *Writer {
	return &Writer{
		store: store, observer: observer, now: now,
		pending: map[string]*waiting{}, wake: make(chan struct{}, 1), stopping: make(chan struct{}), done: make(chan struct{}),
	}
}

// Start begins to write.
func (w *Writer) Start(ctx context.Context) error {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go w.loop(ctx)
	return nil
}

// Stop writes what is left, until ctx ends, and joins the writer.
func (w *Writer) Stop(ctx context.Context) error {
	close(w.stopping)
	defer w.cancel()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		w.cancel()
		<-w.done
		w.mu.Lock()
		defer w.mu.Unlock()
		return fmt.Errorf("writing the last changes of %d runs: %w; they are made up for from their histories", len(w.pending), ctx.Err())
	}
}

// Accept takes one update to write. It never blocks.
func (w *Writer) Accept(u run.Update, at time.Time) {
	w.mu.Lock()
	if w.steps+len(u.Steps) > maxBacklogSteps && len(w.pending) > 0 {
		w.dropped = true
	} else {
		w.steps += len(u.Steps)
		if p, ok := w.pending[u.RunID]; ok {
			merge(&p.update, u)
		} else {
			w.pending[u.RunID] = &waiting{update: u, since: at}
			w.order = append(w.order, u.RunID)
		}
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Writer) loop(ctx context.Context) {
	defer close(w.done)
	for {
		batch, since := w.take()
		if len(batch) == 0 {
			select {
			case <-w.wake:
				continue
			case <-w.stopping:
				if batch, since = w.take(); len(batch) == 0 {
					return
				}
			}
		}
		if !w.write(ctx, batch, since) {
			w.putBack(batch, since)
			return
		}
	}
}

// putBack returns a batch that was not written to the backlog, where Stop counts what is left.
func (w *Writer) putBack(batch []run.Update, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range batch {
		if w.pending[u.RunID] == nil {
			w.pending[u.RunID] = &waiting{update: u, since: since}
		}
	}
}

// take removes the oldest updates from the backlog, whole runs, up to about batchSteps steps.
func (w *Writer) take() ([]run.Update, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []run.Update
	var since time.Time
	steps, n := 0, 0
	for _, id := range w.order {
		p := w.pending[id]
		if n > 0 && steps+len(p.update.Steps) > batchSteps {
			break
		}
		if n == 0 || p.since.Before(since) {
			since = p.since
		}
		n++
		steps += len(p.update.Steps)
		delete(w.pending, id)
		compact(&p.update)
		batch = append(batch, p.update)
	}
	w.order = w.order[n:]
	w.steps -= steps
	return batch, since
}

// write tries until the batch is written; false when ctx has ended before.
func (w *Writer) write(ctx context.Context, batch []run.Update, since time.Time) bool {
	log := logger.FromContext(ctx)
	for delay := retryFirst; ; delay = min(2*delay, retryMost) {
		transitions, err := w.store.ApplyUpdates(ctx, batch)
		if err == nil {
			if delay > retryFirst {
				log.InfoContext(ctx, "Projection writes again", "runs", len(batch), "behind", w.now().Sub(since))
			}
			w.report(ctx, batch, transitions, since)
			return true
		}
		if delay == retryFirst {
			log.WarnContext(ctx, "Projection cannot write, will retry", "runs", len(batch), "error", err)
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

func (w *Writer) report(ctx context.Context, batch []run.Update, transitions []run.Transition, since time.Time) {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].RunID
	}
	w.observer.Written(ctx, ids, transitions, w.now().Sub(since))
	w.mu.Lock()
	dropped := w.dropped
	w.dropped = false
	w.mu.Unlock()
	if dropped {
		logger.FromContext(ctx).WarnContext(ctx, "Projection fell too far behind and dropped updates; rows are made up for from histories")
	}
}
