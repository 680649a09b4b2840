package child

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Link is an awaited run that requires an action.
type Link struct {
	RunID   string
	Project string
	Parent  string
	// Ended and ParentEnded report which of the two has ended. A parent without a row counts as ended.
	Ended, ParentEnded bool
	// CancelRequested and ParentCanceled report which of the two has a cancellation request.
	CancelRequested, ParentCanceled bool
}

// Store stores which runs are awaited.
type Store interface {
	// Due returns up to limit links with run IDs above after, in order, whose run has ended, or whose parent has ended or
	// a cancellation request and whose run has no such request.
	Due(ctx context.Context, after string, limit int) ([]Link, error)
	// DueFor returns those of them with one of the runs at either end.
	DueFor(ctx context.Context, runIDs []string) ([]Link, error)
	// Key returns the key of the request that made a run, and whether the parent must start no child (see
	// [run.ErrAncestorCanceled]); awaited is false when the run is no longer awaited.
	Key(ctx context.Context, runID string) (key string, canceled, awaited bool, err error)
	// MarkNotified removes the record that a run is awaited.
	MarkNotified(ctx context.Context, runID string) error
}

// ErrUnreadable is a notifier's error for a run whose end is in Temporal but cannot be read in this process, because a
// key is missing or the end is permanently unreadable.
var ErrUnreadable = errors.New("its end cannot be read")

// Notifier notifies parents of the ends of their children.
type Notifier interface {
	// NotifyParent notifies the parent of r, which has ended; canceled reports that r was canceled with its parent. It
	// may return [run.ErrNotKnown], [run.ErrClosed] and [ErrUnreadable]. Repeating it changes nothing.
	NotifyParent(ctx context.Context, r run.Run, canceled bool) error
	// NotifyUnreadable notifies the parent that r has ended with an unreadable result, which is a failure.
	NotifyUnreadable(ctx context.Context, r run.Run, why error) error
}

// Exclusive runs work that no other process runs at the same time; see [store.Store.Exclusive].
type Exclusive func(ctx context.Context, name string, work func(context.Context) error) (bool, error)

const (
	// scanEvery is the interval between scans for ends of which this process received no call of Ended.
	scanEvery = 3 * time.Second
	// pageSize is how many links are read at a time, and parallel how many of them are processed concurrently.
	pageSize = 500
	parallel = 16
	// lock is the name of the lock that a scan holds.
	lock = "awaited runs"
	// readWithin is how long the reading of an unreadable end is retried, until a key is restored, before its parent is
	// notified of the failure.
	readWithin = time.Hour
	// parentEnded and parentCanceled are the reasons for which a child is canceled.
	parentEnded    = "the run that awaited it has ended"
	parentCanceled = "the run that awaits it is being canceled"
)

// Watcher notifies parents of the ends of runs that they await, and cancels awaited runs whose parents have ended or
// are being canceled. It processes runs passed to Ended at once, and finds those of all processes by scans.
type Watcher struct {
	*loop.Loop

	store     Store
	rows      Rows
	runs      Runs
	notifier  Notifier
	exclusive Exclusive
	// unknown delays links whose parent to notify, or run to cancel, is missing in the Temporal of this process.
	unknown *delays
	// unreadable delays runs whose ends cannot be read.
	unreadable *delays

	mu      sync.Mutex
	changed []string  // runs that have ended, or have a new cancellation request
	scanned time.Time // when the last scan began; only poll uses it
}

// NewWatcher returns a watcher that does nothing before Start.
func NewWatcher(store Store, rows Rows, runs Runs, notifier Notifier, exclusive Exclusive) *Watcher {
	w := &Watcher{
		store: store, rows: rows, runs: runs, notifier: notifier, exclusive: exclusive, unknown: newDelays(),
		unreadable: newDelays(),
	}
	w.Loop = loop.New(w.poll)
	return w
}

// Ended schedules runs that have just ended. It does not block.
func (w *Watcher) Ended(runIDs ...string) { w.schedule(runIDs...) }

// schedule schedules the links of runs whose rows have just changed.
func (w *Watcher) schedule(runIDs ...string) {
	w.mu.Lock()
	w.changed = append(w.changed, runIDs...)
	if len(w.changed) > pageSize*parallel {
		w.changed = nil // a scan finds them
	}
	w.mu.Unlock()
	w.Wake()
}

func (w *Watcher) poll(ctx, _ context.Context) time.Duration {
	w.mu.Lock()
	ids := w.changed
	w.changed = nil
	w.mu.Unlock()
	w.logError(ctx, w.processChanged(ctx, ids))
	switch {
	case w.scanned.IsZero(): // the first scan is one interval after the start
		w.scanned = time.Now()
	case time.Since(w.scanned) >= scanEvery:
		w.scanned = time.Now()
		w.logError(ctx, w.scan(ctx))
	}
	return time.Until(w.scanned.Add(scanEvery))
}

