package event

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// bellPause and bellPauseMax are the pauses between tries to ring, which double.
	bellPause    = 200 * time.Millisecond
	bellPauseMax = 10 * time.Second
	// bellTries is how often it is tried; after that the sweep over sleeping dispatchers finds the project.
	bellTries = 10
)

// Bell wakes a project's dispatcher that is parked.
type Bell interface {
	Ring(ctx context.Context, project string) error
}

// ringer rings in the background, once for however many events, and again while Temporal does not answer.
type ringer struct {
	bell   Bell
	ctx    context.Context //nolint:containedctx // ends with the service, whoever rang
	cancel context.CancelFunc
	joined sync.WaitGroup

	mu sync.Mutex
	// ringing are the projects that are rung for; true where it must be done once more.
	ringing map[string]bool
}

func newRinger(bell Bell) *ringer { return &ringer{bell: bell, ringing: map[string]bool{}} }

func (r *ringer) start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
}

func (r *ringer) stop() {
	r.mu.Lock()
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.joined.Wait()
}

// ring returns at once. What is rung for while a ring is under way is rung for again: that one may have come too early.
func (r *ringer) ring(project string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return
	}
	if _, busy := r.ringing[project]; busy {
		r.ringing[project] = true
		return
	}
	r.ringing[project] = false
	r.joined.Go(func() {
		for again := true; again; again = r.done(project) {
			r.try(project)
		}
	})
}

func (r *ringer) done(project string) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if again = r.ringing[project] && r.ctx.Err() == nil; again {
		r.ringing[project] = false
		return true
	}
	delete(r.ringing, project)
	return false
}

func (r *ringer) try(project string) {
	var err error
	for pause, n := bellPause, 0; n < bellTries; pause, n = min(2*pause, bellPauseMax), n+1 {
		if err = r.bell.Ring(r.ctx, project); err == nil {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			return
		}
	}
	logger.FromContext(r.ctx).WarnContext(r.ctx, "Dispatcher could not be woken; the sweep over sleeping ones will try again",
		"project", project, "error", err)
}
