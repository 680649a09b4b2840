package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

const (
	// maxRuns is how many runs one call, or one poll, notifies.
	maxRuns = 10_000
	// width is how many runs are notified in parallel.
	width = 8
	// notifyTimeout bounds the notifications after a limit was raised; the next poll covers the rest.
	notifyTimeout = 10 * time.Second
	// pollEvery is how often the steps of ended runs are returned and offered to waiting runs.
	pollEvery = time.Second
	// periodGrace is how long after the start of a period no run is notified: waiting runs request steps by themselves
	// then.
	periodGrace = 3 * time.Second
	// notifyAgain is the minimum time between two notifications of a run. A run without a worker only collects them.
	notifyAgain = time.Minute
	// retryEvery is how soon another process takes over from one that has stopped.
	retryEvery = 5 * time.Second
	// returnsAtOnce is the number of ended runs whose steps are returned in one call.
	returnsAtOnce = 500
	// lockName is the name of the lock that elects one process.
	lockName = "quotas of steps"
)

// Resume lets runs that wait for steps continue although the limit is used up, each with as many steps as the limit
// beyond it: all that wait, or those with the IDs. It returns how many were resumed. When one of the named runs does
// not exist or has ended, none is resumed.
func (s *Service) Resume(ctx context.Context, project string, ids []string, reason string) (int, error) {
	if len(ids) > maxRuns {
		return 0, apperror.New(apperror.Invalid, apperror.InvalidArgument, "%d runs are more than %d at a time", len(ids),
			maxRuns).
			WithField("runIds", "are too many")
	}
	for _, id := range ids {
		r, err := s.opts.Runs.Get(ctx, project, id)
		if err != nil {
			return 0, err
		}
		if r.Status.Terminal() {
			return 0, apperror.New(apperror.Refused, apperror.RunEnded,
				"run %s has ended (%s): it waits for no steps, and no run was resumed", id, r.Status)
		}
	}
	if len(ids) == 0 {
		// GetQuota returns an error for a project that does not exist.
		if _, err := s.store.GetQuota(ctx, project); err != nil {
			return 0, err
		}
		var err error
		if ids, err = s.store.WaitingForSteps(ctx, project, maxRuns); err != nil {
			return 0, err
		}
	}
	var mu sync.Mutex
	resumed := 0
	err := each(ctx, ids, func(id string) error {
		waits, err := s.store.ResumeSteps(ctx, project, id)
		if err != nil || !waits {
			return err
		}
		switch _, err := s.opts.Runs.ResumeQuota(ctx, project, id, reason); {
		case apperror.Is(err, apperror.RunEnded), apperror.Is(err, apperror.ExecutionMissing):
			return nil // it ended a moment ago
		case err != nil:
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		resumed++
		return nil
	})
	if f, ok := apperror.From(err); ok && resumed > 0 {
		err = apperror.New(f.Class, f.Reason, "%d of %d runs were resumed; then: %s", resumed, len(ids),
			f.Message).WithRetry(f.RetryAfter).WithCause(err)
	}
	return resumed, err
}

// each calls do for every ID, [width] at a time, until one call fails.
func each(ctx context.Context, ids []string, do func(id string) error) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var first error
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return first != nil || ctx.Err() != nil
	}
	next := make(chan string)
	for range min(width, len(ids)) {
		group.Go(func() {
			for id := range next {
				if failed() {
					continue
				}
				if err := do(id); err != nil {
					mu.Lock()
					first = firstOf(first, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	group.Wait()
	return firstOf(first, ctx.Err())
}

func firstOf(first, next error) error {
	if first != nil {
		return first
	}
	return next
}

// notifyWaiting makes as many of a project's waiting runs request steps as there are steps left; those first that have
// waited longest. notified, unless nil, holds recent notifications, and its runs are left out for a while.
func (s *Service) notifyWaiting(ctx context.Context, project string, u Usage, notified map[string]time.Time) {
	room := min(u.Left, maxRuns)
	if u.Steps == 0 {
		room = maxRuns
	}
	if u.Waiting == 0 || room == 0 {
		return
	}
	s.notify(ctx, project, notified, int(room), s.store.WaitingForSteps)
}

// notify makes up to most of the runs that list returns request steps.
func (s *Service) notify(
	ctx context.Context, project string, notified map[string]time.Time, most int,
	list func(context.Context, string, int) ([]string, error),
) {
	log := logger.FromContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	ids, err := list(ctx, project, most)
	if err == nil {
		now := s.opts.Now()
		fresh := ids[:0]
		for _, id := range ids {
			if now.Sub(notified[id]) < notifyAgain {
				continue
			}
			fresh = append(fresh, id)
			if notified != nil {
				notified[id] = now
			}
		}
		err = each(ctx, fresh, func(id string) error {
			err := s.opts.Engine.Control(ctx, run.Run{ID: id, Project: project}, string(control.ResumeQuota),
				"there are steps for it")
			if errors.Is(err, run.ErrClosed) || errors.Is(err, run.ErrNotKnown) {
				return nil // the reconciler updates its row
			}
			return err
		})
	}
	if err != nil {
		log.DebugContext(ctx, "Not all runs that wait for steps were notified", "project", project, "error", err)
	}
}

// poll returns and offers steps while this process holds the lock, and tries to get the lock otherwise.
func (s *Service) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	if _, err := s.store.Exclusive(ctx, lockName, s.work); err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Quotas of steps could not be polled", "error", err)
	}
	return retryEvery
}

func (s *Service) work(ctx context.Context) error {
	notified := map[string]time.Time{}
	for ctx.Err() == nil {
		for {
			n, err := s.store.ReturnSteps(ctx, returnsAtOnce)
			if err != nil {
				return fmt.Errorf("returning the steps of ended runs: %w", err)
			}
			if n < returnsAtOnce {
				break
			}
		}
		if err := s.offer(ctx, notified); err != nil {
			return fmt.Errorf("offering steps to runs that wait: %w", err)
		}
		loop.Sleep(ctx, pollEvery)
	}
	return nil
}

// offer notifies waiting runs of available steps.
func (s *Service) offer(ctx context.Context, notified map[string]time.Time) error {
	for id, at := range notified {
		if s.opts.Now().Sub(at) >= notifyAgain {
			delete(notified, id)
		}
	}
	held, err := s.store.HeldUp(ctx)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.Waiting == 0 {
			continue
		}
		u, err := s.store.GetQuota(ctx, h.Project)
		if err != nil {
			return err
		}
		if u.Steps == 0 || u.Age >= periodGrace {
			s.notifyWaiting(ctx, h.Project, u, notified)
			// A run that was requesting steps when it was resumed has missed that, and gets no other notification while no steps
			// are left.
			s.notify(ctx, h.Project, notified, maxRuns, s.store.ResumedSteps)
		}
	}
	return nil
}
