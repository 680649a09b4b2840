package loop

import (
	"context"
	"time"
)

// Loop calls a function repeatedly: after the delay that the last call returned, or earlier when Wake is called. A type
// that embeds it has its methods.
type Loop struct {
	runner Runner
	wake   chan struct{}
	do     func(ctx, work context.Context) time.Duration
}

// New returns a loop that has not started. In do, ctx ends with the stop, and work is the context of work that may
// complete after it.
func New(do func(ctx, work context.Context) (delay time.Duration)) *Loop {
	return NewParallel(1, do)
}

// NewParallel returns a loop of n goroutines, each with its delays. A call of Wake ends the delay of one of them.
func NewParallel(n int, do func(ctx, work context.Context) (delay time.Duration)) *Loop {
	return &Loop{wake: make(chan struct{}, n), do: do}
}

// Start makes the first call, in a goroutine. It does not block, and is called once.
func (l *Loop) Start(ctx context.Context) error {
	l.runner.Start(ctx, func(ctx, work context.Context) {
		for range cap(l.wake) {
			l.runner.Go(func() {
				for ctx.Err() == nil {
					l.Pause(ctx, l.do(ctx, work))
				}
			})
		}
	})
	return nil
}

// Stop ends the calls and waits for the one in progress. Its work is canceled when ctx ends.
func (l *Loop) Stop(ctx context.Context) error {
	l.runner.Stop(ctx)
	return nil
}

// Go runs work beside the loop, for which Stop waits; only do calls it.
func (l *Loop) Go(f func()) { l.runner.Go(f) }

// Wake ends the current delay, or the next one. It does not block.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Woken returns a channel that has a value after Wake, for functions that wait for other things as well.
func (l *Loop) Woken() <-chan struct{} { return l.wake }

// Pause waits for d, for Wake or for the end of ctx, and reports whether it was Wake.
func (l *Loop) Pause(ctx context.Context, d time.Duration) (woken bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.wake:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
