// Package pace is how the loops of a process wait: bounded by their context, spread so that many do not act at one moment, and no
// faster together than they may.
package pace

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Sleep waits, and tells whether ctx still goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Jitter returns between half of d and d.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads load, guards nothing
}

// Limit lets so many through in a second, and a number at once after a pause.
type Limit struct {
	every time.Duration
	burst int

	mu   sync.Mutex
	next time.Time
}

// NewLimit returns a limit.
func NewLimit(perSecond float64, burst int) *Limit {
	return &Limit{every: time.Duration(float64(time.Second) / perSecond), burst: burst}
}

// Wait waits for its turn, and tells whether ctx still goes on.
func (l *Limit) Wait(ctx context.Context) bool {
	l.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-time.Duration(l.burst) * l.every); l.next.Before(earliest) {
		l.next = earliest
	}
	l.next = l.next.Add(l.every)
	wait := l.next.Sub(now)
	l.mu.Unlock()
	if wait <= 0 {
		return ctx.Err() == nil
	}
	return Sleep(ctx, wait)
}
