package run

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run/places"
)

// ErrorTypeQueueExpired is the type of the problem with which a run ends that has waited for Temporal for too long.
const ErrorTypeQueueExpired = "https://signalbox.dev/errors/queue_expired"

// QueueOptions say whether and how runs are taken while Temporal is away.
type QueueOptions struct {
	// Enabled lets runs be queued. What is in the queue is handed over or expires also when it is no longer set.
	Enabled bool
	// MaxRuns is how many runs the queue holds at most, those of all projects and processes together.
	MaxRuns int
	// TTL is how long a run waits before it fails.
	TTL time.Duration
	// Rate is how many runs are handed over in a second at most; 0 means no limit.
	Rate float64
}

// QueueFilter says which runs of the queue to list.
type QueueFilter struct {
	// After is the place to go on from.
	After *Cursor
	// ExpiredAt, when set, leaves those that wait and whose time was over by then.
	ExpiredAt time.Time
	Limit     int
}

// ErrQueueFull is a store's answer for a run that the queue has no room for.
var ErrQueueFull = errors.New("the queue is full")

// QueueStore keeps the runs that wait for Temporal, as part of a [Store].
type QueueStore interface {
	QueueRows

	// EnqueueRun is InsertRun for a run that is queued for the engine, with its place in the queue. When that queue holds
	// limit runs already, it returns [ErrQueueFull] and changes nothing, also with many callers in many processes.
	EnqueueRun(ctx context.Context, r Run, limit int, e audit.Entry) (Run, bool, error)
	// FinishQueued ends a run that is `queued: engine` or `queued: admission` with r's Status, Error, CancelRequested, CancelReason and EndedAt,
	// and writes e; it returns false when the run is no longer that.
	FinishQueued(ctx context.Context, r Run, e audit.Entry) (bool, error)
}

// QueueRows is the part of a [QueueStore] to which no values of runs are written.
type QueueRows interface {
	// TakeQueued turns `queued: engine` into `queued: starting`, and ReturnQueued turns a run that was taken back, to its
	// old place. Both return false when the run is no longer what they turn.
	TakeQueued(ctx context.Context, id string, at time.Time) (bool, error)
	ReturnQueued(ctx context.Context, id string, at time.Time) (bool, error)
	// ListQueued returns runs of the queue in order of acceptance, without input and output: those that wait, and those
	// that were taken and are `queued: starting`.
	ListQueued(ctx context.Context, f QueueFilter) ([]Run, error)
	// CountQueued returns how many runs wait, and how many places are taken, by those that are being handed over too.
	CountQueued(ctx context.Context) (waiting, total int64, err error)
	// Exclusive runs fn while nobody else, in any process, runs work of that name; it returns false at once when somebody
	// does. fn's context ends when the lock is lost.
	Exclusive(ctx context.Context, name string, fn func(ctx context.Context) error) (ran bool, err error)
}

// queues reports whether a run that cannot be started for this reason is queued: Temporal is away or over its limits, or no worker serves
// the project.
func (s *Service) queues(refusal error) bool {
	f, ok := fault.From(refusal)
	if !s.opts.Queue.Enabled || !ok {
		return false
	}
	switch f.Class {
	case fault.Unavailable:
		return f.Reason == fault.EngineUnavailable || f.Reason == fault.NoWorkerForProject
	case fault.Exhausted:
		return f.Reason == fault.EngineRefused
	default:
		return false
	}
}

// enqueue accepts a run that cannot be started yet.
func (s *Service) enqueue(ctx, answer context.Context, req StartRequest, r Run, refusal error) (Run, bool, error) {
	r.QueuedReason, r.ExpiresAt = QueuedEngine, r.CreatedAt.Add(s.opts.Queue.TTL)
	stored, created, err := s.store.EnqueueRun(ctx, r, s.opts.Queue.MaxRuns, startEntry(ctx, r, req.Reason))
	switch {
	case errors.Is(err, ErrQueueFull):
		retry := places.RetryAfter
		if f, ok := fault.From(refusal); ok && f.RetryAfter > 0 {
			retry = f.RetryAfter
		}
		return Run{}, false, fault.New(fault.Exhausted, fault.QueueFull,
			"%v; the queue is full (runs.queue_when_unavailable.max_runs is %d), so nothing was queued; try again later",
			refusal, s.opts.Queue.MaxRuns).WithRetry(retry).WithCause(refusal)
	case err != nil:
		return Run{}, false, err
	case !created:
		return s.same(ctx, answer, req, r, stored)
	}
	s.opts.Metrics.Count(ctx, r.Project, string(Queued))
	return stored, true, nil
}
