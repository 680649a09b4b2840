package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := pace.NewLimit(100, 10)
		began := time.Now()
		for range 10 {
			require.True(t, l.Wait(t.Context()))
		}
		require.Zero(t, time.Since(began), "the burst does not wait")
		for range 100 {
			require.True(t, l.Wait(t.Context()))
		}
		require.InDelta(t, time.Second, time.Since(began), float64(20*time.Millisecond))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, l.Wait(ctx))
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, pace.Sleep(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.False(t, pace.Sleep(ctx, time.Hour))
		require.Equal(t, time.Second+time.Minute, time.Since(began))
	})
}

func TestJitterStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	for range 1000 {
		d := pace.Jitter(time.Second)
		require.GreaterOrEqual(t, d, time.Second/2)
		require.LessOrEqual(t, d, time.Second)
	}
	require.Zero(t, pace.Jitter(0))
}
