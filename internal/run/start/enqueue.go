package start

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// QueueOptions configure whether and how runs are accepted while Temporal is unavailable.
type QueueOptions struct {
	// Enabled accepts runs into the queue. Queued runs are handed over or expire also when it is no longer set.
	Enabled bool
	// MaxRuns is how many runs the queue holds at most, for all projects and processes together.
	MaxRuns int
	// TTL is how long a run waits before it fails.
	TTL time.Duration
	// Rate is how many runs are handed over per second at most; 0 means no limit.
	Rate float64
}

// queueable reports whether a run that cannot be started for this reason is queued: Temporal is unavailable or over its
// limits, or no worker serves the project.
func (s *Service) queueable(refusal error) bool {
	if !s.opts.Queue.Enabled || Classify(refusal) != RefusedForNow {
		return false
	}
	return apperror.Is(refusal, apperror.EngineUnavailable) || apperror.Is(refusal, apperror.EngineRefused) ||
		apperror.Is(refusal, apperror.NoWorkerForProject)
}

// RetryAfter is the delay before a retry that callers receive when no more specific one is known.
const RetryAfter = 5 * time.Second

// enqueue accepts a run that cannot be started yet.
func (s *Service) enqueue(ctx, answer context.Context, req Request, r run.Run, refusal error) (run.Run, bool, error) {
	r.QueuedReason, r.ExpiresAt = run.QueuedEngine, r.CreatedAt.Add(s.opts.Queue.TTL)
	stored, created, err := s.store.EnqueueRun(ctx, r, s.opts.Queue.MaxRuns, startEntry(ctx, r, req.Reason))
	switch {
	case errors.Is(err, run.ErrQueueFull):
		retry := RetryAfter
		if f, ok := apperror.From(refusal); ok && f.RetryAfter > 0 {
			retry = f.RetryAfter
		}
		return run.Run{}, false, apperror.New(apperror.Exhausted, apperror.QueueFull,
			"%v; the queue is full (runs.queue_when_unavailable.max_runs is %d), so nothing was queued; try again later",
			refusal, s.opts.Queue.MaxRuns).WithRetry(retry).WithCause(refusal)
	case err != nil:
		return run.Run{}, false, err
	case !created:
		return s.answerRepeated(ctx, answer, req, r, stored)
	}
	s.opts.Metrics.Count(ctx, r.Project, string(run.Queued))
	return stored, true, nil
}
