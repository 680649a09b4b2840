package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// resumption cuts off attempts to start runs, so that they are made again.
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

// Resume has the starts that Temporal has not answered yet asked again at once: the connection is back, and an answer to what was sent over
// the one before may never come. It does not block.
func (s *Service) Resume() {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	close(s.resumption.next)
	s.resumption.next = make(chan struct{})
}

// startExecution asks Temporal to start a run until there is an answer or ctx ends, again after each [Service.Resume]. The same run twice is
// started once. After an attempt whose outcome is not known no refusal of a later one is definite: the earlier one may have arrived.
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
