package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLeaseOfAnAttempt: a killed process delays a repair by 15 seconds, and a repair that crashes its processes is
// repeated with increasing delays.
func TestLeaseOfAnAttempt(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]time.Duration{
		1: 15 * time.Second, 2: 15 * time.Second, 3: 15 * time.Second, 4: 30 * time.Second, 5: time.Minute,
		10: 32 * time.Minute, 1000: 32 * time.Minute,
	} {
		require.Equal(t, want, leaseOf(attempt), "attempt %d", attempt)
	}
}

func TestBackOffAfterAFailure(t *testing.T) {
	t.Parallel()
	require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second, 10 * time.Minute},
		[]time.Duration{backOff(1, false), backOff(2, false), backOff(50, false)})
	require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 6 * time.Hour},
		[]time.Duration{backOff(1, true), backOff(2, true), backOff(50, true)})
	require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 2 * time.Minute},
		[]time.Duration{allowed(1), allowed(2), allowed(50)})
}
