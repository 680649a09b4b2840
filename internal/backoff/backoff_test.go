package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/backoff"
)

func TestDelayDoublesUpToTheLongest(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	for failures, d := range want {
		require.Equal(t, d, backoff.Delay(time.Second, 5*time.Second, failures), "after %d failures", failures)
	}
	require.Equal(t, time.Second, backoff.Delay(time.Minute, time.Second, 1))
	require.Zero(t, backoff.Delay(time.Second, time.Minute, -1))
	last := time.Duration(0)
	for failures := range 200 {
		d := backoff.Delay(100*time.Millisecond, 5*time.Second, failures)
		require.GreaterOrEqual(t, d, last)
		last = d
	}
	require.Equal(t, 5*time.Second, last)
}

func TestDelayDoesNotOverflow(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Duration(math.MaxInt64), backoff.Delay(time.Second, math.MaxInt64, math.MaxInt))
}

func TestJitterStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	for range 1000 {
		d := backoff.Jitter(time.Second)
		require.GreaterOrEqual(t, d, time.Second/2)
		require.LessOrEqual(t, d, time.Second)
	}
	require.Zero(t, backoff.Jitter(0))
}
