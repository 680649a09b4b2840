package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/loop"
)

// pacer lets one caller continue per interval. It is safe for concurrent use.
type pacer struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

// wait returns nil at the caller's turn, or an error once ctx ends.
func (p *pacer) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.every)
	p.mu.Unlock()
	if !loop.Sleep(ctx, at.Sub(now)) {
		return context.Cause(ctx)
	}
	return nil
}
