package handler

import (
	"sync"
	"time"
)

// snapshotFor is how long a listing serves further pages.
const snapshotFor = 30 * time.Second

// snapshot caches a listing that can only be read as a whole for the pages after the first, each of which would
// otherwise read everything again. A first page always reads anew. The zero value is empty. It is safe for concurrent
// use.
type snapshot[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
}

// read returns the result of list or, for a further page, a recent result of it. Results with an error are not cached.
func (s *snapshot[T]) read(first bool, list func() (T, error)) (T, error) {
	s.mu.Lock()
	at, value := s.at, s.value
	s.mu.Unlock()
	if !first && !at.IsZero() && time.Since(at) < snapshotFor {
		return value, nil
	}
	value, err := list()
	if err == nil {
		s.mu.Lock()
		s.at, s.value = time.Now(), value
		s.mu.Unlock()
	}
	return value, err
}
