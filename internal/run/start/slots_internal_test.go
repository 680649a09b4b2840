package start

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// TestFreeSlotIsForTheProjectWithTheFewest has one project take all slots and wait for more.
func TestFreeSlotIsForTheProjectWithTheFewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSlots(2, time.Second)
		require.NoError(t, p.Reserve(t.Context(), "flood"))
		require.NoError(t, p.Reserve(t.Context(), "flood"))
		reserved := make(chan string, 2)
		for _, project := range []string{"flood", "other"} {
			go func() {
				require.NoError(t, p.Reserve(t.Context(), project))
				reserved <- project
			}()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := p.Reserve(short, "late")
		require.ErrorContains(t, err, "2 starts wait for Temporal's answer already")
		require.True(t, apperror.Is(err, apperror.EngineUnavailable))

		p.Release("flood")
		require.Equal(t, "other", <-reserved)
		p.Release("flood")
		require.Equal(t, "flood", <-reserved)
		p.Release("flood")
		p.Release("other")
		require.NoError(t, p.Close(t.Context()))
	})
}
