// Package pace has the waiting primitives of a process's loops: context-aware sleep, jitter, and a rate limit.
package pace

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Sleep waits for d. It reports false if ctx has ended.
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

// Limit is a rate limit with a burst.
type Limit struct {
	every time.Duration
	burst int

	mu   sync.Mutex
	next time.Time
}

// NewLimit returns a limit of perSecond events per second, with up to burst at once after a pause.
func NewLimit(perSecond float64, burst int) *Limit {
	return &Limit{every: time.Duration(float64(time.Second) / perSecond), burst: burst}
}

// Wait waits for the next free slot. It reports false if ctx has ended.
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
