// Package livelist keeps lists of runs current for the clients that watch them.
//
//	lists := livelist.New(store, changes)
//	w, err := lists.Watch(livelist.Query{Filter: filter, Counts: true, Cursor: cursor})
//	defer w.Close()
//	for w.Wait(ctx) == nil {
//		change, changed, err := w.Take(ctx)
//	}
//
// All watchers of the same filter share one list, and all lists share the reads of the runs that this process has
// changed: their IDs come from the notifications, their rows are read once, and [run.Filter.Matches] selects them in
// memory. What other processes have changed is found by polling: each list compares the versions of its first page, of
// the rows that were on it, and of its open rows. There are no goroutines: the watchers read in turn, as often as the
// least patient of them needs it, but not more often than the intervals of this package.
//
// A watcher holds one number, the revision of the last change that it has taken. A slow watcher therefore costs no
// memory; it receives each run in its latest state. A list holds a bounded number of rows. A watcher that has missed
// rows that the list has dropped receives the first page again, with [Change.Reset].
package livelist

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// MaxRows is the maximum number of rows of a change, and of a first page.
	MaxRows = 200
	// maxLists bounds the lists of a project, maxOwned those that one owner watched first, maxIdle those without watchers
	// over all projects, which exist for idleTime so that clients can resume.
	maxLists = 100
	maxOwned = 40
	maxIdle  = 16
	idleTime = time.Minute
)

// Store is the part of [run.Store] that lists read.
type Store interface {
	ListRuns(ctx context.Context, f run.Filter) ([]run.Run, error)
	RowVersions(ctx context.Context, f run.Filter) ([]run.RowVersion, error)
	CountRuns(ctx context.Context, f run.Filter) (run.Counts, error)
}

// Lists are the lists that are watched in this process. It is safe for concurrent use.
type Lists struct {
	store   Store
	changes *pubsub.Notifier

	mu      sync.Mutex
	lists   map[string]*list
	changed *changed // nil while there are no lists
	expiry  *time.Timer
}

// New returns an empty set. The notifier reports the IDs of the runs that this process changes.
func New(store Store, changes *pubsub.Notifier) *Lists {
	return &Lists{store: store, changes: changes, lists: map[string]*list{}}
}

// Query selects a list. The filter is one that [read.Reader.Checked] has returned, of one project; its limit is the
// size of the first page, at most [MaxRows].
type Query struct {
	// Owner is the ID of the token that watches; empty: that of no token.
	Owner  string
	Filter run.Filter
	// Counts requests the counts of the filter's workflow and period.
	Counts bool
	// Cursor is that of the last change that the client has received; empty for the first page.
	Cursor string
}

// Row is a run of a list. A run that does not match has matched before, or may have if the list has more pages.
type Row struct {
	Run     run.Run
	Matches bool
}

// Change is what a watcher receives: with Reset, the first page; without it, the latest changes.
type Change struct {
	Reset bool
	// Rows are in the order of the list with Reset, and in order of their changes without it.
	Rows []Row
	// Removed are the IDs of runs that do not exist any more.
	Removed []string
	// Counts is nil if it was not requested or has not changed.
	Counts *run.Counts
	// Next is set with Reset if the list continues after the rows.
	Next *run.Cursor
	// Cursor is the position after the change.
	Cursor string
}

// Watcher receives the changes of one list. It is for one goroutine.
type Watcher struct {
	lists  *Lists
	list   *list
	counts bool

	closed     bool
	begun      bool  // whether a change was taken
	seen       int64 // revision of the last change taken; negative: none
	countsSeen int64
}

