package run

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
)

// ErrorTypeQueueExpired is the type of the error of a run that failed because it waited for Temporal for too long.
const ErrorTypeQueueExpired = errorTypeBase + "queue_expired"

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

// QueueFilter selects the runs of the queue to list.
type QueueFilter struct {
	// After is the position to continue from.
	After *Cursor
	// ExpiredAt, when set, selects runs that still wait and expired at or before that time.
	ExpiredAt time.Time
	Limit     int
}

// ErrQueueFull is a store's error for a run that does not fit into the queue.
var ErrQueueFull = errors.New("the queue is full")

// QueueStore stores the runs that wait for Temporal, as part of a [Store].
type QueueStore interface {
	QueueRows

	// EnqueueRun is InsertRun for a run that is queued for the engine, with its position in the queue. When that queue
	// holds limit runs already, it returns [ErrQueueFull] and changes nothing, also with many concurrent callers in
	// many processes.
	EnqueueRun(ctx context.Context, r Run, limit int, e audit.Entry) (Run, bool, error)
	// FinishQueued ends a run that is `queued: engine` or `queued: admission` with r's Status, Error, CancelRequested,
	// CancelReason and EndedAt, and writes e; it returns false when the run is not in that state.
	FinishQueued(ctx context.Context, r Run, e audit.Entry) (bool, error)
}

// QueueRows is the part of a [QueueStore] that writes no values of runs.
type QueueRows interface {
	// TakeQueued changes `queued: engine` into `queued: starting`, and ReturnQueued changes a taken run back, at its
	// old position. Both return false when the run is not in the state that they change.
	TakeQueued(ctx context.Context, id string, at time.Time) (bool, error)
	ReturnQueued(ctx context.Context, id string, at time.Time) (bool, error)
	// ListQueued returns runs of the queue in order of acceptance, without input and output: runs that wait, and runs
	// that were taken and are `queued: starting`.
	ListQueued(ctx context.Context, f QueueFilter) ([]Run, error)
	// CountQueued returns how many runs wait, and how many slots of the queue are used, including runs that are being
	// handed over.
	CountQueued(ctx context.Context) (waiting, total int64, err error)
	// Exclusive runs fn while no other caller, in any process, runs work of that name; it returns false at once when
	// another one does. fn's context ends when the lock is lost.
	Exclusive(ctx context.Context, name string, fn func(ctx context.Context) error) (ran bool, err error)
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
func (s *Service) enqueue(ctx, answer context.Context, req StartRequest, r Run, refusal error) (Run, bool, error) {
	r.QueuedReason, r.ExpiresAt = QueuedEngine, r.CreatedAt.Add(s.opts.Queue.TTL)
	stored, created, err := s.store.EnqueueRun(ctx, r, s.opts.Queue.MaxRuns, startEntry(ctx, r, req.Reason))
	switch {
	case errors.Is(err, ErrQueueFull):
		retry := RetryAfter
		if f, ok := apperror.From(refusal); ok && f.RetryAfter > 0 {
			retry = f.RetryAfter
		}
		return Run{}, false, apperror.New(apperror.Exhausted, apperror.QueueFull,
			"%v; the queue is full (runs.queue_when_unavailable.max_runs is %d), so nothing was queued; try again later",
			refusal, s.opts.Queue.MaxRuns).WithRetry(retry).WithCause(refusal)
	case err != nil:
		return Run{}, false, err
	case !created:
		return s.answerRepeated(ctx, answer, req, r, stored)
	}
	s.opts.Metrics.Count(ctx, r.Project, string(Queued))
	return stored, true, nil
}
