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

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "120": 2 * time.Minute, "0": 0, "-1": 0, "x": 0, "7201": 2 * time.Hour, "9223372036854775807": 2 * time.Hour,
		"-9223372036854775808":          0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Mon, 02 Mar 2026 12:00:00 GMT": 2 * time.Hour,
	} {
		require.Equal(t, want, backoff.RetryAfter(header, now, 2*time.Hour), header)
	}
	require.Zero(t, backoff.RetryAfter("120", now, 0))
	require.Zero(t, backoff.RetryAfter("Sun, 01 Mar 2026 12:00:30 GMT", now, 0))
}
