// Package semaphore bounds concurrent work by key, for example by project: each key has a semaphore of its own, so that
// the work of one key does not wait for that of another.
//
//	s := semaphore.NewKeyed(4)
//	release, err := s.Acquire(ctx, project)
//	if err != nil { return err }
//	defer release()
//
// A key takes memory only while its slots are in use.
package semaphore

import (
	"context"
	"errors"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Keyed is a set of semaphores by key. It is safe for concurrent use.
type Keyed struct {
	each int64

	mu   sync.Mutex
	keys map[string]*slots
}

type slots struct {
	weighted *semaphore.Weighted
	users    int // callers that hold a slot or wait for one; guarded by Keyed.mu
}

// NewKeyed returns semaphores with the given number of slots each, at least one.
func NewKeyed(each int) *Keyed {
	return &Keyed{each: int64(max(each, 1)), keys: map[string]*slots{}}
}

// ErrFull is the error of [Keyed.AcquireWithin] where too many callers wait.
var ErrFull = errors.New("too many callers wait for a slot")

// Acquire waits for a slot of the key, in order of arrival, and returns the function that releases it. Its error is
// that of ctx.
func (k *Keyed) Acquire(ctx context.Context, key string) (release func(), err error) {
	return k.AcquireWithin(ctx, key, math.MaxInt)
}

// AcquireWithin is Acquire, and fails with [ErrFull] at once while as many callers as given wait for a slot of the key.
func (k *Keyed) AcquireWithin(ctx context.Context, key string, waiting int) (release func(), err error) {
	k.mu.Lock()
	s := k.keys[key]
	if s != nil && s.users-int(k.each) >= waiting {
		k.mu.Unlock()
		return nil, ErrFull
	}
	if s == nil {
		s = &slots{weighted: semaphore.NewWeighted(k.each)}
		k.keys[key] = s
	}
	s.users++
	k.mu.Unlock()

	if err := s.weighted.Acquire(ctx, 1); err != nil {
		k.leave(key, s)
		return nil, err //nolint:wrapcheck // the context's own
	}
	return func() {
		s.weighted.Release(1)
		k.leave(key, s)
	}, nil
}

// Contended reports whether callers wait for a slot of the key.
func (k *Keyed) Contended(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.keys[key]
	return s != nil && int64(s.users) > k.each
}

// leave removes a key without users.
func (k *Keyed) leave(key string, s *slots) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(k.keys, key)
	}
}
