package run

import (
	"context"
	"math"
	"time"
)

const (
	// repairAfter is how long an open run must have had its status before it is compared with Temporal.
	repairAfter = 2 * time.Second
	// watchPoll is how soon a watch sees what another process wrote.
	watchPoll = 500 * time.Millisecond
	// watchSteps bounds the steps in one change.
	watchSteps = 500
)

// Change is what a watch saw since it last looked.
type Change struct {
	Run Run
	// Steps that changed, in order of entry within the change.
	Steps []Step
}

// Watch calls fn with the run and its steps as they change, beginning with what changed after the given sequence, and
// returns nil when the run has ended and all of it was given. A negative sequence gives the run at once even when
// nothing changed. fn's error ends the watch and is returned.
//
// Every change is given at least once, in order of sequence; several may be folded into one.
func (s *Service) Watch(ctx context.Context, project, id string, after int64, fn func(Change) error) error {
	changed, stop := s.changes.Subscribe(id)
	defer stop()
	ticker := time.NewTicker(watchPoll)
	defer ticker.Stop()
	first := true
	for {
		r, err := s.Get(ctx, project, id)
		if err != nil {
			return err
		}
		if after, err = s.giveChanges(ctx, r, after, first, fn); err != nil {
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
		case <-ticker.C:
		}
	}
}

// giveChanges gives what changed after a sequence up to the one of r, and returns the sequence it has come to.
func (s *Service) giveChanges(ctx context.Context, r Run, after int64, first bool, fn func(Change) error) (int64, error) {
	if r.Sequence <= after && !first {
		return after, nil
	}
	// A sequence is given whole, so nothing of the given one is left.
	cursor := StepCursor{Sequence: after, Number: math.MaxInt64}
	for {
		steps, err := s.store.ChangedSteps(ctx, r.ID, cursor, r.Sequence, watchSteps)
		if err != nil {
			return after, err
		}
		change := Change{Run: r, Steps: steps}
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
