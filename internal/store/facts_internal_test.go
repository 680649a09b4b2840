package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockDifferenceIsTheLeastThatExplainsTheTimes(t *testing.T) {
	t.Parallel()
	before := time.Date(2026, 3, 1, 12, 0, 0, 700, time.UTC)
	after := before.Add(10 * time.Second) // the database was slow
	for _, tt := range []struct{ at, want time.Duration }{
		{-3 * time.Hour, -3 * time.Hour}, {-time.Microsecond, 0}, {0, 0}, {9 * time.Second, 0}, {10 * time.Second, 0},
		{10*time.Second + 3*time.Hour, 3 * time.Hour},
	} {
		require.InDelta(t, tt.want.Seconds(), clockDifference(before, before.Add(tt.at), after).Seconds(), 0.001, tt.at)
	}
}
