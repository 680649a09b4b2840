package run

import (
	"context"
	"sync"
	"time"
)

// maxKept bounds the steps that a feed keeps for its other watches, in bytes.
const maxKept = 256 << 10

// feeds are the runs that are watched in this process.
type feeds struct {
	mu    sync.Mutex
	byRun map[feedKey]*feed
}

type feedKey struct{ project, id string }

func newFeeds() *feeds { return &feeds{byRun: map[feedKey]*feed{}} }

// feed reads a run for all its watches: a hundred of them cost the database about what one does. One watch reads at a time, and
// those that wait for it meanwhile take what it has read where that is new enough for them.
type feed struct {
	key     feedKey
	watches int // guarded by feeds.mu

	// reading is held by the watch that reads, and guards what is below.
	reading chan struct{}
	begun   time.Time // when the last read began
	run     Run
	err     error
	known   part
}

// part is one page of the steps that changed after a sequence. It is not to be changed.
type part struct {
	cursor      StepCursor
	after, upTo int64

	steps   []Step
	summary *StepSummary
}

// join returns the feed of a run, which leave gives back.
func (s *feeds) join(project, id string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := feedKey{project, id}
	f := s.byRun[key]
	if f == nil {
		f = &feed{key: key, reading: make(chan struct{}, 1)}
		s.byRun[key] = f
	}
	f.watches++
	return f
}

func (s *feeds) leave(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.watches--; f.watches == 0 {
		delete(s.byRun, f.key)
	}
}

// read returns the run as it was at a moment or later, and whether this call was the first to find a change. An error is that of
// all who waited for it.
func (f *feed) read(ctx context.Context, since time.Time, get func(context.Context) (Run, error)) (r Run, news bool, err error) {
	if err := f.lock(ctx); err != nil {
		return Run{}, false, err
	}
	defer f.unlock()
	if !f.begun.Before(since) {
		return f.run, false, f.err
	}
	begun := time.Now()
	r, err = get(ctx)
	if err != nil && ctx.Err() != nil {
		return r, false, err // the caller has left, which says nothing about the run
	}
	news = err == nil && !f.begun.IsZero() && r.Sequence > f.run.Sequence
	f.begun, f.run, f.err = begun, r, err
	return r, news, err
}

// part returns a page of changed steps. The rows up to a sequence may change later, and then have a later one: what was read of
// them before is as good as it was for the watch that read it.
func (f *feed) part(ctx context.Context, asked part, get func(context.Context) (part, error)) (part, error) {
	if err := f.lock(ctx); err != nil {
		return part{}, err
	}
	defer f.unlock()
	if known := f.known; known.upTo > 0 && known.cursor == asked.cursor && known.after == asked.after && known.upTo == asked.upTo {
		return known, nil
	}
	found, err := get(ctx)
	if err != nil {
		return part{}, err
	}
	f.known = part{}
	size := 0
	for i := range found.steps {
		size += found.steps[i].Size()
	}
	if size <= maxKept {
		f.known = found
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
