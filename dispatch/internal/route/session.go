package route

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// session is one routing. All but attempts, which only send results, happens in one goroutine.
type session struct {
	r        Routing
	attempts sync.WaitGroup
	results  chan inbox.Settled

	lanes   map[string][]inbox.Delivery // what waits, by lane; a lane is there while one of its deliveries waits or is under way
	ready   []string                    // lanes whose first delivery may be made
	known   map[string]string           // the lane of each delivery that was claimed and not settled
	held    map[string]bool             // lanes whose first delivery is to be tried again, which is not written yet
	running int

	outcomes  []inbox.Settled
	oldest    time.Time // when the first of outcomes came
	worked    time.Time // when there was something to do last
	busy      bool      // whether there was anything at all
	hint      chan struct{}
	awaiting  bool
	exhausted bool // the last claim returned all there was; wait for a hint
}

func newSession(r Routing) *session {
	return &session{
		r: r, results: make(chan inbox.Settled, concurrency), lanes: map[string][]inbox.Delivery{}, known: map[string]string{},
		held: map[string]bool{}, hint: make(chan struct{}, 1), worked: time.Now(),
	}
}

func (s *session) stopping() bool {
	select {
	case <-s.r.Stop:
		return true
	default:
		return false
	}
}

// patience is how long to look for something to do.
func (s *session) patience() time.Duration {
	if s.busy {
		return s.r.Idle
	}
	return s.r.Brief
}

// idleFor is how long there was nothing to do; 0 while there is.
func (s *session) idleFor() time.Duration {
	if len(s.known) > 0 || !s.exhausted {
		return 0
	}
	return time.Since(s.worked)
}

func (s *session) settleDue() bool {
	return len(s.outcomes) > 0 && (s.running == 0 || len(s.outcomes) >= settleLimit || time.Since(s.oldest) >= settleAfter)
}

func (s *session) mayClaim() bool { return !s.exhausted && len(s.known) < claimLimit/2 }

// claim takes what is due.
func (s *session) claim(ctx context.Context) error {
	var claimed []inbox.Delivery
	err := s.insist(ctx, "claim deliveries", func(ctx context.Context) (err error) {
		claimed, err = s.r.Inbox.Claim(ctx, s.r.Name, s.r.Owner, claimLimit, visible)
		return err
	})
	if err != nil {
		return err
	}
	fresh := 0
	for _, d := range claimed {
		// Claimed again, because its time was up while it is still under way here.
		if _, known := s.known[d.ID]; known {
			continue
		}
		fresh++
		lane := "lane " + d.Lane
		if d.Lane == "" {
			lane = "free " + d.ID
		}
		s.known[d.ID] = lane
		if s.held[lane] {
			// Given out because the time of the one before it was up, which goes first all the same.
			s.release([]inbox.Delivery{d})
			continue
		}
		if _, waits := s.lanes[lane]; !waits {
			s.ready = append(s.ready, lane)
		}
		s.lanes[lane] = append(s.lanes[lane], d)
	}
	s.exhausted = len(claimed) < claimLimit || fresh == 0
	if fresh > 0 {
		s.worked, s.busy = time.Now(), true
	}
	return nil
}

// dispatch begins as many attempts as may be under way.
func (s *session) dispatch(ctx context.Context) {
	for s.running < concurrency && len(s.ready) > 0 {
		lane := s.ready[0]
		s.ready = s.ready[1:]
		d := s.lanes[lane][0]
		s.lanes[lane] = s.lanes[lane][1:]
		s.running++
		s.attempts.Go(func() { s.results <- inbox.Settled{ID: d.ID, Outcome: s.attempt(ctx, d)} })
	}
}

// attempt makes one attempt. A delivery that panics must not take the others with it.
func (s *session) attempt(ctx context.Context, d inbox.Delivery) (outcome inbox.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	defer func() {
		failure := recover()
		if failure == nil {
			return
		}
		reason := fmt.Sprintf("its delivery panicked: %v", failure)
		s.r.Log.ErrorContext(ctx, "Delivery panicked", "project", s.r.Name.Project, "delivery", d.ID, "attempt", d.Attempt, "panic", failure)
		outcome = inbox.Outcome{Result: inbox.Retry, After: panicPause, Reason: reason}
		if d.Attempt >= panics {
			outcome = inbox.Outcome{Result: inbox.Dead, Reason: reason}
		}
	}()
	return s.r.Inbox.Deliver(ctx, s.r.Name, d)
}

