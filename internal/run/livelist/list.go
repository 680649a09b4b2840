package livelist

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// pollInterval is the time between two reads of the first page, which find what other processes have changed;
	// movingInterval after a read that has found something.
	pollInterval   = time.Second
	movingInterval = 500 * time.Millisecond
	// firstFresh is the maximum age of the page that a new watcher receives.
	firstFresh = 250 * time.Millisecond
	// countInterval is the time between two counts while the runs change, recountInterval while no change is known: other
	// processes may have changed runs that the first page does not contain.
	countInterval   = time.Second
	recountInterval = 5 * time.Second
	// maxRows and maxRowBytes bound the rows of a list, which are the first page and the last changes.
	maxRows     = 600
	maxRowBytes = 4 << 20
)

// row is a run of a list.
type row struct {
	run     run.Run
	matches bool
	gone    bool
}

// list is one list, shared by its watchers. One watcher reads at a time; the others use what it has read.
type list struct {
	key     string
	epoch   string // distinguishes cursors of this list from others
	filter  run.Filter
	store   Store
	changed *changed
	active  func() int // the number of lists with watchers

	owner              string    // of the first watcher; guarded by Lists.mu
	watchers, counting int       // guarded by Lists.mu
	idleSince          time.Time // guarded by Lists.mu

	lock *semaphore.Weighted // guards all below

	seen     int64 // revision of the changed runs up to which the list is
	rows     *journal[row]
	page     []string // IDs of the first page, in order; nil before the first read
	inPage   map[string]bool
	next     *run.Cursor // of the last run of the page, if the list continues after it
	loaded   bool
	polledAt time.Time
	nextPoll time.Time
	polled   int64 // revision of the rows when the page was read

	counts         run.Counts
	countsRevision int64
	countsStale    bool
	countedAt      time.Time
	nextCount      time.Time
}

// refresh brings the list up to date as far as it is due, and returns when it is due again; limited reports that there
// are changes that must not be read before. It is called with the lock held.
func (l *list) refresh(ctx context.Context, counting bool) (due time.Time, limited bool, err error) {
	again, err := l.changed.read(ctx)
	if err != nil {
		return due, false, err
	}
	heads, revision, complete := l.changed.since(l.seen)
	now := time.Now()
	switch {
	case !l.loaded || !complete:
		l.rows.reset()
		err = l.load(ctx)
	default:
		if err = l.apply(ctx, heads); err == nil && !now.Before(l.nextPoll) {
			err = l.poll(ctx)
		}
	}
	if err != nil {
		return due, false, err
	}
	l.seen = revision
	due = earlier(l.nextPoll, again)
	if counting {
		if err := l.count(ctx); err != nil {
			return due, false, err
		}
		due = earlier(due, l.countDue())
	}
	return due, !again.IsZero(), nil
}

// load reads the first page.
func (l *list) load(ctx context.Context) error {
	began := time.Now()
	f := l.filter
	f.Limit++
	page, err := l.store.ListRuns(ctx, f)
	if err != nil {
		return err
	}
	more := len(page) > l.filter.Limit
	if more {
		page = page[:l.filter.Limit]
	}
	ids := make([]string, len(page))
	for i, r := range page {
		ids[i] = r.ID
	}
	l.setPage(ids)
	l.setPoll(began, pollInterval)
	for _, r := range page {
		l.put(row{run: r, matches: true})
	}
	l.setNext(more)
	l.loaded, l.countsStale = true, true
	return nil
}

// readPage makes the page current for a watcher that receives it.
func (l *list) readPage(ctx context.Context) error {
	if l.polled == l.rows.revision && time.Since(l.polledAt) < firstFresh {
		return nil
	}
	return l.poll(ctx)
}

func (l *list) setPage(ids []string) {
	l.page, l.inPage = ids, make(map[string]bool, len(ids))
	for _, id := range ids {
		l.inPage[id] = true
	}
}

// setPoll is called when the page was read.
func (l *list) setPoll(began time.Time, interval time.Duration) {
	l.polledAt, l.nextPoll = began, began.Add(rest(interval, time.Since(began), l.active()))
}

// setNext is called when the rows of the page are up to date.
func (l *list) setNext(more bool) {
	l.next, l.polled = nil, l.rows.revision
	if !more {
		return
	}
	if last, ok := l.rows.get(l.page[len(l.page)-1]); ok {
		l.next = &run.Cursor{CreatedAt: last.run.CreatedAt, ID: last.run.ID}
	}
}

// apply records the runs that this process has changed.
func (l *list) apply(ctx context.Context, heads []head) error {
	var rows []run.Run
	for _, h := range heads {
		known, ok := l.rows.get(h.run.ID)
		switch {
		case h.gone && ok && !known.gone:
			l.countsStale = true
			l.put(row{run: known.run, gone: true})
		case !h.gone && h.run.Project == l.filter.Project:
			l.countsStale = true
			rows = append(rows, h.run)
		}
	}
	return l.record(ctx, rows)
}

