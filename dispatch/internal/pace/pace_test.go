package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
)

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
