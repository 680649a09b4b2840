// Package loop runs loops that stop in two steps: a stopped loop begins no new work; work in progress continues until
// the deadline of the stop.
//
//	r.Start(ctx, func(ctx, work context.Context) { … }) // ctx ends with the stop, work is the context of the work in progress
//	r.Stop(ctx)
//
// A [Loop] calls a function repeatedly.
package loop

import (
	"context"
	"sync"
)

// Runner runs a loop. The zero value has not started.
type Runner struct {
	stop, abort context.CancelFunc
	joined      sync.WaitGroup
}

// Start begins the loop, with the values of ctx but not its end. It is called once.
func (r *Runner) Start(ctx context.Context, loop func(ctx, work context.Context)) {
	ctx = context.WithoutCancel(ctx)
	work, abort := context.WithCancel(ctx)
	until, stop := context.WithCancel(ctx)
	r.stop, r.abort = stop, abort
	r.joined.Go(func() { loop(until, work) })
}

// Go runs work beside the loop; only the loop calls it.
func (r *Runner) Go(f func()) { r.joined.Go(f) }

// Stop stops the loop and waits for it and its work, which is canceled when ctx ends. It does nothing before Start.
func (r *Runner) Stop(ctx context.Context) {
	if r.stop == nil {
		return
	}
	r.stop()
	defer context.AfterFunc(ctx, r.abort)()
	r.joined.Wait()
	r.abort()
}
