package reconciler

import (
	"context"
	"sync"
	"time"
)

// pace spreads calls in time: one per interval, however many wait.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

// wait returns when it is the caller's turn, or ctx ends.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.every)
	p.mu.Unlock()
	return pause(ctx, at.Sub(now))
}

// pause waits, or returns why it cannot.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
