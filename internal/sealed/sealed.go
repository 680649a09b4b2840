package sealed

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

// Sealed is a value that may be stored: marks replace what is sensitive, and the originals are sealed. Only this
// package creates one, so that a store with parameters of this type never receives a value without marks. The zero
// value has the zero value of T.
type Sealed[T any] struct{ value T }

// Value returns the value to be written.
func (s Sealed[T]) Value() T { return s.value }

// Values returns the values to be written.
func Values[T any](list []Sealed[T]) []T {
	values := make([]T, len(list))
	for i := range list {
		values[i] = list[i].value
	}
	return values
}

// marked returns a [Sealed] of a value with marks. It is the only constructor.
func marked[T any](value T) Sealed[T] { return Sealed[T]{value} }

func allMarked[T any](values []T) []Sealed[T] {
	list := make([]Sealed[T], len(values))
	for i := range values {
		list[i] = marked(values[i])
	}
	return list
}

// Store is the store of runs that [Rows] wraps: [run.ReconcileStore] with sealed parameters for all that may contain
// values of a run.
type Store interface {
	run.ReconcileRows

	InsertRun(ctx context.Context, r Sealed[run.Run], e audit.Entry) (run.Run, bool, error)
	EnqueueRun(ctx context.Context, r Sealed[run.Run], limit int, e audit.Entry) (run.Run, bool, error)
	ApplyUpdates(ctx context.Context, updates []Sealed[run.Update]) ([]run.Transition, error)
	CorrectRun(ctx context.Context, u Sealed[run.Update], e *audit.Entry) (bool, error)
	FollowExecution(ctx context.Context, u Sealed[run.Update], from string, left []string, e audit.Entry) (bool, error)
	RemoveUnstarted(ctx context.Context, id string, e Sealed[audit.Entry]) (bool, error)
	FinishMissing(ctx context.Context, id string, status run.Status, p Sealed[*run.Error], at time.Time,
		e Sealed[audit.Entry]) (bool, error)
	FinishQueued(ctx context.Context, r Sealed[run.Run], e Sealed[audit.Entry]) (bool, error)
	PostponeRepair(ctx context.Context, r run.Repair, after time.Duration, failure Sealed[string]) error
}

// EventStore is the store of events that [Events] wraps: [event.Store] with sealed events, listeners and errors.
type EventStore interface {
	event.Rows

	Publish(ctx context.Context, project string,
		events []Sealed[event.Event]) (accepted []event.Accepted, wake bool, err error)
	Listen(ctx context.Context, l Sealed[event.Listener], look event.Lookback) (event.Listening, error)
	CommitRouting(ctx context.Context, project string, owner inbox.Owner, routings []Sealed[event.Routing]) error
	RecordOutcomes(ctx context.Context, project string, owner inbox.Owner, outcomes []Sealed[inbox.DeliveryOutcome]) error
	RecordOwner(ctx context.Context, c dispatchtype.OwnerChange, announcement Sealed[event.Event], e audit.Entry) error
}

// VerdictStore is the store of verdicts that [Verdicts] wraps: [diagnose.Store] with sealed changes and failures.
type VerdictStore interface {
	diagnose.Rows

	ChangeVerdicts(ctx context.Context, project string, at time.Time,
		changes []Sealed[diagnose.Change]) (diagnose.Changed, error)
	NoteFailures(ctx context.Context, failures []Sealed[diagnose.TaskFailure]) error
}

// BatchStore is the store of batch work that [Batches] wraps: [batch.WorkStore] with sealed items and errors.
type BatchStore interface {
	batch.WorkRows

	WriteItems(ctx context.Context, id string, items []Sealed[batch.Item], at time.Time) error
	SetWaitReason(ctx context.Context, id string, why Sealed[string]) error
}
