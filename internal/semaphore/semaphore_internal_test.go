package semaphore

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestCallersOfAKeyWaitForASlotInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewKeyed(1)
		first, err := s.Acquire(t.Context(), "busy")
		require.NoError(t, err)

		var order []int
		for i := range 3 {
			go func() {
				release, err := s.Acquire(t.Context(), "busy")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // the slot guards it
				release()
			}()
			synctest.Wait()
		}
		require.Empty(t, order)

		other, err := s.Acquire(t.Context(), "quiet")
		require.NoError(t, err, "another key has slots of its own")
		other()

		first()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, order)
		require.Empty(t, s.keys, "keys without users are removed")
	})
}

func TestCallerThatGivesUpHoldsNoSlot(t *testing.T) {
	t.Parallel()
	s := NewKeyed(0)
	release, err := s.Acquire(t.Context(), "busy")
	require.NoError(t, err, "there is one slot at least")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Acquire(ctx, "busy")
	require.ErrorIs(t, err, context.Canceled)
	release()
	require.Empty(t, s.keys)
}

func TestContended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewKeyed(1)
		require.False(t, s.Contended("busy"))
		release, err := s.Acquire(t.Context(), "busy")
		require.NoError(t, err)
		require.False(t, s.Contended("busy"), "the slot is in use, and none waits for it")
		go func() {
			if release, err := s.Acquire(t.Context(), "busy"); err == nil {
				release()
			}
		}()
		synctest.Wait()
		require.True(t, s.Contended("busy"))
		require.False(t, s.Contended("quiet"))
		release()
	})
}

func TestFullQueueIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewKeyed(1)
		release, err := s.AcquireWithin(t.Context(), "busy", 1)
		require.NoError(t, err)
		go func() {
			if release, err := s.AcquireWithin(t.Context(), "busy", 1); err == nil {
				release()
			}
		}()
		synctest.Wait()
		_, err = s.AcquireWithin(t.Context(), "busy", 1)
		require.ErrorIs(t, err, ErrFull)
		other, err := s.AcquireWithin(t.Context(), "quiet", 0)
		require.NoError(t, err)
		other()
		release()
		synctest.Wait()
		require.Empty(t, s.keys)
	})
}
