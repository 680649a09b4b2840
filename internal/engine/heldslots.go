package engine

import (
	"context"
	"math"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

const (
	// backlogPerTurn is the number of callers of one project, per turn, that may wait before the worker stops polling for
	// the project's tasks.
	backlogPerTurn = 4
	// longestWait is how long a workflow task may have waited for a turn of compute before the worker stops, too: where
	// a process gets little of a processor, few tasks take longer than Temporal's ten seconds together. Nothing bounds the
	// wait of a request, which is no part of a workflow task.
	longestWait, anyWait = 2 * time.Second, time.Duration(math.MaxInt64)
)

// heldSlots supplies slots, but none while many callers of a project wait for a turn, or one for long: the tasks then
// stay in Temporal's queue, where they do not time out, instead of timing out half done in the process. A worker
// reserves a slot before it polls for a task.
type heldSlots struct {
	worker.SlotSupplier

	turns   *semaphore.Shared
	project string
	longest time.Duration // that a caller may wait
}

// free returns a channel that is closed when slots may be supplied, nil if they may be now.
func (s *heldSlots) free() <-chan struct{} {
	return s.turns.Backlog(s.project, backlogPerTurn, s.longest)
}

// ReserveSlot implements worker.SlotSupplier.
func (s *heldSlots) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		free := s.free()
		if free == nil {
			return s.SlotSupplier.ReserveSlot(ctx, info) //nolint:wrapcheck // the SDK's own error, for the SDK
		}
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot implements worker.SlotSupplier.
func (s *heldSlots) TryReserveSlot(info worker.SlotReservationInfo) *worker.SlotPermit {
	if s.free() != nil {
		return nil
	}
	return s.SlotSupplier.TryReserveSlot(info)
}
