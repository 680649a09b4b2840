package read

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// maxCached bounds the steps that a feed caches for its other watches, in bytes.
const maxCached = 256 << 10

// feeds are the runs that are watched in this process.
type feeds struct {
	mu    sync.Mutex
	byRun map[feedKey]*feed
}

type feedKey struct {
	project, id string
	heads       bool
}

func newFeeds() *feeds { return &feeds{byRun: map[feedKey]*feed{}} }

// feed reads a run for all its watches, so that a hundred of them cost the database about as much as one. One watch
// reads at a time; the watches that wait for it use its result where that is recent enough for them.
type feed struct {
	key   feedKey
	users int // watches; guarded by feeds.mu

	// reading is held by the watch that reads, and guards the fields below.
	reading chan struct{}
	readAt  time.Time // when the last read began
	run     run.Run
	err     error
	cached  part
}

// part is one page of the steps that changed after a sequence. It must not be modified.
type part struct {
	cursor      run.StepCursor
	after, upTo int64

	steps   []run.Step
	summary *run.StepSummary
	caught  []int64
}

// join returns the feed of a run; leave releases it.
func (s *feeds) join(key feedKey) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byRun[key]
	if f == nil {
		f = &feed{key: key, reading: make(chan struct{}, 1)}
		s.byRun[key] = f
	}
	f.users++
	return f
}

// watches returns how many watches share a feed.
func (s *feeds) watches(f *feed) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.users
}

func (s *feeds) leave(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(s.byRun, f.key)
	}
}

// read returns the run as it was at since or later, and whether this call was the first to find a change. All callers
// that waited for a read receive its error.
func (f *feed) read(ctx context.Context, since time.Time,
	get func(context.Context) (run.Run, error)) (r run.Run, newer bool, err error) {
	if err := f.lock(ctx); err != nil {
		return run.Run{}, false, err
	}
	defer f.unlock()
	if !f.readAt.Before(since) {
		return f.run, false, f.err
	}
	readAt := time.Now()
	r, err = get(ctx)
	if err != nil && ctx.Err() != nil {
		return r, false, err // the caller's context ended, which is independent of the run
	}
	newer = err == nil && !f.readAt.IsZero() && r.Sequence > f.run.Sequence
	f.readAt, f.run, f.err = readAt, r, err
	return r, newer, err
}

// part returns a page of changed steps. Rows up to a sequence may change later, and then have a later sequence: the
// cached rows are as valid as they were for the watch that read them.
func (f *feed) part(ctx context.Context, page part, get func(context.Context) (part, error)) (part, error) {
	if err := f.lock(ctx); err != nil {
		return part{}, err
	}
	defer f.unlock()
	if cached := f.cached; cached.upTo > 0 && cached.cursor == page.cursor && cached.after == page.after &&
		cached.upTo == page.upTo {
		return cached, nil
	}
	found, err := get(ctx)
	if err != nil {
		return part{}, err
	}
	f.cached = part{}
	size := 0
	for i := range found.steps {
		size += found.steps[i].Size()
	}
	if size <= maxCached {
		f.cached = found
	}
	return found, nil
}

func (f *feed) lock(ctx context.Context) error {
	select {
	case f.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *feed) unlock() { <-f.reading }
