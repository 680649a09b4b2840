// Package delivery claims due deliveries from an inbox, makes them and records their outcomes, until there are none for
// a while: it is the long activity of a dispatcher. It does not depend on Temporal.
//
// Several routings of one dispatcher may run at the same time, when a process was taken for dead or an owner was
// replaced. The inbox rejects the claims of all owners but the last, and gives a delivery to one routing at a time
// until its visibility time ends. An attempt that is made twice has one effect.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/backoff"
)

// End is how a routing ended.
type End string

// The ends.
const (
	// Parked: there was no work for a while, and the inbox has the dispatcher marked as parked.
	Parked End = "parked"
	// Turned: it ended so that the workflow can continue as new. There may be more to do.
	Turned End = "turned"
	// Fenced: the dispatcher has another owner.
	Fenced End = "fenced"
)

// ErrStopped is returned when the process stops. Another routing continues at once.
var ErrStopped = errors.New("routing was stopped")

// Limits of a routing.
const (
	// claimLimit is the number of deliveries per claim, concurrency the number of concurrent attempts.
	claimLimit  = 200
	concurrency = 64
	// batchLimit is the number of deliveries of one lane that an [inbox.Batcher] makes in one attempt.
	batchLimit = 100
	// visible is the visibility time of a claim: deliveries claimed by a killed process wait for that long.
	visible = 9 * time.Second
	// attemptTimeout limits one attempt. It is shorter than visible, so that two processes make a hanging attempt at the
	// same time only briefly.
	attemptTimeout = 8 * time.Second
	// recordAfter is how long an outcome waits to be written with others, recordLimit the number at which outcomes are
	// written at once.
	recordAfter = 10 * time.Millisecond
	recordLimit = 500
	// pollEvery is the interval of claims without a hint.
	pollEvery = time.Second
	// turnAfter is when a routing ends although there is more to do, so that the workflow can continue as new.
	turnAfter = 10 * time.Minute
	// drainTimeout is how long running attempts may continue when the process stops.
	drainTimeout = 2 * time.Second
	// inboxTimeout limits each request to the inbox. A failed request is repeated after backoffFirst, doubling up to
	// backoffMost.
	inboxTimeout = 10 * time.Second
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 5 * time.Second
	// panics is the number of panicking attempts after which a delivery is dead, panicPause the pause between them.
	panics     = 10
	panicPause = 10 * time.Second
)

// Routing configures [Run].
type Routing struct {
	Name  inbox.Name
	Owner inbox.Owner
	Inbox inbox.Inbox
	// Brief is how long to poll for the first work, Idle how long to poll for more.
	Brief, Idle time.Duration
	// Stop is closed when the process stops; may be nil.
	Stop <-chan struct{}
	// Count receives the number of outcomes that were written; it must not block.
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
	err := s.retry(ctx, "unpark the dispatcher", func(ctx context.Context) error {
		return s.r.Inbox.Unpark(ctx, s.r.Name, s.r.Owner)
	})
	started := time.Now()
	for err == nil {
		s.dispatch(attempts)
		switch {
		case s.stopping():
			return "", s.finish(ctx, ErrStopped)
		case time.Since(started) >= turnAfter:
			return Turned, s.finish(ctx, nil)
		case s.recordDue():
			err = s.record(ctx)
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

// retry repeats a request to the inbox until it succeeds: while the inbox is unavailable, there is nothing else to do.
// It returns nil, [inbox.ErrFenced], or an error that ends the routing.
func (s *session) retry(ctx context.Context, what string, ask func(context.Context) error) error {
	for failures := 1; ; failures++ {
		once, cancel := context.WithTimeout(ctx, inboxTimeout)
		err := ask(once)
		cancel()
		switch {
		case err == nil:
			if failures > 1 {
				s.r.Log.InfoContext(ctx, "Inbox answers again", "project", s.r.Name.Project, "task_queue", s.r.Name.TaskQueue)
			}
			return nil
		case errors.Is(err, inbox.ErrFenced):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if failures == 1 {
			s.r.Log.WarnContext(ctx, "Inbox does not answer; trying again",
				"project", s.r.Name.Project, "task_queue", s.r.Name.TaskQueue, "step", what, "error", err)
		}
		timer := time.NewTimer(backoff.Jitter(backoff.Delay(backoffFirst, backoffMost, failures)))
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-s.r.Stop:
			timer.Stop()
			return fmt.Errorf("%w while the inbox did not answer: %w", ErrStopped, err)
		}
		timer.Stop()
	}
}
