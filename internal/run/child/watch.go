package child

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Link is a run that is awaited, where something is to be done about it.
type Link struct {
	RunID   string
	Project string
	Parent  string
	// Ended and ParentEnded tell which of the two has. A parent whose row is gone has.
	Ended, ParentEnded bool
	CancelRequested    bool
}

// Store knows which runs are awaited.
type Store interface {
	// Due returns up to limit links beyond a run ID, in order, of which the run has ended, or the parent has and the run was not asked to.
	Due(ctx context.Context, after string, limit int) ([]Link, error)
	// DueFor returns those of them that have one of the runs at either end.
	DueFor(ctx context.Context, runIDs []string) ([]Link, error)
	// Key returns the key of the request that made a run; false when it is not awaited any more.
	Key(ctx context.Context, runID string) (key string, awaited bool, err error)
	// Told forgets that a run is awaited.
	Told(ctx context.Context, runID string) error
}

// ErrUnreadable is a teller's answer for a run whose end Temporal has and nobody here can read: for want of a key, or for good.
var ErrUnreadable = errors.New("its end cannot be read")

// Teller tells runs of the ends of others.
type Teller interface {
	// TellParent tells the parent of r, which has ended, of that. It may answer [run.ErrNotKnown], [run.ErrClosed] and [ErrUnreadable].
	// Telling it again changes nothing.
	TellParent(ctx context.Context, r run.Run) error
	// TellUnreadable tells it that r has ended and that nobody can read how, which is a failure.
	TellUnreadable(ctx context.Context, r run.Run, why error) error
}

// Alone runs work that no other process does at the same time; see [store.Store.Exclusive].
type Alone func(ctx context.Context, name string, work func(context.Context) error) (bool, error)

const (
	// lookEvery is how soon an end is told of that nobody heard of when it was written.
	lookEvery = 3 * time.Second
	// page is how many links are read, and wide how many of them are worked on at a time.
	page = 500
	wide = 16
	// lock is what whoever looks holds.
	lock = "awaited runs"
	// readWithin is how long an end that cannot be read is tried again, for a key to be put back, before its parent is told that.
	readWithin = time.Hour
	// parentEnded is why a run is canceled.
	parentEnded = "the run that awaited it has ended"
)

// Watch tells parents of the ends of runs that they await, and cancels runs whose parents have ended: at once those that
// it is told of, and all others, of all processes, by looking for them.
type Watch struct {
	store  Store
	rows   Rows
	runs   Runs
	teller Teller
	alone  Alone
	// unknown are the links of which this process's Temporal does not know the parent that is to be told, or the run that is to be canceled.
	unknown patience
	// unread are the runs whose ends cannot be read.
	unread patience

	mu    sync.Mutex
	ended []string
	wake  chan struct{}

	stop   context.CancelFunc
	joined sync.WaitGroup
}

// NewWatch returns a watch that does nothing yet.
func NewWatch(store Store, rows Rows, runs Runs, teller Teller, alone Alone) *Watch {
	return &Watch{
		store: store, rows: rows, runs: runs, teller: teller, alone: alone, wake: make(chan struct{}, 1),
		unknown: patience{waits: map[string]wait{}}, unread: patience{waits: map[string]wait{}},
	}
}

// Start begins to watch.
func (w *Watch) Start(ctx context.Context) error {
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.joined.Go(func() { w.loop(ctx) })
	return nil
}

// Stop ends it. What it was about is found again by whoever looks next.
func (w *Watch) Stop(context.Context) error {
	w.stop()
	w.joined.Wait()
	return nil
}

// Ended takes runs that have just ended. It does not block.
func (w *Watch) Ended(runIDs ...string) {
	w.mu.Lock()
	w.ended = append(w.ended, runIDs...)
	if len(w.ended) > page*wide {
		w.ended = nil // they are found by looking
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watch) loop(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			w.mu.Lock()
			ids := w.ended
			w.ended = nil
			w.mu.Unlock()
			w.note(ctx, w.heard(ctx, ids))
		case <-ticker.C:
			w.note(ctx, w.look(ctx))
		}
	}
}

