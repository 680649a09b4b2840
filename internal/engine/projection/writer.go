package projection

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Store writes updates.
type Store interface {
	ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error)
	// RequestRepairs is the method of [run.RepairStore].
	RequestRepairs(ctx context.Context, list []run.RepairRequest) error
}

// Observer is notified of writes, for metrics and for watches.
type Observer interface {
	// Written is called after each batch, with its runs, their changes of status, and the waiting time of the oldest
	// update.
	Written(ctx context.Context, runIDs []string, transitions []run.Transition, lag time.Duration)
}

const (
	// minRetryDelay and maxRetryDelay bound the delay between retries while the store is unavailable, and after
	// requests for repairs that failed.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 5 * time.Second
	// rejectedAfter is the number of failures of an available store to write a transaction after which the cause is
	// assumed to be in the data.
	rejectedAfter = 5
)

// Writer writes updates to the store in batches: during one transaction, it collects the updates for the next. An
// unavailable store delays rows and no run. A store that is slower than the workers holds them back, see [Writer.Wait].
type Writer struct {
	store    Store
	observer Observer
	now      func() time.Time

	mu      sync.Mutex
	pending map[string]*waiting
	order   turns
	writing map[string]struct{} // the runs of the batch in progress
	backlog backlog
	wake    chan struct{}

	stopping chan struct{}
	done     chan struct{}
	cancel   context.CancelFunc
}

type waiting struct {
	queue  string
	update run.Update
	since  time.Time
	amount amount
}

// NewWriter returns a writer. Nothing is written before Start.
func NewWriter(store Store, observer Observer, now func() time.Time) *Writer {
	return &Writer{
		store: store, observer: observer, now: now, backlog: newBacklog(),
		pending: map[string]*waiting{}, wake: make(chan struct{}, 1), stopping: make(chan struct{}),
		done: make(chan struct{}),
	}
}

// Start starts writing.
func (w *Writer) Start(ctx context.Context) error {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go w.loop(ctx)
	return nil
}

// Stop writes the rest, until ctx ends, and waits for the writer to end.
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
		return fmt.Errorf("writing the last changes of %d runs: %w; they are restored from their histories", len(w.pending),
			ctx.Err())
	}
}

// Accept queues one update. It never blocks: if there is no room, the update is dropped, and so are later ones of its
// run until a repair is requested. The row then stays behind, where any process finds it. Updates of different task
// queues take turns.
func (w *Writer) Accept(queue string, u run.Update, at time.Time) {
	w.mu.Lock()
	if own, taken := w.backlog.take(queue, u); taken {
		if p, ok := w.pending[u.RunID]; ok {
			merge(&p.update, u)
			p.amount = p.amount.plus(own)
		} else {
			w.pending[u.RunID] = &waiting{queue: queue, update: u, since: at, amount: own}
			w.order.add(queue, u.RunID)
		}
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Unsure requests that the row of a run be compared with Temporal, and repaired if it is behind: an accepted update may
// be missing here. It never blocks.
func (w *Writer) Unsure(runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backlog.unsure(runID)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Holds reports whether an update of a run is waiting or being written.
func (w *Writer) Holds(runID string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, waits := w.pending[runID]
	_, writing := w.writing[runID]
	return waits || writing
}

// Wait returns when there is room for more records of a task queue, at the latest after the given time or with ctx. It
// returns at once while the store is unavailable, so that an outage of the database does not delay runs.
func (w *Writer) Wait(ctx context.Context, queue string, most time.Duration) {
	w.mu.Lock()
	room := w.backlog.wait(queue)
	w.mu.Unlock()
	if room == nil {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-room:
	case <-timer.C:
	case <-ctx.Done():
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
			case <-w.again():
				w.request(ctx)
				continue
			case <-w.stopping:
				if batch, since = w.take(); len(batch) == 0 {
					return
				}
			}
		}
		for parts := transactions(batch); len(parts) > 0; parts = parts[1:] {
			if !w.write(ctx, parts[0], since) {
				w.putBack(slices.Concat(parts...), since)
				return
			}
		}
		w.written()
		w.request(ctx)
	}
}

// again returns a channel that fires when repairs must be requested, nil if there are none to request.
func (w *Writer) again() <-chan time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.backlog.suspects) == 0 {
		return nil
	}
	return time.After(maxRetryDelay)
}

