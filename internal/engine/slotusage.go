package engine

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
)

// slotUsage reports whether the pollers of a worker wait for a free slot. Such a worker executes tasks and takes no
// more of them meanwhile, which looks in Temporal as if it had stopped.
//
//	var usage slotUsage
//	supplier = usage.Of(supplier)
//	since := usage.BusySince()
//
// It is safe for concurrent use.
type slotUsage struct {
	mu      sync.Mutex
	waiting int
	since   time.Time
}

// Of returns a supplier of the same slots that counts its waiting pollers.
func (u *slotUsage) Of(supplier worker.SlotSupplier) worker.SlotSupplier {
	return &countedSlots{SlotSupplier: supplier, usage: u}
}

// BusySince returns since when at least one poller has waited without a pause. It is zero while none waits.
func (u *slotUsage) BusySince() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.since
}

func (u *slotUsage) add(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch u.waiting += n; {
	case u.waiting == 0:
		u.since = time.Time{}
	case u.since.IsZero():
		u.since = time.Now()
	}
}

type countedSlots struct {
	worker.SlotSupplier

	usage *slotUsage
}

// ReserveSlot implements worker.SlotSupplier.
func (c *countedSlots) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	c.usage.add(1)
	defer c.usage.add(-1)
	return c.SlotSupplier.ReserveSlot(ctx, info) //nolint:wrapcheck // the SDK's own error, for the SDK
}