func (*Watch) note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	level := slog.LevelWarn
	if f, ok := fault.From(err); ok && f.Class == fault.Unavailable {
		level = slog.LevelDebug // whoever is away is told of elsewhere
	}
	logger.FromContext(ctx).Log(ctx, level, "Runs could not be told of the ends of others, will retry", "error", err)
}

func (w *Watch) heard(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	links, err := w.store.DueFor(ctx, ids)
	if err != nil {
		return err
	}
	return w.settle(ctx, links)
}

// look goes through all that is due. Mostly that is nothing, for which no lock is taken.
func (w *Watch) look(ctx context.Context) error {
	w.unknown.sweep()
	w.unread.sweep()
	links, err := w.store.Due(ctx, "", 1)
	if err != nil || len(links) == 0 {
		return err
	}
	_, err = w.alone(ctx, lock, func(ctx context.Context) error {
		var errs []error
		for after := ""; ; {
			links, err := w.store.Due(ctx, after, page)
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			errs = append(errs, w.settle(ctx, links))
			if len(links) < page {
				return errors.Join(errs...)
			}
			after = links[len(links)-1].RunID
		}
	})
	return err
}

func (w *Watch) settle(ctx context.Context, links []Link) error {
	var (
		group errgroup.Group
		mu    sync.Mutex
		errs  []error
	)
	group.SetLimit(wide)
	for _, l := range links {
		group.Go(func() error {
			if err := w.one(ctx, l); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in errs
	const enough = 3
	return errors.Join(errs[:min(len(errs), enough)]...)
}

// one does what is to be done about one link.
func (w *Watch) one(ctx context.Context, l Link) error {
	switch {
	case l.Ended && l.ParentEnded:
		return w.store.Told(ctx, l.RunID)
	case l.Ended:
		return w.tell(ctx, l)
	case l.ParentEnded && !l.CancelRequested:
		return w.orphan(ctx, l)
	}
	return nil
}

// orphan cancels a run that nobody awaits any more. One that is in another Temporal is left to a process that is connected there, and asked
// for here less and less often.
func (w *Watch) orphan(ctx context.Context, l Link) error {
	if !w.unknown.over(l.RunID) {
		return nil
	}
	err := cancel(auth.WithActor(ctx, auth.System()), w.runs, l.Project, l.RunID, parentEnded)
	if fault.Is(err, fault.RunElsewhere) {
		w.unknown.more(l.RunID)
	}
	return err
}

// tell tells the parent. One that Temporal does not know may be in another place than where this process looks, or not be known there
// yet: its own row decides, and until that has ended it is told again. An end that cannot be read here is tried again for an hour.
func (w *Watch) tell(ctx context.Context, l Link) error {
	if !w.unknown.over(l.RunID) || !w.unread.over(l.RunID) {
		return nil
	}
	key, awaited, err := w.store.Key(ctx, l.RunID)
	if err != nil || !awaited {
		return err
	}
	r, err := w.rows.GetRun(ctx, l.Project, l.RunID)
	if err != nil {
		return err
	}
	r.Parent.Key = key
	err = w.teller.TellParent(ctx, r)
	if errors.Is(err, ErrUnreadable) {
		if w.unread.age(l.RunID) < readWithin {
			w.unread.more(l.RunID)
			return fmt.Errorf("run %s cannot be told of run %s: %w", l.Parent, l.RunID, err)
		}
		err = w.teller.TellUnreadable(ctx, r, err)
	}
	if errors.Is(err, run.ErrNotKnown) {
		w.unknown.more(l.RunID)
		return fmt.Errorf("temporal does not know run %s, which awaits run %s: %w", l.Parent, l.RunID, err)
	}
	if err != nil && !errors.Is(err, run.ErrClosed) {
		return err
	}
	return w.store.Told(ctx, l.RunID)
}
