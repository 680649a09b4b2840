// Package route takes due deliveries from an inbox to where they go, for as long as there are any: the long activity of a
// dispatcher. It knows nothing of Temporal.
//
// Any number of routings of one dispatcher may be under way, when a process was taken for dead or an owner was replaced:
// the inbox refuses claims of all owners but the last, and gives what was claimed to one routing at a time until that had
// its time; an attempt that is made twice has one effect.
package route

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
)

// End is how a routing ended.
type End string

// The ends.
const (
	// Parked: there was nothing to do for a while, and the inbox knows that the doorbell must ring.
	Parked End = "parked"
	// Turned: it was time to make room in the history. There may be more to do.
	Turned End = "turned"
	// Fenced: the dispatcher has another owner.
	Fenced End = "fenced"
)

// ErrStopped is why a routing ended whose process is being stopped. Another one goes on at once.
var ErrStopped = errors.New("routing was stopped")

// Bounds of a routing.
const (
	// claimLimit is how many deliveries are claimed at once, concurrency how many are made at once.
	claimLimit  = 200
	concurrency = 64
	// visible is how long a claim counts: what a killed process has claimed waits for that long.
	visible = 9 * time.Second
	// attemptTimeout bounds one attempt; shorter than visible, so that one that hangs is not made by two processes for long.
	attemptTimeout = 8 * time.Second
	// settleAfter is how long an outcome waits for others to be written with, settleLimit how many are written at once.
	settleAfter = 10 * time.Millisecond
	settleLimit = 500
	// look is how often the inbox is asked where it gave no hint.
	look = time.Second
	// turn is when a routing ends although there is more to do, so that the workflow can continue as new.
	turn = 10 * time.Minute
	// drain is how long attempts may go on when the process is being stopped.
	drain = 2 * time.Second
	// inboxTimeout bounds each question to the inbox; a failed one is asked again after backoffFirst, in the end after backoffMost.
	inboxTimeout = 10 * time.Second
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 5 * time.Second
	// panics is after how many attempts that panicked a delivery is given up, panicPause how long apart they are.
	panics     = 10
	panicPause = 10 * time.Second
)

// Routing is what to route, for whom and until when.
type Routing struct {
	Name  inbox.Name
	Owner inbox.Owner
	Inbox inbox.Inbox
	// Brief is how long to look for the first thing to do, Idle how long to look for more.
	Brief, Idle time.Duration
	// Stop is closed when the process is being stopped; may be nil.
	Stop <-chan struct{}
	// Count is told of each outcome that was written; may not block.
	Count func(result inbox.Result, n int)
	Log   *slog.Logger
}

// Run routes until it ends, with [ErrStopped], or with the context. It returns after its last attempt has.
func Run(ctx context.Context, r Routing) (End, error) {
	s := newSession(r)
	attempts, cancel := context.WithCancel(ctx)
	defer s.attempts.Wait()
	defer cancel()
	end, err := s.run(ctx, attempts)
	if errors.Is(err, inbox.ErrFenced) {
		return Fenced, nil
	}
	return end, err
}

func (s *session) run(ctx, attempts context.Context) (End, error) {
	err := s.insist(ctx, "take the mark off a parked dispatcher", func(ctx context.Context) error {
		return s.r.Inbox.Unpark(ctx, s.r.Name, s.r.Owner)
	})
	started := time.Now()
	for err == nil {
		s.dispatch(attempts)
		switch {
		case s.stopping():
			return "", s.finish(ctx, ErrStopped)
		case time.Since(started) >= turn:
			return Turned, s.finish(ctx, nil)
		case s.settleDue():
			err = s.settle(ctx)
		case s.mayClaim():
			err = s.claim(ctx)
		case s.idleFor() >= s.patience():
			var parked bool
			if parked, err = s.park(ctx); parked {
				return Parked, nil
			}
		default:
			err = s.wait(ctx, attempts)
		}
	}
	return "", err
}

// insist asks the inbox until it answers: while it is away, there is nothing else to do. What it answers is nil,
// [inbox.ErrFenced], or that the routing ends.
func (s *session) insist(ctx context.Context, what string, ask func(context.Context) error) error {
	pause, failing := backoffFirst, false
	for {
		once, cancel := context.WithTimeout(ctx, inboxTimeout)
		err := ask(once)
		cancel()
		switch {
		case err == nil:
			if failing {
				s.r.Log.InfoContext(ctx, "Inbox answers again", "project", s.r.Name.Project, "task_queue", s.r.Name.TaskQueue)
			}
			return nil
		case errors.Is(err, inbox.ErrFenced):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if !failing {
			s.r.Log.WarnContext(ctx, "Inbox does not answer; trying again",
				"project", s.r.Name.Project, "task_queue", s.r.Name.TaskQueue, "step", what, "error", err)
			failing = true
		}
		timer := time.NewTimer(pace.Jitter(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-s.r.Stop:
			timer.Stop()
			return fmt.Errorf("%w while the inbox did not answer: %w", ErrStopped, err)
		}
		timer.Stop()
		pause = min(2*pause, backoffMost)
	}
}
