package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

func TestNoTasksArePolledWhileTurnsAreAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewShared(1)
		slots := func(project string) worker.SlotSupplier {
			fixed, err := worker.NewFixedSizeSlotSupplier(1000)
			require.NoError(t, err)
			return &heldSlots{fixed, s, project, anyWait}
		}
		busy, idle := slots("busy"), slots("idle")
		require.True(t, s.Enter("busy", time.Now()).Wait(0))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { require.True(t, s.Enter("busy", time.Now()).Wait(time.Hour)) })
		}
		synctest.Wait()

		require.Nil(t, busy.TryReserveSlot(nil))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := busy.ReserveSlot(short, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, idle.TryReserveSlot(nil), "other projects' tasks are polled for")
		permit, err := idle.ReserveSlot(t.Context(), nil)
		require.NoError(t, err)
		require.NotNil(t, permit)

		reserved := make(chan error, 1)
		go func() {
			_, err := busy.ReserveSlot(t.Context(), nil)
			reserved <- err
		}()
		synctest.Wait()
		require.Empty(t, reserved)
		s.Release("busy") // the first waiting caller continues, three are left
		require.NoError(t, <-reserved)
		for range 4 {
			synctest.Wait()
			s.Release("busy")
		}
		group.Wait()
	})
}

// A project in which one caller waits for long gets no further tasks: on a slow process few together take longer than
// Temporal's ten seconds.
func TestNoTasksArePolledWhileOneWaitsForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fixed, err := worker.NewFixedSizeSlotSupplier(1000)
		require.NoError(t, err)
		s := semaphore.NewShared(1)
		slots := &heldSlots{fixed, s, "busy", longestWait}
		running, waiting := s.Enter("busy", time.Now()), s.Enter("busy", time.Now())
		require.NotNil(t, slots.TryReserveSlot(nil))
		for range 25 {
			require.False(t, waiting.Wait(100*time.Millisecond))
		}
		require.Nil(t, slots.TryReserveSlot(nil))
		running.Leave()
		require.NotNil(t, slots.TryReserveSlot(nil))
		waiting.Leave()
	})
}
