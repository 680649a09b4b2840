package run

import (
	"context"
	"math"
	"time"
)

const (
	// watchPoll is how soon a watch sees what another process wrote, watchFresh how old what another watch of the run has read may be
	// then.
	watchPoll  = 500 * time.Millisecond
	watchFresh = watchPoll / 2
	// watchSteps bounds the steps in one change.
	watchSteps = 500
)

// Change is what a watch saw since it last looked.
type Change struct {
	Run Run
	// Steps that changed, in order of entry within the change.
	Steps []Step
	// Summary is what changed about the steps without rows; nil when nothing did.
	Summary *StepSummary
}

// Watch calls fn with the run and its steps as they change, beginning with what changed after the given sequence, and
// returns nil when the run has ended and all of it was given. A negative sequence gives the run at once even when
// nothing changed. fn's error ends the watch and is returned.
//
// Every change is given at least once, in order of sequence; several may be folded into one.
func (s *Service) Watch(ctx context.Context, project, id string, after int64, fn func(Change) error) error {
	changed, stop := s.changes.Subscribe(id)
	defer stop()
	f := s.feeds.join(project, id)
	defer s.feeds.leave(f)
	ticker := time.NewTicker(watchPoll)
	defer ticker.Stop()
	first := true
	since := time.Now()
	for {
		r, news, err := f.read(ctx, since, func(ctx context.Context) (Run, error) { return s.Get(ctx, project, id) })
		if err != nil {
			return err
		}
		if news {
			s.changes.Notify(id) // another process wrote it: the other watches need not wait for their next look
		}
		if after, err = s.giveChanges(ctx, f, r, after, first, fn); err != nil {
			return err
		}
		if r.Status.Terminal() {
			return nil
		}
		first = false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			since = s.changes.Notified(id) // one moment for all watches, so that one of them reads
		case <-ticker.C:
			since = time.Now().Add(-watchFresh)
		}
	}
}

// giveChanges gives what changed after a sequence up to the one of r, and returns the sequence it has come to.
func (s *Service) giveChanges(ctx context.Context, f *feed, r Run, after int64, first bool, fn func(Change) error) (int64, error) {
	if r.Sequence <= after && !first {
		return after, nil
	}
	// A sequence is given whole, so nothing of the given one is left.
	cursor := StepCursor{Sequence: after, Number: math.MaxInt64}
	for {
		asked := part{cursor: cursor, after: after, upTo: r.Sequence}
		found, err := f.part(ctx, asked, func(ctx context.Context) (part, error) { return s.readPart(ctx, r, asked) })
		if err != nil {
			return after, err
		}
		steps := found.steps
		change := Change{Run: r, Steps: steps, Summary: found.summary}
		last := len(steps) < watchSteps
		if !last {
			end := steps[len(steps)-1]
			cursor = StepCursor{Sequence: end.Sequence, Number: end.Number}
			// Whoever breaks off here must be given the rest of this sequence.
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

// readPart reads the steps of a part, and where they are the last ones what changed about the steps without rows.
func (s *Service) readPart(ctx context.Context, r Run, p part) (part, error) {
	var err error
	if p.steps, err = s.store.ChangedSteps(ctx, r.ID, p.cursor, p.upTo, watchSteps); err != nil {
		return p, err
	}
	if len(p.steps) < watchSteps {
		p.summary, err = s.store.StepSummary(ctx, r.Project, r.ID, p.after)
	}
	return p, err
}
