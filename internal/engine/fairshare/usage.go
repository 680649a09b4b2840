package fairshare

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
)

// Usage reports whether the pollers of a worker wait for a free slot. Such a worker executes tasks and takes no more of
// them meanwhile, which looks in Temporal as if it had stopped.
//
//	var usage fairshare.Usage
//	supplier = usage.Of(supplier)
//	since := usage.BusySince()
//
// It is safe for concurrent use.
type Usage struct {
	mu      sync.Mutex
	waiting int
	since   time.Time
}

// Of returns a supplier of the same slots that counts its waiting pollers.
func (u *Usage) Of(supplier worker.SlotSupplier) worker.SlotSupplier {
	return &counted{SlotSupplier: supplier, usage: u}
}

// BusySince returns since when at least one poller has waited without a pause. It is zero while none waits.
func (u *Usage) BusySince() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.since
}

func (u *Usage) add(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch u.waiting += n; {
	case u.waiting == 0:
		u.since = time.Time{}
	case u.since.IsZero():
		u.since = time.Now()
	}
}

type counted struct {
	worker.SlotSupplier

	usage *Usage
}

// ReserveSlot implements worker.SlotSupplier.
func (c *counted) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	c.usage.add(1)
	defer c.usage.add(-1)
	return c.SlotSupplier.ReserveSlot(ctx, info) //nolint:wrapcheck // the SDK's own error, for the SDK
}
