package start

import (
	"context"
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// Resume repeats at once the starts that Temporal has not answered yet: the connection was restored, and the answer to
// a request on the previous connection may never arrive. It does not block.
func (s *Service) Resume() { s.resumption.Resume() }

// startExecution requests the start of a run from Temporal until there is an answer or ctx ends, and again after each
// [Service.Resume]. Starting the same run twice starts it once. After an attempt with an unknown outcome, no refusal of
// a later attempt is definite: the earlier one may have arrived.
func (s *Service) startExecution(ctx context.Context, r run.Run) (string, error) {
	var unknown error
	for {
		attempt, cut := s.resumption.Attempt(ctx)
		executionID, err := s.engine.Start(attempt, r)
		again := attempt.Err() != nil && ctx.Err() == nil
		cut()
		switch {
		case err == nil:
			return executionID, nil
		case errors.Is(err, run.ErrUnknownOutcome):
			unknown = err
		case !again && unknown != nil:
			return "", fmt.Errorf("%w: %w", unknown, err)
		}
		if !again {
			return "", err
		}
	}
}
