package httpcall

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/pause"
)

const (
	// storedFrom is the size in bytes from which an answer may go to the database. Smaller ones need none.
	storedFrom = 1 << 10
	// trustedFor is for how long a database that took values is taken to do so.
	trustedFor = time.Second
	// askFor bounds a question to the database, and askEvery is the time between two.
	askFor, askEvery = time.Second, 250 * time.Millisecond
)

// storage is the database that keeps large answers, as far as calls need to know it. It is safe for concurrent use.
type storage struct {
	writable func(ctx context.Context) error
	trusted  atomic.Int64 // until when it is known to take values, in nanoseconds
}

// takes reports whether an answer can be kept now.
func (s *storage) takes(ctx context.Context, r flow.HTTPResponse) bool {
	now := time.Now()
	if s.writable == nil || r.Size() < storedFrom || now.UnixNano() < s.trusted.Load() {
		return true
	}
	bounded, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	if s.writable(bounded) != nil {
		return false
	}
	s.trusted.Store(now.Add(trustedFor).UnixNano())
	return true
}

// await returns what a call of an activity gave, once it can be kept.
func (s *storage) await(ctx context.Context, r flow.HTTPResponse, err error) (flow.HTTPResponse, error) {
	for err == nil && !s.takes(ctx, r) {
		if !pause.For(ctx, askEvery) {
			return flow.HTTPResponse{}, flow.Interrupted(fmt.Sprintf("the answer was lost, as it could not be kept before its activity ended: %v", ctx.Err()))
		}
	}
	return r, err
}