// poll compares the rows with the store: those of the first page, and those that were on it or are open.
func (l *list) poll(ctx context.Context) error {
	began := time.Now()
	f := l.filter
	f.Limit++
	page, err := l.store.RowVersions(ctx, f)
	if err != nil {
		return err
	}
	more := len(page) > l.filter.Limit
	if more {
		page = page[:l.filter.Limit]
	}
	before := l.inPage
	ids, wanted := make([]string, len(page)), []string(nil)
	for i, v := range page {
		ids[i] = v.ID
		if known, ok := l.rows.get(v.ID); !ok || !known.matches || known.run.Sequence != v.Sequence {
			wanted = append(wanted, v.ID)
		}
	}
	l.setPage(ids)
	for id, e := range l.rows.byID {
		known := entryOf[row](e).value
		if !l.inPage[id] && !known.gone && (before[id] || !known.run.Status.Terminal()) {
			wanted = append(wanted, id)
		}
	}
	if len(wanted) == 0 {
		l.setPoll(began, pollInterval)
	} else {
		l.setPoll(began, movingInterval)
		found, err := l.store.ListRuns(ctx, run.Filter{Project: l.filter.Project, IDs: wanted})
		if err != nil {
			l.nextPoll = began // the rows of the page are not read
			return err
		}
		l.removeMissing(wanted, found)
		if err := l.record(ctx, found); err != nil {
			return err
		}
	}
	l.setNext(more)
	return nil
}

// removeMissing records that runs do not exist any more.
func (l *list) removeMissing(wanted []string, found []run.Run) {
	exists := make(map[string]bool, len(found))
	for _, r := range found {
		exists[r.ID] = true
	}
	for _, id := range wanted {
		if known, ok := l.rows.get(id); ok && !exists[id] {
			l.countsStale = true
			l.put(row{run: known.run, gone: true})
		}
	}
}

// record records the rows that match the filter or have matched it, unless the list has them.
func (l *list) record(ctx context.Context, rows []run.Run) error {
	matching, err := l.matching(ctx, rows)
	if err != nil {
		return err
	}
	for _, r := range rows {
		known, ok := l.rows.get(r.ID)
		matches := matching[r.ID]
		switch {
		case !ok && !matches && !l.mayHaveMatched(r), ok && known.run.Sequence > r.Sequence,
			ok && known.run.Sequence == r.Sequence && known.matches == matches && !known.gone:
			continue
		}
		l.countsStale = true
		l.put(row{run: r, matches: matches})
	}
	return nil
}

// mayHaveMatched reports whether a run that does not match may be on a later page that clients have loaded: it has
// matched, and a condition on its state has become false. Ended runs keep their status.
func (l *list) mayHaveMatched(r run.Run) bool {
	f := l.filter
	open := slices.ContainsFunc(f.Statuses, func(s run.Status) bool { return !s.Terminal() })
	if l.next == nil || !open && len(f.Stuck) == 0 && f.Waiting == "" {
		return false
	}
	f.Statuses, f.Stuck, f.Cause, f.Waiting = nil, nil, "", ""
	return f.Matches(r)
}

// matching returns which runs match the filter.
func (l *list) matching(ctx context.Context, rows []run.Run) (map[string]bool, error) {
	matching := make(map[string]bool, len(rows))
	var ids []string
	for _, r := range rows {
		if l.filter.Matches(r) {
			matching[r.ID] = true
			ids = append(ids, r.ID)
		}
	}
	if !l.filter.BeyondRow() || len(ids) == 0 {
		return matching, nil
	}
	f := l.filter
	f.IDs = ids
	found, err := l.store.RowVersions(ctx, f)
	clear(matching)
	for _, v := range found {
		matching[v.ID] = true
	}
	return matching, err
}

func (l *list) put(r row) {
	l.rows.put(r.run.ID, r, size(r.run), func(id string) bool { return l.inPage[id] })
}

// count counts the runs if that is due.
func (l *list) count(ctx context.Context) error {
	began := time.Now()
	if began.Before(l.countDue()) {
		return nil
	}
	f := l.filter
	counts, err := l.store.CountRuns(ctx,
		run.Filter{Project: f.Project, Workflow: f.Workflow, FailureGroup: f.FailureGroup, Since: f.Since, Until: f.Until})
	if err != nil {
		return err
	}
	l.countsStale, l.countedAt = false, began
	l.nextCount = began.Add(rest(countInterval, time.Since(began), l.active()))
	if l.countsRevision == 0 || !sameCounts(counts, l.counts) {
		l.counts = counts
		l.countsRevision++
	}
	return nil
}

// countDue is when the next count is due.
func (l *list) countDue() time.Time {
	if l.countsStale {
		return l.nextCount
	}
	if later := l.countedAt.Add(recountInterval); later.After(l.nextCount) {
		return later
	}
	return l.nextCount
}

func sameCounts(a, b run.Counts) bool {
	return maps.Equal(a.Statuses, b.Statuses) && maps.Equal(a.Stuck, b.Stuck) && reflect.DeepEqual(a.More, b.More)
}

// earlier returns the earlier of two times; a zero b does not count.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
