package handler

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestReadsOfAProjectWaitForASlotInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newReadSlots(1)
		first, err := s.acquire(t.Context(), "busy")
		require.NoError(t, err)

		var order []int
		for i := range 3 {
			go func() {
				release, err := s.acquire(t.Context(), "busy")
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

		other, err := s.acquire(t.Context(), "quiet")
		require.NoError(t, err, "another project has slots of its own")
		other()

		first()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, order)
		require.Empty(t, s.projects, "projects without reads are forgotten")
	})
}

func TestRequestKeepsItsSlotUntilItWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newReadSlots(1)
		ctx, slot := WithHeldSlot(t.Context())
		read := func() {
			done, err := s.acquire(ctx, "busy")
			require.NoError(t, err)
			done()
		}
		read()
		read() // the same request does not wait for itself

		others := 0
		for range 2 {
			go func() {
				done, err := s.acquire(t.Context(), "busy")
				if err != nil {
					t.Error(err)
					return
				}
				others++ // the slot guards it
				done()
			}()
		}
		synctest.Wait()
		require.Zero(t, others, "the answer is being encoded")

		slot.Release()
		synctest.Wait()
		require.Equal(t, 2, others)

		read()
		slot.Release()
		slot.Release()
		require.Empty(t, s.projects)
	})
}

func TestReadThatIsGivenUpHoldsNoSlot(t *testing.T) {
	t.Parallel()
	s := newReadSlots(0)
	release, err := s.acquire(t.Context(), "busy")
	require.NoError(t, err, "there is one slot at least")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.acquire(ctx, "busy")
	require.ErrorIs(t, err, context.Canceled)
	release()
	require.Empty(t, s.projects)
}
