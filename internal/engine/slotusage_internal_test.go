package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

// slotGate is a supplier whose slots the test frees.
type slotGate struct {
	worker.SlotSupplier

	free chan struct{}
}

func (g slotGate) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	select {
	case <-g.free:
		return &worker.SlotPermit{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestUsageReportsWaitingPollers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var usage slotUsage
		slots := slotGate{free: make(chan struct{})}
		counted := usage.Of(slots)
		require.Zero(t, usage.BusySince())
		since := time.Now()
		reserve := func() { _, _ = counted.ReserveSlot(t.Context(), nil) }
		go reserve()
		synctest.Wait()
		require.Equal(t, since, usage.BusySince())
		<-time.After(time.Minute)
		go reserve()
		synctest.Wait()
		slots.free <- struct{}{}
		synctest.Wait()
		require.Equal(t, since, usage.BusySince(), "one still waits")
		slots.free <- struct{}{}
		synctest.Wait()
		require.Zero(t, usage.BusySince())
	})
}
