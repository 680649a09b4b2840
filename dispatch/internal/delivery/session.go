package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// session is the state of one routing. All of it is used by one goroutine, except results and hint, to which others
// send.
type session struct {
	r        Routing
	attempts sync.WaitGroup
	results  chan []inbox.DeliveryOutcome // of one attempt each

	// waiting deliveries by lane; a lane exists while one of its deliveries waits or runs
	lanes   map[string][]inbox.Delivery
	ready   []string          // lanes whose first delivery may be made
	known   map[string]string // the lane of each claimed delivery without a recorded outcome
	held    map[string]bool   // lanes with a retry that is not recorded yet
	running int

	outcomes  []inbox.DeliveryOutcome
	oldest    time.Time // time of the first of outcomes
	worked    time.Time // time of the last work
	busy      bool      // whether there was any work
	hint      chan struct{}
	awaiting  bool
	exhausted bool          // the last claim returned everything; wait for a hint
	batcher   inbox.Batcher // nil: the inbox makes one delivery in an attempt
}

func newSession(r Routing) *session {
	batcher, _ := r.Inbox.(inbox.Batcher)
	return &session{
		batcher: batcher, r: r, results: make(chan []inbox.DeliveryOutcome, concurrency),
		lanes: map[string][]inbox.Delivery{}, known: map[string]string{},
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

// patience returns how long to poll for work.
func (s *session) patience() time.Duration {
	if s.busy {
		return s.r.Idle
	}
	return s.r.Brief
}

// idleFor returns how long there has been no work; 0 while there is some.
func (s *session) idleFor() time.Duration {
	if len(s.known) > 0 || !s.exhausted {
		return 0
	}
	return time.Since(s.worked)
}

func (s *session) recordDue() bool {
	return len(s.outcomes) > 0 && (s.running == 0 || len(s.outcomes) >= recordLimit || time.Since(s.oldest) >= recordAfter)
}

func (s *session) mayClaim() bool { return !s.exhausted && len(s.known) < claimLimit/2 }

// claim claims due deliveries.
func (s *session) claim(ctx context.Context) error {
	var claimed []inbox.Delivery
	err := s.retry(ctx, "claim deliveries", func(ctx context.Context) (err error) {
		claimed, err = s.r.Inbox.Claim(ctx, s.r.Name, s.r.Owner, claimLimit, visible)
		return err
	})
	if err != nil {
		return err
	}
	fresh := 0
	for _, d := range claimed {
		// Claimed again after its visibility time, while it still runs here.
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
			// Claimed after the visibility time of the previous one in its lane, which must still be made first.
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

// dispatch starts attempts up to the concurrency limit. An attempt makes several deliveries of a lane where the inbox
// supports that.
func (s *session) dispatch(ctx context.Context) {
	for s.running < concurrency && len(s.ready) > 0 {
		lane := s.ready[0]
		s.ready = s.ready[1:]
		waiting := s.lanes[lane]
		together := waiting[:1]
		if s.batcher != nil {
			together = waiting[:min(len(waiting), batchLimit)]
		}
		s.lanes[lane] = waiting[len(together):]
		s.running++
		s.attempts.Go(func() { s.results <- s.attempt(ctx, together) })
	}
}

// attempt makes one attempt at deliveries of one lane. A panic in a delivery must not affect those of other lanes.
func (s *session) attempt(ctx context.Context, list []inbox.Delivery) (outcomes []inbox.DeliveryOutcome) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	first := list[0]
	defer func() {
		failure := recover()
		if failure == nil {
			return
		}
		reason := fmt.Sprintf("the delivery panicked: %v", failure)
		s.r.Log.ErrorContext(ctx, "Delivery panicked", "project", s.r.Name.Project, "delivery", first.ID,
			"attempt", first.Attempt, "panic", failure)
		outcome := inbox.Outcome{Result: inbox.Retry, After: panicPause, Reason: reason}
		if first.Attempt >= panics {
			outcome = inbox.Outcome{Result: inbox.Dead, Reason: reason}
		}
		outcomes = outcomesOf(list, outcome)
	}()
	if len(list) > 1 {
		return outcomesOf(list, s.batcher.DeliverMany(ctx, s.r.Name, list)...)
	}
	return outcomesOf(list, s.r.Inbox.Deliver(ctx, s.r.Name, first))
}

// outcomesOf assigns outcomes to deliveries. No attempt was made at those without one.
func outcomesOf(list []inbox.Delivery, outcomes ...inbox.Outcome) []inbox.DeliveryOutcome {
	out := make([]inbox.DeliveryOutcome, len(list))
	for i, d := range list {
		out[i] = inbox.DeliveryOutcome{ID: d.ID, Outcome: inbox.Outcome{Result: inbox.Released}}
		if i < len(outcomes) {
			out[i].Outcome = outcomes[i]
		}
	}
	return out
}

// take records the outcomes of an attempt, and what may be made next in its lane.
func (s *session) take(got []inbox.DeliveryOutcome) {
	s.running--
	lane := s.known[got[0].ID]
	again := false
	for _, one := range got {
		s.addOutcome(one)
		again = again || one.Outcome.Result == inbox.Retry || one.Outcome.Result == inbox.Released
	}
	rest := s.lanes[lane]
	switch {
	case again:
		// The next deliveries of a lane wait for this one: the inbox returns them together again.
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
		s.addOutcome(inbox.DeliveryOutcome{ID: d.ID, Outcome: inbox.Outcome{Result: inbox.Released}})
	}
}

func (s *session) addOutcome(got inbox.DeliveryOutcome) {
	if len(s.outcomes) == 0 {
		s.oldest = time.Now()
	}
	s.outcomes = append(s.outcomes, got)
	s.worked = time.Now()
}

// record writes the collected outcomes.
func (s *session) record(ctx context.Context) error {
	batch := s.outcomes
	err := s.retry(ctx, "write outcomes", func(ctx context.Context) error {
		return s.r.Inbox.RecordOutcomes(ctx, s.r.Name, s.r.Owner, batch)
	})
	if err != nil {
		return err
	}
	s.recorded(batch)
	return nil
}

func (s *session) recorded(batch []inbox.DeliveryOutcome) {
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
	// Lanes that were held may continue.
	s.exhausted = s.exhausted && counts[inbox.Released] == 0 && counts[inbox.Retry] == 0
}

func (s *session) park(ctx context.Context) (parked bool, err error) {
	err = s.retry(ctx, "park the dispatcher", func(ctx context.Context) (err error) {
		parked, err = s.r.Inbox.Park(ctx, s.r.Name, s.r.Owner)
		return err
	})
	s.exhausted = false
	return parked, err
}

// wait returns after a result, a hint or a pause.
func (s *session) wait(ctx, attempts context.Context) error {
	pause := pollEvery
	if len(s.outcomes) > 0 {
		pause = recordAfter - time.Since(s.oldest)
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

// takeMore takes further results without waiting.
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

// await waits for a hint of the inbox, or for the poll interval.
func (s *session) await(ctx context.Context) {
	s.awaiting = true
	s.attempts.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, pollEvery)
		defer cancel()
		s.r.Inbox.Await(ctx, s.r.Name)
		s.hint <- struct{}{}
	})
}

// finish waits for running attempts, releases the other deliveries, records all outcomes, and returns why. A failure of
// the inbox is ignored: deliveries without an outcome are claimed again later.
func (s *session) finish(ctx context.Context, why error) error {
	for _, lane := range s.ready {
		s.release(s.lanes[lane])
		delete(s.lanes, lane)
	}
	s.ready = nil
	timer := time.NewTimer(drainTimeout)
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
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	batch := s.outcomes
	err := s.r.Inbox.RecordOutcomes(ctx, s.r.Name, s.r.Owner, batch)
	if err == nil {
		s.recorded(batch)
	}
	if errors.Is(err, inbox.ErrFenced) {
		return err
	}
	return why
}
