package event

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// firstBackoff and maxBackoff are the delays between attempts to wake a dispatcher; the delay doubles after each
	// attempt.
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 10 * time.Second
	// maxAttempts is the number of attempts. After that, the scan for parked dispatchers finds the project.
	maxAttempts = 10
)

// Waker wakes the parked dispatcher of a project.
type Waker interface {
	Wake(ctx context.Context, project string) error
}

// backgroundWaker calls a Waker in the background: once for any number of events, and again while Temporal does not
// answer.
type backgroundWaker struct {
	waker  Waker
	ctx    context.Context //nolint:containedctx // ends with the service, not with the caller
	cancel context.CancelFunc
	joined sync.WaitGroup

	mu sync.Mutex
	// active holds the projects with a call in progress; the value is true where another call must follow.
	active map[string]bool
}

func newBackgroundWaker(waker Waker) *backgroundWaker {
	return &backgroundWaker{waker: waker, active: map[string]bool{}}
}

func (r *backgroundWaker) start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
}

func (r *backgroundWaker) stop() {
	r.mu.Lock()
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.joined.Wait()
}

// wake returns at once. A request that arrives during a call causes another call, because that call may have been too
// early.
func (r *backgroundWaker) wake(project string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return
	}
	if _, busy := r.active[project]; busy {
		r.active[project] = true
		return
	}
	r.active[project] = false
	r.joined.Go(func() {
		for again := true; again; again = r.done(project) {
			r.try(project)
		}
	})
}

func (r *backgroundWaker) done(project string) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if again = r.active[project] && r.ctx.Err() == nil; again {
		r.active[project] = false
		return true
	}
	delete(r.active, project)
	return false
}

func (r *backgroundWaker) try(project string) {
	var err error
	for n := range maxAttempts {
		if err = r.waker.Wake(r.ctx, project); err == nil ||
			!loop.Sleep(r.ctx, backoff.Delay(firstBackoff, maxBackoff, n+1)) {
			return
		}
	}
	logger.FromContext(r.ctx).WarnContext(r.ctx,
		"Dispatcher could not be woken; the scan for parked dispatchers will try again",
		"project", project, "error", err)
}