func (*Watcher) logError(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	level := slog.LevelWarn
	if f, ok := apperror.From(err); ok && f.Class == apperror.Unavailable {
		level = slog.LevelDebug // other components log that the database or Temporal is unavailable
	}
	logger.FromContext(ctx).Log(ctx, level, "Parents could not be notified of the ends of child runs, will retry",
		"error", err)
}

func (w *Watcher) processChanged(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	links, err := w.store.DueFor(ctx, ids)
	if err != nil {
		return err
	}
	return w.processAll(ctx, links)
}

// scan processes all links that are due. Mostly there is none, and then no lock is taken.
func (w *Watcher) scan(ctx context.Context) error {
	links, err := w.store.Due(ctx, "", 1)
	if err != nil || len(links) == 0 {
		return err
	}
	_, err = w.exclusive(ctx, lock, func(ctx context.Context) error {
		var errs []error
		for after := ""; ; {
			links, err := w.store.Due(ctx, after, pageSize)
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			errs = append(errs, w.processAll(ctx, links))
			if len(links) < pageSize {
				return errors.Join(errs...)
			}
			after = links[len(links)-1].RunID
		}
	})
	return err
}

func (w *Watcher) processAll(ctx context.Context, links []Link) error {
	var (
		group errgroup.Group
		mu    sync.Mutex
		errs  []error
	)
	group.SetLimit(parallel)
	for _, l := range links {
		group.Go(func() error {
			if err := w.process(ctx, l); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	const maxErrors = 3
	return errors.Join(errs[:min(len(errs), maxErrors)]...)
}

// process performs the action that a link requires.
func (w *Watcher) process(ctx context.Context, l Link) error {
	switch {
	case l.Ended && l.ParentEnded:
		return w.store.MarkNotified(ctx, l.RunID)
	case l.Ended:
		return w.notify(ctx, l)
	case l.CancelRequested:
		return nil
	case l.ParentEnded:
		return w.cancel(ctx, l, parentEnded)
	case l.ParentCanceled:
		return w.cancel(ctx, l, parentCanceled)
	}
	return nil
}

// cancel cancels a run that nothing awaits any more, and schedules its own children. A run in another Temporal is left
// to a process that is connected there, and retried here with increasing delays.
func (w *Watcher) cancel(ctx context.Context, l Link, reason string) error {
	if !w.unknown.elapsed(l.RunID) {
		return nil
	}
	canceled, err := cancel(ctx, w.runs, l.Project, l.RunID, reason)
	if apperror.Is(err, apperror.RunElsewhere) {
		w.unknown.extend(l.RunID)
	}
	if canceled { // its row has the request, so it is not due itself
		w.schedule(l.RunID)
	}
	return err
}

// notify notifies the parent. A parent that this Temporal does not have may be in another one, or not have arrived yet:
// its row is decisive, and until the row has ended the notification is retried. Reading an end that cannot be read in
// this process is retried for an hour.
func (w *Watcher) notify(ctx context.Context, l Link) error {
	if !w.unknown.elapsed(l.RunID) || !w.unreadable.elapsed(l.RunID) {
		return nil
	}
	key, canceled, awaited, err := w.store.Key(ctx, l.RunID)
	if err != nil || !awaited {
		return err
	}
	r, err := w.rows.GetRun(ctx, l.Project, l.RunID)
	if err != nil {
		return err
	}
	r.Parent.Key = key
	canceled = canceled && r.Status == run.Canceled
	if canceled && !l.ParentCanceled { // the child was canceled before the runs between it and the top
		_, err := cancel(ctx, w.runs, l.Project, l.Parent, parentCanceled)
		if apperror.Is(err, apperror.RunElsewhere) {
			w.unknown.extend(l.RunID)
		}
		if err != nil {
			return err
		}
	}
	err = w.notifier.NotifyParent(ctx, r, canceled)
	if errors.Is(err, ErrUnreadable) {
		if w.unreadable.age(l.RunID) < readWithin {
			w.unreadable.extend(l.RunID)
			return fmt.Errorf("run %s cannot be notified of the end of run %s: %w", l.Parent, l.RunID, err)
		}
		err = w.notifier.NotifyUnreadable(ctx, r, err)
	}
	if errors.Is(err, run.ErrNotKnown) {
		w.unknown.extend(l.RunID)
		return fmt.Errorf("temporal does not have run %s, which awaits run %s: %w", l.Parent, l.RunID, err)
	}
	if err != nil && !errors.Is(err, run.ErrClosed) {
		return err
	}
	return w.store.MarkNotified(ctx, l.RunID)
}
