package handler

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

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
		done, err := s.acquire(t.Context(), "busy")
		require.NoError(t, err)
		done()
	})
}
