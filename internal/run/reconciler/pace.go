package reconciler

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/pause"
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
	if !pause.For(ctx, at.Sub(now)) {
		return context.Cause(ctx)
	}
	return nil
}
