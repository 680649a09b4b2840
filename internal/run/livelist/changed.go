package livelist

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// readInterval is the minimum time between two reads of changed runs, so that the changes in between are one.
	readInterval = 250 * time.Millisecond
	// readAtOnce bounds the runs of a read.
	readAtOnce = 1000
	// maxNames bounds the IDs of changed runs that wait to be read.
	maxNames = 20_000
	// maxHeads and maxHeadBytes bound the rows that are kept for lists that have not seen them yet.
	maxHeads     = 4096
	maxHeadBytes = 16 << 20
	// share is the share of a processor, as a divisor, that reads of one kind take.
	share = 4
	// maxRest is the longest time between two reads, however long they take.
	maxRest = 10 * time.Second
)

// head is the row of a run that has changed; gone is set if the run does not exist any more.
type head struct {
	run  run.Run
	gone bool
}

// changed reads the runs that this process has changed, once for all lists.
type changed struct {
	store   Store
	pending *pubsub.Collection

	reading *semaphore.Weighted // held by the reader
	next    time.Time           // of the next read; guarded by reading

	mu    sync.Mutex
	heads *journal[head]
}

func newChanged(store Store, changes *pubsub.Notifier) *changed {
	return &changed{
		store: store, pending: changes.Collect(maxNames), reading: semaphore.NewWeighted(1),
		heads: newJournal[head](maxHeads, maxHeadBytes),
	}
}

// read reads the runs that have changed since the last read. If it is too early for that, it returns when to call it
// again.
func (c *changed) read(ctx context.Context) (again time.Time, err error) {
	if err := c.reading.Acquire(ctx, 1); err != nil {
		return time.Time{}, err
	}
	defer c.reading.Release(1)
	if !closed(c.pending.Changed()) {
		return time.Time{}, nil
	}
	began := time.Now()
	if began.Before(c.next) {
		return c.next, nil
	}
	ids, lost := c.pending.Take(readAtOnce)
	var found []run.Run
	if len(ids) > 0 {
		found, err = c.store.ListRuns(ctx, run.Filter{IDs: ids})
	}
	lost = lost || err != nil // the names are taken
	c.next = began.Add(rest(readInterval, time.Since(began), 1))
	c.mu.Lock()
	defer c.mu.Unlock()
	if lost {
		c.heads.reset()
	}
	if err != nil {
		return time.Time{}, err
	}
	exists := make(map[string]bool, len(found))
	for _, r := range found {
		exists[r.ID] = true
		c.heads.put(r.ID, head{run: r}, size(r), never)
	}
	for _, id := range ids {
		if !exists[id] {
			c.heads.put(id, head{run: run.Run{ID: id}, gone: true}, len(id), never)
		}
	}
	if closed(c.pending.Changed()) {
		return c.next, nil
	}
	return time.Time{}, nil
}

// since returns the changes after a revision, and the revision of the last one; false if some are not known any more.
func (c *changed) since(revision int64) (heads []head, now int64, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, complete := c.heads.since(revision, maxHeads)
	for _, e := range found {
		heads = append(heads, e.value)
	}
	return heads, c.heads.revision, complete
}

func never(string) bool { return false }

// rest is the time from the begin of one read to the next one: the interval, or longer, so that the readers of this
// kind together take their share of a processor.
func rest(interval, took time.Duration, readers int) time.Duration {
	return min(max(interval, took*share*time.Duration(readers)), maxRest)
}

// rowSize is about the size of a run without its texts.
const rowSize = 1 << 10

// size is about the memory of a run of a list.
func size(r run.Run) int {
	n := rowSize + len(r.CancelReason)
	if r.Error != nil {
		n += len(r.Error.Title) + len(r.Error.Detail)
	}
	for key, value := range r.Labels {
		n += len(key) + len(value)
	}
	return n
}

func closed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}
