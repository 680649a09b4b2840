package httpcall

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// storedFrom is the size in bytes from which a response may be stored in the database. Smaller ones never are.
	storedFrom = 1 << 10
	// availableFor is the time for which a database that accepted values is assumed to be available.
	availableFor = time.Second
	// checkTimeout bounds a check of the database, and checkEvery is the time between two checks.
	checkTimeout, checkEvery = time.Second, 250 * time.Millisecond
)

// storage reports the availability of the database that stores large responses. It is safe for concurrent use.
type storage struct {
	writable       func(ctx context.Context) error
	availableUntil atomic.Int64 // in nanoseconds
}

// canStore reports whether a response can be stored now.
func (s *storage) canStore(ctx context.Context, r flow.HTTPResponse) bool {
	now := time.Now()
	if s.writable == nil || r.Size() < storedFrom || now.UnixNano() < s.availableUntil.Load() {
		return true
	}
	bounded, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if s.writable(bounded) != nil {
		return false
	}
	s.availableUntil.Store(now.Add(availableFor).UnixNano())
	return true
}

// await returns the result of an activity's call, once it can be stored.
func (s *storage) await(ctx context.Context, r flow.HTTPResponse, err error) (flow.HTTPResponse, error) {
	for err == nil && !s.canStore(ctx, r) {
		if !loop.Sleep(ctx, checkEvery) {
			return flow.HTTPResponse{}, flow.Interrupted(fmt.Sprintf("the response was lost, because it could not be stored "+
				"before its activity ended: %v", ctx.Err()))
		}
	}
	return r, err
}
