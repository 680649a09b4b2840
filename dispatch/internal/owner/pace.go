package owner

import (
	"context"
	"sync"
	"time"
)

// Pace lets so many through in a second, and a number at once after a pause.
type Pace struct {
	every time.Duration
	burst int

	mu   sync.Mutex
	next time.Time
}

// NewPace returns a pace.
func NewPace(perSecond float64, burst int) *Pace {
	return &Pace{every: time.Duration(float64(time.Second) / perSecond), burst: burst}
}

// Wait waits for its turn, and tells whether ctx still goes on.
func (p *Pace) Wait(ctx context.Context) bool {
	p.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-time.Duration(p.burst) * p.every); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(p.every)
	wait := p.next.Sub(now)
	p.mu.Unlock()
	if wait <= 0 {
		return ctx.Err() == nil
	}
	return sleep(ctx, wait)
}