// Watch begins to watch a list. Close ends it.
func (l *Lists) Watch(q Query) (*Watcher, error) {
	key, err := json.Marshal(q.Filter)
	if err != nil {
		return nil, fmt.Errorf("watch runs: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.lists[string(key)]
	if found == nil {
		if found, err = l.add(string(key), q); err != nil {
			return nil, err
		}
	}
	if found.watchers == 0 {
		found.owner = q.Owner
	}
	found.watchers++
	if q.Counts {
		found.counting++
	}
	return &Watcher{lists: l, list: found, counts: q.Counts, seen: found.position(q.Cursor)}, nil
}

// add adds a list. It is called with the mutex held.
func (l *Lists) add(key string, q Query) (*list, error) {
	f, count, owned := q.Filter, 0, 0
	for _, other := range l.lists {
		if other.filter.Project != f.Project || other.watchers == 0 {
			continue
		}
		count++
		if q.Owner != "" && other.owner == q.Owner {
			owned++
		}
	}
	tooMany := func(most int, whose string) error {
		return apperror.New(apperror.Exhausted, apperror.TooManyWatches,
			"%d different lists of project %q are being watched in this server%s, the maximum; close other watches, or retry "+
				"later", most, f.Project, whose).
			WithRetry(idleTime)
	}
	if owned >= maxOwned {
		return nil, tooMany(maxOwned, " by one token")
	}
	if count >= maxLists {
		return nil, tooMany(maxLists, "")
	}
	if l.changed == nil {
		l.changed = newChanged(l.store, l.changes)
	}
	added := &list{
		key: key, epoch: rand.Text(), filter: f, store: l.store, changed: l.changed, active: l.active,
		lock: semaphore.NewWeighted(1), rows: newJournal[row](maxRows, maxRowBytes),
	}
	l.lists[key] = added
	return added, nil
}

// active is the number of lists with watchers.
func (l *Lists) active() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, other := range l.lists {
		if other.watchers > 0 {
			count++
		}
	}
	return count
}

// Close ends the watch. Closing again does nothing.
func (w *Watcher) Close() {
	if w.closed {
		return
	}
	w.closed = true
	l := w.lists
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.list.watchers--; w.list.watchers == 0 {
		w.list.idleSince = time.Now()
	}
	if w.counts {
		w.list.counting--
	}
	l.expire()
}

// expire removes lists that have been idle for long, and the oldest ones of too many. It is called with the mutex held.
func (l *Lists) expire() {
	idle := 0
	var oldest *list
	for key, other := range l.lists {
		switch {
		case other.watchers > 0:
		case time.Since(other.idleSince) >= idleTime:
			delete(l.lists, key)
		default:
			idle++
			if oldest == nil || other.idleSince.Before(oldest.idleSince) {
				oldest = other
			}
		}
	}
	if idle > maxIdle {
		delete(l.lists, oldest.key)
	}
	if len(l.lists) == 0 && l.changed != nil {
		l.changed.pending.Close()
		l.changed = nil
	}
	if l.expiry != nil {
		l.expiry.Stop()
	}
	if idle > 0 {
		l.expiry = time.AfterFunc(idleTime, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.expire()
		})
	}
}

// Wait returns nil when there is a change to take; the first one is there at once. Its error is that of the store or of
// ctx.
func (w *Watcher) Wait(ctx context.Context) error {
	for {
		signal := w.list.changed.pending.Changed()
		news, due, limited, err := w.look(ctx)
		if err != nil || news {
			return err
		}
		if limited {
			signal = nil // it is closed already
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
		case <-signal:
		case <-timer.C:
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// look refreshes the list, and reports whether there is a change to take. Otherwise it returns when to look again, and
// whether there are changes that must not be read before.
func (w *Watcher) look(ctx context.Context) (news bool, due time.Time, limited bool, err error) {
	l := w.list
	if err := l.lock.Acquire(ctx, 1); err != nil {
		return false, due, false, err
	}
	defer l.lock.Release(1)
	if due, limited, err = l.refresh(ctx, w.counts); err != nil {
		return false, due, false, err
	}
	news = !w.begun || w.seen < l.rows.revision || w.counts && w.countsSeen < l.countsRevision
	return news, due, limited, nil
}

// Take returns the next change, with up to [MaxRows] rows; false if there is none.
func (w *Watcher) Take(ctx context.Context) (c Change, changed bool, err error) {
	l := w.list
	if err := l.lock.Acquire(ctx, 1); err != nil {
		return c, false, err
	}
	defer l.lock.Release(1)
	if _, _, err := l.refresh(ctx, w.counts); err != nil {
		return c, false, err
	}
	entries, complete := l.rows.since(w.seen, MaxRows)
	if w.seen < 0 || !complete {
		if err := l.readPage(ctx); err != nil {
			return c, false, err
		}
		c.Reset, c.Next = true, l.next
		for _, id := range l.page {
			if r, ok := l.rows.get(id); ok && r.matches {
				c.Rows = append(c.Rows, Row{r.run, true})
			}
		}
		w.seen = l.rows.revision
	} else {
		w.take(&c, entries)
	}
	if w.counts && (w.countsSeen < l.countsRevision || c.Reset) {
		c.Counts, w.countsSeen = &l.counts, l.countsRevision
	}
	changed = !w.begun || c.Reset || len(entries) > 0 || c.Counts != nil
	w.begun = true
	c.Cursor = l.epoch + "." + strconv.FormatInt(w.seen, 10)
	return c, changed, nil
}

func (w *Watcher) take(c *Change, entries []*entry[row]) {
	for _, e := range entries {
		if e.value.gone {
			c.Removed = append(c.Removed, e.id)
		} else {
			c.Rows = append(c.Rows, Row{e.value.run, e.value.matches})
		}
		w.seen = e.revision
	}
}

// position returns the revision of a cursor of this list; -1 for all others.
func (l *list) position(cursor string) int64 {
	epoch, number, _ := strings.Cut(cursor, ".")
	revision, err := strconv.ParseInt(number, 10, 64)
	if epoch != l.epoch || err != nil || revision < 0 {
		return -1
	}
	return revision
}