// request requests repairs of the rows that are or may be behind. It follows a write, so the store is available. Runs
// that are added meanwhile wait for the next call, because pending updates wait while repairs are requested.
func (w *Writer) request(ctx context.Context) {
	log := logger.FromContext(ctx)
	w.mu.Lock()
	left := len(w.backlog.suspects)
	w.mu.Unlock()
	for ; left > 0; left -= requestsAtOnce {
		w.mu.Lock()
		list := w.backlog.requests()
		w.mu.Unlock()
		if err := w.store.RequestRepairs(ctx, list); err != nil {
			log.WarnContext(ctx, "Repairs of runs whose rows are behind could not be requested, will retry", "error", err)
			return
		}
		lost := 0
		for _, r := range list {
			if r.Force {
				lost++
			}
		}
		if lost > 0 {
			log.WarnContext(ctx, "Projection dropped updates; rows will be rebuilt from histories", "runs", lost)
		}
		w.mu.Lock()
		w.backlog.requested(list)
		w.mu.Unlock()
	}
}

// putBack returns an unwritten batch to the backlog, where Stop counts the rest.
func (w *Writer) putBack(batch []run.Update, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range batch {
		if w.pending[u.RunID] == nil {
			w.pending[u.RunID] = &waiting{update: u, since: since}
		}
	}
}

// take removes updates from the backlog, by turns of task queues and the oldest of each first, as whole runs, up to
// about batchSteps steps and batchBytes. They count as part of the backlog until they are written.
func (w *Writer) take() ([]run.Update, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []run.Update
	var since time.Time
	var sum amount
	w.writing = map[string]struct{}{}
	for {
		id, ok := w.order.first()
		if !ok {
			break
		}
		p := w.pending[id]
		if len(batch) > 0 && sum.plus(p.amount).beyond(batchSteps, batchBytes) {
			break
		}
		w.order.next()
		if len(batch) == 0 || p.since.Before(since) {
			since = p.since
		}
		sum = sum.plus(p.amount)
		delete(w.pending, id)
		w.writing[id] = struct{}{}
		w.backlog.taken(p.queue, p.amount)
		compact(&p.update)
		batch = append(batch, p.update)
	}
	return batch, since
}

// written removes the batch in progress from the backlog.
func (w *Writer) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = nil
	w.backlog.written()
}

// write retries until the batch is written. It returns false if ctx has ended before. If an available store rejects the
// batch, it is written run by run, and a rejected run is left to a repair, so that it does not delay others.
func (w *Writer) write(ctx context.Context, batch []run.Update, since time.Time) bool {
	log := logger.FromContext(ctx)
	rejected := 0
	for delay := minRetryDelay; ; delay = min(2*delay, maxRetryDelay) {
		transitions, err := w.store.ApplyUpdates(ctx, batch)
		w.mu.Lock()
		w.backlog.storeAvailable(err == nil)
		w.mu.Unlock()
		if f, ok := apperror.From(err); err != nil && ctx.Err() == nil && (!ok || f.Class != apperror.Unavailable) {
			rejected++
		}
		if rejected == rejectedAfter {
			return w.divide(ctx, batch, since, err)
		}
		if err == nil {
			if delay > minRetryDelay {
				log.InfoContext(ctx, "Projection writes again", "runs", len(batch), "behind", w.now().Sub(since))
			}
			w.report(ctx, batch, transitions, since)
			return true
		}
		if delay == minRetryDelay {
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

// divide writes the runs of a rejected batch one by one, and drops the update of a single run.
func (w *Writer) divide(ctx context.Context, batch []run.Update, since time.Time, cause error) bool {
	if len(batch) == 1 {
		logger.FromContext(ctx).ErrorContext(ctx, "Projection dropped an update that the store rejects",
			"run_id", batch[0].RunID, "error", cause)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.backlog.drop(batch[0].RunID)
		return true
	}
	for i := range batch {
		if !w.write(ctx, batch[i:i+1], since) {
			return false
		}
	}
	return true
}

func (w *Writer) report(ctx context.Context, batch []run.Update, transitions []run.Transition, since time.Time) {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].RunID
	}
	w.observer.Written(ctx, ids, transitions, w.now().Sub(since))
}
