package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pause"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

const (
	// mostAtOnce is how many runs are told to ask for steps by one call, and by one look.
	mostAtOnce = 10_000
	// width is how many are being told at a time.
	width = 8
	// tellWithin bounds the telling after a limit was raised: what it does not come to is found by the next look.
	tellWithin = 10 * time.Second
	// lookEvery is how soon steps come back of runs that have ended, and how soon they are offered to those that wait.
	lookEvery = time.Second
	// leaveFor is how long a period is left alone: those that wait ask by themselves when it begins.
	leaveFor = 3 * time.Second
	// tellAgain is after how long a run is told again that was told before. A run that no worker works on only collects what it is told.
	tellAgain = time.Minute
	// retryEvery is how soon another process takes over from one that has stopped.
	retryEvery = 5 * time.Second
	// returnsAtOnce is how many ended runs' steps are returned at a time.
	returnsAtOnce = 500
	// exclusively is the name under which one process looks.
	exclusively = "quotas of steps"
)

// Resume lets runs that wait for steps go on although the limit is used up, with as many steps as the limit beyond it: all that wait, or those
// with the IDs. It returns how many were resumed. Where one of the named runs does not exist or has ended, none is resumed.
func (s *Service) Resume(ctx context.Context, project string, ids []string, reason string) (int, error) {
	if len(ids) > mostAtOnce {
		return 0, fault.New(fault.Invalid, fault.InvalidArgument, "%d runs are more than %d at a time", len(ids), mostAtOnce).
			WithField("runIds", "are too many")
	}
	for _, id := range ids {
		r, err := s.opts.Runs.Get(ctx, project, id)
		if err != nil {
			return 0, err
		}
		if r.Status.Terminal() {
			return 0, fault.New(fault.Refused, fault.RunEnded, "run %s has ended (%s): it waits for no steps, and no run was resumed", id, r.Status)
		}
	}
	if len(ids) == 0 {
		// Whether there is such a project is for the quota to say.
		if _, err := s.store.GetQuota(ctx, project); err != nil {
			return 0, err
		}
		var err error
		if ids, err = s.store.WaitingForSteps(ctx, project, mostAtOnce); err != nil {
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
		case fault.Is(err, fault.RunEnded), fault.Is(err, fault.ExecutionMissing):
			return nil // in this very moment
		case err != nil:
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		resumed++
		return nil
	})
	if f, ok := fault.From(err); ok && resumed > 0 {
		err = fault.New(f.Class, f.Reason, "%d of %d runs were resumed; then: %s", resumed, len(ids), f.Message).WithRetry(f.RetryAfter).WithCause(err)
	}
	return resumed, err
}

// each does something for every ID, some at a time, until one fails.
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

// tell has as many of a project's runs ask for steps as there are steps for, at most: those first that have waited longest. Those that were
// told before, when told is not nil, are left out for a while.
func (s *Service) tell(ctx context.Context, project string, u Usage, told map[string]time.Time) {
	room := min(u.Left, mostAtOnce)
	if u.Steps == 0 {
		room = mostAtOnce
	}
	if u.Waiting == 0 || room == 0 {
		return
	}
	s.tellThose(ctx, project, told, int(room), s.store.WaitingForSteps)
}

// tellThose has up to most of the runs that a list of the store gives ask for steps.
func (s *Service) tellThose(
	ctx context.Context, project string, told map[string]time.Time, most int, list func(context.Context, string, int) ([]string, error),
) {
	log := logger.FromContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	ids, err := list(ctx, project, most)
	if err == nil {
		now := s.opts.Now()
		fresh := ids[:0]
		for _, id := range ids {
			if now.Sub(told[id]) < tellAgain {
				continue
			}
			fresh = append(fresh, id)
			if told != nil {
				told[id] = now
			}
		}
		err = each(ctx, fresh, func(id string) error {
			err := s.opts.Engine.Control(ctx, run.Run{ID: id, Project: project}, string(control.ResumeQuota), "there are steps for it")
			if errors.Is(err, run.ErrClosed) || errors.Is(err, run.ErrNotKnown) {
				return nil // its row will tell
			}
			return err
		})
	}
	if err != nil {
		log.DebugContext(ctx, "Runs that wait for steps were not all told of some", "project", project, "error", err)
	}
}

// Start begins to return the steps of ended runs, and to tell those that wait of steps that nobody told them of.
func (s *Service) Start(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(auth.WithActor(context.WithoutCancel(ctx), auth.System()))
	s.joined.Go(func() { s.loop(ctx) })
	return nil
}

// Stop ends that and joins it.
func (s *Service) Stop(context.Context) error {
	s.stop()
	s.joined.Wait()
	return nil
}

// loop has this process look whenever no other one does.
func (s *Service) loop(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := s.store.Exclusive(ctx, exclusively, s.look); err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "Quotas of steps could not be looked after", "error", err)
		}
		pause.For(ctx, retryEvery)
	}
}

func (s *Service) look(ctx context.Context) error {
	told := map[string]time.Time{}
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
		if err := s.offer(ctx, told); err != nil {
			return fmt.Errorf("offering steps to runs that wait: %w", err)
		}
		pause.For(ctx, lookEvery)
	}
	return nil
}

// offer tells runs that wait of steps that there are.
func (s *Service) offer(ctx context.Context, told map[string]time.Time) error {
	for id, at := range told {
		if s.opts.Now().Sub(at) >= tellAgain {
			delete(told, id)
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
		if u.Steps == 0 || u.Age >= leaveFor {
			s.tell(ctx, h.Project, u, told)
			// A run that was asking when it was resumed has not heard of that, and is told of nothing else while nothing is left.
			s.tellThose(ctx, h.Project, told, mostAtOnce, s.store.ResumedSteps)
		}
	}
	return nil
}
