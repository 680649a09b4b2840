package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// handOvers are the starts that are under way, whether their callers still wait or not.
type handOvers struct {
	places chan struct{}

	mu sync.Mutex
	// closed lets none begin, ended cuts off those that had a place already.
	closed, ended bool
	// cut are the means to end those that are under way, by a number of each.
	cut    map[int]context.CancelFunc
	last   int
	joined sync.WaitGroup
}

func newHandOvers(limit int) *handOvers {
	return &handOvers{places: make(chan struct{}, limit), cut: map[int]context.CancelFunc{}}
}

// reserve waits for a place until ctx ends. A place that was reserved is used by begin, or released.
func (h *handOvers) reserve(ctx context.Context) error {
	select {
	case h.places <- struct{}{}:
	default:
		select {
		case h.places <- struct{}{}:
		case <-ctx.Done():
			return fault.New(fault.Unavailable, fault.EngineUnavailable,
				"%d starts wait for Temporal's answer already; nothing was started, try again in a moment", cap(h.places)).
				WithRetry(retryAfter).WithCause(ctx.Err())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		<-h.places
		return fault.New(fault.Unavailable, fault.EngineUnavailable, "this server is stopping; nothing was started, try again").
			WithRetry(retryAfter)
	}
	h.joined.Add(1)
	return nil
}

func (h *handOvers) release() {
	<-h.places
	h.joined.Done()
}

// begin runs work in the background in a place that was reserved. The context of work has all that ctx carries and ends only
// when the hand-overs are cut off.
func (h *handOvers) begin(ctx context.Context, work func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.mu.Lock()
	h.last++
	number := h.last
	h.cut[number] = cancel
	if h.ended {
		cancel()
	}
	h.mu.Unlock()
	go func() {
		defer h.release()
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.cut, number)
			cancel()
		}()
		work(ctx)
	}()
}

// close takes no more, waits for those under way until ctx ends, and cuts off the rest.
func (h *handOvers) close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	joined := make(chan struct{})
	go func() {
		h.joined.Wait()
		close(joined)
	}()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	h.ended = true
	for _, cancel := range h.cut {
		cancel()
	}
	left := len(h.cut)
	h.mu.Unlock()
	<-joined
	if left == 0 {
		return nil
	}
	return fmt.Errorf("%d starts had no answer from Temporal yet: %w", left, context.Cause(ctx))
}

// handOver gives the run to Temporal. It returns an error when the run was refused for good and its row taken away; a row
// of which somebody was told stays, and tells what became of it.
func (s *Service) handOver(ctx context.Context, r Run) error {
	startCtx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	executionID, refusal := s.engine.Start(startCtx, r)
	// What Temporal has answered is written also when the server stops; each call to the store has its own deadline.
	ctx = context.WithoutCancel(ctx)
	defer s.changes.Notify(r.ID)
	if refusal == nil {
		s.HandedOver(ctx, r, executionID)
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		s.opts.Metrics.Started(ctx, r.Project, s.opts.Now().Sub(r.CreatedAt))
		return nil
	}
	if errors.Is(refusal, ErrUnknownOutcome) {
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		logger.FromContext(ctx).WarnContext(ctx, "Outcome of a run's start is not known", "run_id", r.ID, "error", refusal)
		return nil
	}
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.RunStartRefused, r.Project, r.ID, readable(refusal))
	removed, err := s.store.RemoveUnstarted(ctx, r.ID, entry)
	if err != nil {
		return errors.Join(refusal, fmt.Errorf("removing the row of run %s, which was not started: %w", r.ID, err))
	}
	if removed {
		return refusal
	}
	s.opts.Metrics.Count(ctx, r.Project, string(Queued))
	s.NotStarted(ctx, r, refusal)
	return nil
}

// HandedOver notes that Temporal has the run.
func (s *Service) HandedOver(ctx context.Context, r Run, executionID string) {
	if err := s.store.MarkHandedOver(ctx, r.ID, executionID, s.opts.Now()); err != nil {
		// The run is Temporal's now; its own records will move the row on.
		logger.FromContext(ctx).WarnContext(ctx, "Run started, but its row could not be updated", "run_id", r.ID, "error", err)
	}
}

// NotStarted ends a run visibly that was not started after somebody was told that it is queued. A refusal that may pass
// leaves it `queued: starting`, from where it is started again.
func (s *Service) NotStarted(ctx context.Context, r Run, refusal error) {
	log := logger.FromContext(ctx)
	log.WarnContext(ctx, "Run was not started", "run_id", r.ID, "error", refusal)
	if Passing(refusal) {
		return
	}
	now, reason := s.opts.Now(), readable(refusal)
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	finished := false
	if err == nil && r.QueuedReason == QueuedStarting && r.Position == 0 {
		problem := &Problem{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Not started", Detail: reason, Instance: "/"}
		finished, err = s.store.FinishMissing(ctx, r.ID, Failed, problem, now,
			audit.NewEntry(ctx, now, audit.RunStartRefused, r.Project, r.ID, reason))
	}
	if err != nil {
		log.WarnContext(ctx, "Run that was not started could not be ended yet", "run_id", r.ID, "error", err)
	}
	if finished {
		s.opts.Metrics.Count(ctx, r.Project, string(Failed))
	}
}

// Passing tells a refusal that may be over in a while from one for good.
func Passing(refusal error) bool {
	f, ok := fault.From(refusal)
	return ok && (f.Class == fault.Unavailable || f.Class == fault.Exhausted)
}
