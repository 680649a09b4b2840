package run

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
)

// ErrorTypeQueueExpired is the type of the error of a run that failed because it waited for Temporal for too long.
const ErrorTypeQueueExpired = errorTypeBase + "queue_expired"

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
