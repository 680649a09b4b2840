package read

import (
	"context"
	"math"
	"time"

	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// watchPoll is the interval at which a watch polls for changes of other processes. watchFresh is the maximum age of
	// a result of another watch that it then uses.
	watchPoll  = 500 * time.Millisecond
	watchFresh = watchPoll / 2
	// watchSteps bounds the steps in one change.
	watchSteps = 500
	// watchShare is the share of a processor, as a divisor, that all watches of a run together spend on writing changes in
	// this process.
	watchShare = 4
	// maxWatchWait bounds the wait for that share.
	maxWatchWait = time.Second
)

// Change is what changed since the previous change of a watch.
type Change struct {
	Run run.Run
	// Steps are those that changed, in order of entry within the change.
	Steps []run.Step
	// Summary is the change of the steps without rows; nil when nothing changed.
	Summary *run.StepSummary
	// Caught are the numbers of the failed steps inside of the tries in Steps that have completed. Their own rows may be
	// unchanged.
	Caught []int64
}

// Watched is what a watch follows.
type Watched struct {
	Project, ID string
	// After is the sequence after which changes are passed. A negative one passes the run at once even when nothing
	// changed.
	After int64
	// Heads omits the inputs and outputs of steps.
	Heads bool
}

// Watch calls fn with the run and its steps as they change, and returns nil when the run has ended and all changes were
// passed. fn's error ends the watch and is returned.
//
// Every change is passed at least once, in order of sequence; several may be merged into one.
func (s *Reader) Watch(ctx context.Context, w Watched, fn func(Change) error) error {
	id, after := w.ID, w.After
	changed, stop := s.changes.Subscribe(id)
	defer stop()
	f := s.feeds.join(feedKey{w.Project, id, w.Heads})
	defer s.feeds.leave(f)
	ticker := time.NewTicker(watchPoll)
	defer ticker.Stop()
	first := true
	since := time.Now()
	var writing time.Duration // of the changes since the last wait
	timed := func(c Change) error {
		began := time.Now()
		defer func() { writing += time.Since(began) }()
		return fn(c)
	}
	for {
		r, changedElsewhere, err := f.read(ctx, since, func(ctx context.Context) (run.Run, error) {
			return s.Get(ctx, w.Project, id)
		})
		if err != nil {
			return err
		}
		if changedElsewhere {
			s.changes.Notify(id) // another process wrote it: the other watches need not wait for their next poll
		}
		if after, err = s.passChanges(ctx, f, r, after, first, timed); err != nil {
			return err
		}
		if r.Status.Terminal() {
			return nil
		}
		first = false
		if !loop.Sleep(ctx, watchWait(writing, s.feeds.watches(f))) {
			return ctx.Err()
		}
		writing = 0
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			since = s.changes.Notified(id) // one time for all watches, so that one of them reads
		case <-ticker.C:
			since = time.Now().Add(-watchFresh)
		}
	}
}

// watchWait is how long a watch waits after it has spent this time on writing changes, while the run has so many
// watches. Otherwise a hundred watches of a run that enters thousands of steps a second would keep the runs of all
// other projects from the processors.
func watchWait(writing time.Duration, watches int) time.Duration {
	return min(writing*watchShare*time.Duration(watches), maxWatchWait)
}

// passChanges passes what changed after a sequence up to the one of r, and returns the last sequence passed.
func (s *Reader) passChanges(ctx context.Context, f *feed, r run.Run, after int64, first bool,
	fn func(Change) error) (int64, error) {
	if r.Sequence <= after && !first {
		return after, nil
	}
	// A sequence is passed as a whole, so nothing of the given one remains.
	cursor := run.StepCursor{Sequence: after, Number: math.MaxInt64}
	for {
		page := part{cursor: cursor, after: after, upTo: r.Sequence}
		found, err := f.part(ctx, page, func(ctx context.Context) (part, error) {
			return s.readPart(ctx, r, page, f.key.heads)
		})
		if err != nil {
			return after, err
		}
		steps := found.steps
		change := Change{Run: r, Steps: steps, Summary: found.summary, Caught: found.caught}
		last := len(steps) < watchSteps
		if !last {
			end := steps[len(steps)-1]
			cursor = run.StepCursor{Sequence: end.Sequence, Number: end.Number}
			// A watch that stops here must receive the rest of this sequence when it continues.
			change.Run.Sequence = end.Sequence - 1
		}
		if err := fn(change); err != nil {
			return after, err
		}
		if last {
			return r.Sequence, nil
		}
	}
}

// readPart reads the steps of a part and, where they are the last ones, the change of the steps without rows.
func (s *Reader) readPart(ctx context.Context, r run.Run, p part, heads bool) (part, error) {
	var err error
	if p.steps, err = s.store.ChangedSteps(ctx, r.ID,
		run.ChangedFilter{After: p.cursor, UpTo: p.upTo, Limit: watchSteps, Heads: heads}); err != nil {
		return p, err
	}
	if p.caught, err = s.store.CaughtSteps(ctx, r.ID, p.steps); err != nil {
		return p, err
	}
	if len(p.steps) < watchSteps && r.Summarized {
		p.summary, err = s.store.StepSummary(ctx, r.Project, r.ID, p.after)
	}
	return p, err
}
