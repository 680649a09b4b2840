package page

import (
	"sync"
	"time"
)

// snapshotFor is for how long a listing serves further pages.
const snapshotFor = 30 * time.Second

// Snapshot keeps a listing that can only be read as a whole, for the pages that follow the first: each would read everything again. A first
// page is always read anew. The zero value is empty. It is safe for concurrent use.
type Snapshot[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
}

// Read returns what read returns, or, for a further page, what it returned a short while ago. What an error came with is not kept.
func (s *Snapshot[T]) Read(first bool, read func() (T, error)) (T, error) {
	s.mu.Lock()
	at, value := s.at, s.value
	s.mu.Unlock()
	if !first && !at.IsZero() && time.Since(at) < snapshotFor {
		return value, nil
	}
	value, err := read()
	if err == nil {
		s.mu.Lock()
		s.at, s.value = time.Now(), value
		s.mu.Unlock()
	}
	return value, err
}