// take notes the outcome of an attempt, and what may be made next in its lane.
func (s *session) take(got inbox.Settled) {
	s.running--
	s.note(got)
	lane := s.known[got.ID]
	rest := s.lanes[lane]
	switch {
	case got.Outcome.Result == inbox.Retry || got.Outcome.Result == inbox.Released:
		// The next of a lane waits for this one: the inbox gives them out together again.
		s.release(rest)
		delete(s.lanes, lane)
		s.held[lane] = true
	case len(rest) == 0:
		delete(s.lanes, lane)
	default:
		s.ready = append(s.ready, lane)
	}
}

func (s *session) release(rest []inbox.Delivery) {
	for _, d := range rest {
		s.note(inbox.Settled{ID: d.ID, Outcome: inbox.Outcome{Result: inbox.Released}})
	}
}

func (s *session) note(got inbox.Settled) {
	if len(s.outcomes) == 0 {
		s.oldest = time.Now()
	}
	s.outcomes = append(s.outcomes, got)
	s.worked = time.Now()
}

// settle writes the outcomes there are.
func (s *session) settle(ctx context.Context) error {
	batch := s.outcomes
	err := s.insist(ctx, "write outcomes", func(ctx context.Context) error {
		return s.r.Inbox.Settle(ctx, s.r.Name, s.r.Owner, batch)
	})
	if err != nil {
		return err
	}
	s.settled(batch)
	return nil
}

func (s *session) settled(batch []inbox.Settled) {
	counts := map[inbox.Result]int{}
	for _, one := range batch {
		delete(s.known, one.ID)
		counts[one.Outcome.Result]++
	}
	for result, n := range counts {
		if s.r.Count != nil && result != inbox.Released {
			s.r.Count(result, n)
		}
	}
	s.outcomes = nil
	clear(s.held)
	// Lanes that were held up may go on.
	s.exhausted = s.exhausted && counts[inbox.Released] == 0 && counts[inbox.Retry] == 0
}

func (s *session) park(ctx context.Context) (parked bool, err error) {
	err = s.insist(ctx, "park the dispatcher", func(ctx context.Context) (err error) {
		parked, err = s.r.Inbox.Park(ctx, s.r.Name, s.r.Owner)
		return err
	})
	s.exhausted = false
	return parked, err
}

// wait returns when something happened, or it is time to look.
func (s *session) wait(ctx, attempts context.Context) error {
	pause := look
	if len(s.outcomes) > 0 {
		pause = settleAfter - time.Since(s.oldest)
	} else if idle := s.patience() - s.idleFor(); len(s.known) == 0 {
		pause = min(pause, idle)
	}
	if s.exhausted && !s.awaiting {
		s.await(attempts)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case got := <-s.results:
		s.take(got)
		s.takeMore()
	case <-s.hint:
		s.awaiting, s.exhausted = false, false
	case <-timer.C:
	case <-s.r.Stop:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// takeMore notes what else has come meanwhile.
func (s *session) takeMore() {
	for {
		select {
		case got := <-s.results:
			s.take(got)
		default:
			return
		}
	}
}

// await asks the inbox for a hint, and counts the end of a second as one.
func (s *session) await(ctx context.Context) {
	s.awaiting = true
	s.attempts.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, look)
		defer cancel()
		s.r.Inbox.Await(ctx, s.r.Name)
		s.hint <- struct{}{}
	})
}

// finish lets what is under way end, gives back what is not, writes it, and returns why it was to end. It bears that the
// inbox is away: what is not written is claimed again later.
func (s *session) finish(ctx context.Context, why error) error {
	for _, lane := range s.ready {
		s.release(s.lanes[lane])
		delete(s.lanes, lane)
	}
	s.ready = nil
	timer := time.NewTimer(drain)
	defer timer.Stop()
	for late := false; s.running > 0 && !late; {
		select {
		case got := <-s.results:
			s.take(got)
			for _, lane := range s.ready {
				s.release(s.lanes[lane])
				delete(s.lanes, lane)
			}
			s.ready = nil
		case <-timer.C:
			late = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if len(s.outcomes) == 0 {
		return why
	}
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	batch := s.outcomes
	err := s.r.Inbox.Settle(ctx, s.r.Name, s.r.Owner, batch)
	if err == nil {
		s.settled(batch)
	}
	if errors.Is(err, inbox.ErrFenced) {
		return err
	}
	return why
}
