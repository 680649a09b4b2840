package engine

import (
	"context"

	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// backlogPerTurn is the number of callers of one project, per turn, that may wait before the worker stops polling for
// the project's tasks.
const backlogPerTurn = 4

// heldSlots supplies slots, but none while many callers of a project wait for a turn: the tasks then stay in Temporal's
// queue, where they do not time out, instead of timing out half done in the process. A worker reserves a slot before it
// polls for a task.
type heldSlots struct {
	worker.SlotSupplier

	turns   *semaphore.Shared
	project string
}

// free returns a channel that is closed when slots may be supplied, nil if they may be now.
func (s *heldSlots) free() <-chan struct{} {
	return s.turns.Backlog(s.project, backlogPerTurn)
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
