package run

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Retries returns the number of failed attempts of a try task that is attempted again: it waits for the next attempt, or
// that is in progress. It is 0 for every other step.
func (s *Step) Retries() int {
	n := len(s.Attempts)
	if dsl.Kind(s.Kind) != dsl.KindTry || !s.EndedAt.IsZero() || n == 0 {
		return 0
	}
	switch last := s.Attempts[n-1]; {
	case s.WaitingKind == WaitingRetry:
		return last.Number
	case last.EndedAt == nil:
		return last.Number - 1
	}
	return 0 // its catch is in progress
}

// LastError returns the error of the last attempt that has ended; nil where there is none.
func (s *Step) LastError() *Error {
	failed, _ := s.LastFailure()
	return failed
}

// LastFailure returns the error of the last attempt that has ended, and when it ended.
func (s *Step) LastFailure() (*Error, time.Time) {
	for _, a := range slices.Backward(s.Attempts) {
		if a.EndedAt != nil {
			return a.Error, *a.EndedAt
		}
	}
	return nil, time.Time{}
}
