// Package pace spreads calls in time: one per interval, however many wait.
//
//	p := pace.Pace{Every: time.Second / 50}
//	err := p.Wait(ctx)
package pace

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/pause"
)

// Pace lets one caller go on per interval. It is safe for concurrent use.
type Pace struct {
	// Every is the interval.
	Every time.Duration

	mu   sync.Mutex
	next time.Time
}

// Wait returns when it is the caller's turn, or ctx ends.
func (p *Pace) Wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.Every)
	p.mu.Unlock()
	if !pause.For(ctx, at.Sub(now)) {
		return context.Cause(ctx)
	}
	return nil
}
