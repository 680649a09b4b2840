// Package routine runs loops that end in two steps: stopped, they begin nothing more; what they have begun is let through until the
// time of the stop is up.
//
//	r.Start(ctx, func(ctx, work context.Context) { … }) // ctx ends with the stop, work is for what is begun
//	r.Stop(ctx)
package routine

import (
	"context"
	"sync"
)

// Routine is a loop. The zero value is one that has not started.
type Routine struct {
	stop, abort context.CancelFunc
	joined      sync.WaitGroup
}

// Start begins the loop, which keeps the values of ctx and not its end. It is called once.
func (r *Routine) Start(ctx context.Context, loop func(ctx, work context.Context)) {
	ctx = context.WithoutCancel(ctx)
	work, abort := context.WithCancel(ctx)
	until, stop := context.WithCancel(ctx)
	r.stop, r.abort = stop, abort
	r.joined.Go(func() { loop(until, work) })
}

// Go runs what the loop has begun beside it; the loop alone calls it.
func (r *Routine) Go(f func()) { r.joined.Go(f) }

// Stop ends the loop and joins it with what it has begun, which is cut off when ctx ends.
func (r *Routine) Stop(ctx context.Context) {
	r.stop()
	defer context.AfterFunc(ctx, r.abort)()
	r.joined.Wait()
	r.abort()
}
