// Package places bounds how many starts of runs wait for Temporal's answer at a time, and joins those whose callers have gone
// when the process stops.
package places

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// RetryAfter is what callers are told when nothing else says when to try again.
const RetryAfter = 5 * time.Second

// Places are the starts that are under way, whether their callers still wait or not. They are safe for concurrent use.
type Places struct {
	places chan struct{}

	mu sync.Mutex
	// closed lets none begin, ended cuts off those that had a place already.
	closed, ended bool
	// cut are the means to end those that are under way, by a number of each.
	cut    map[int]context.CancelFunc
	last   int
	joined sync.WaitGroup
}

// New makes places for as many starts at a time.
func New(limit int) *Places {
	return &Places{places: make(chan struct{}, limit), cut: map[int]context.CancelFunc{}}
}

// Reserve waits for a place until ctx ends. A place that was reserved is used by Begin, or released.
func (p *Places) Reserve(ctx context.Context) error {
	select {
	case p.places <- struct{}{}:
	default:
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			return fault.New(fault.Unavailable, fault.EngineUnavailable,
				"%d starts wait for Temporal's answer already; nothing was started, try again in a moment", cap(p.places)).
				WithRetry(RetryAfter).WithCause(ctx.Err())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		<-p.places
		return fault.New(fault.Unavailable, fault.EngineUnavailable, "this server is stopping; nothing was started, try again").
			WithRetry(RetryAfter)
	}
	p.joined.Add(1)
	return nil
}

// Release gives a place back that was not used.
func (p *Places) Release() {
	<-p.places
	p.joined.Done()
}

// Begin runs work in the background in a place that was reserved. The context of work has all that ctx carries and ends only
// when the hand-overs are cut off.
func (p *Places) Begin(ctx context.Context, work func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.last++
	number := p.last
	p.cut[number] = cancel
	if p.ended {
		cancel()
	}
	p.mu.Unlock()
	go func() {
		defer p.Release()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.cut, number)
			cancel()
		}()
		work(ctx)
	}()
}

// Close takes no more, waits for those under way until ctx ends, and cuts off the rest.
func (p *Places) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	joined := make(chan struct{})
	go func() {
		p.joined.Wait()
		close(joined)
	}()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.ended = true
	for _, cancel := range p.cut {
		cancel()
	}
	left := len(p.cut)
	p.mu.Unlock()
	<-joined
	if left == 0 {
		return nil
	}
	return fmt.Errorf("%d starts had no answer from Temporal yet: %w", left, context.Cause(ctx))
}
