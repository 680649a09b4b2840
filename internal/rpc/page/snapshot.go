package page

import (
	"sync"
	"time"
)

// snapshotFor is how long a listing serves further pages.
const snapshotFor = 30 * time.Second

// Snapshot caches a listing that can only be read as a whole for the pages after the first, each of which would
// otherwise read everything again. A first page always reads anew. The zero value is empty. It is safe for concurrent
// use.
type Snapshot[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
}

// Read returns the result of read or, for a further page, a recent result of it. Results with an error are not cached.
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
