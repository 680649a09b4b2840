package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// resumption cancels attempts to start runs, so that they are repeated.
type resumption struct {
	mu   sync.Mutex
	next chan struct{} // closed by Resume
}

func newResumption() *resumption { return &resumption{next: make(chan struct{})} }

// waits returns a channel that the next Resume closes.
func (r *resumption) waits() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// Resume repeats at once the starts that Temporal has not answered yet: the connection was restored, and the answer to
// a request on the previous connection may never arrive. It does not block.
func (s *Service) Resume() {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	close(s.resumption.next)
	s.resumption.next = make(chan struct{})
}

// startExecution requests the start of a run from Temporal until there is an answer or ctx ends, and again after each
// [Service.Resume]. Starting the same run twice starts it once. After an attempt with an unknown outcome, no refusal of
// a later attempt is definite: the earlier one may have arrived.
func (s *Service) startExecution(ctx context.Context, r Run) (string, error) {
	var unknown error
	for {
		resumed := s.resumption.waits()
		attempt, cut := context.WithCancel(ctx)
		go func() {
			select {
			case <-resumed:
				cut()
			case <-attempt.Done():
			}
		}()
		executionID, err := s.engine.Start(attempt, r)
		again := attempt.Err() != nil && ctx.Err() == nil
		cut()
		switch {
		case err == nil:
			return executionID, nil
		case errors.Is(err, ErrUnknownOutcome):
			unknown = err
		case !again && unknown != nil:
			return "", fmt.Errorf("%w: %w", unknown, err)
		}
		if !again {
			return "", err
		}
	}
}
