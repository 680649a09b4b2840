package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRestGrowsWithTheDelay(t *testing.T) {
	t.Parallel()
	const least = 10 * time.Millisecond
	for took, want := range map[time.Duration]time.Duration{
		5 * time.Millisecond:  0,
		10 * time.Millisecond: 0,
		15 * time.Millisecond: 60 * time.Millisecond,
		20 * time.Millisecond: 160 * time.Millisecond,
		30 * time.Millisecond: longestRest,
		time.Hour:             longestRest,
	} {
		require.Equal(t, want, rest(took, least), took)
	}
	require.Zero(t, rest(500*time.Microsecond, time.Microsecond), "a request that is as fast delays none")
}

func TestFastestRequestIsForgotten(t *testing.T) {
	t.Parallel()
	var f fastest
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.Equal(t, 10*time.Millisecond, f.add(10*time.Millisecond, now))
	require.Equal(t, 5*time.Millisecond, f.add(5*time.Millisecond, now.Add(time.Second)))
	require.Equal(t, 5*time.Millisecond, f.add(20*time.Millisecond, now.Add(3*time.Minute)), "of the last period")
	require.Equal(t, 20*time.Millisecond, f.add(30*time.Millisecond, now.Add(6*time.Minute)))
}

// TestSlowRequestsOfAProjectRest has a project whose requests take longer and longer beside another one.
func TestSlowRequestsOfAProjectRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1)
		refused, err := turns.Acquire(t.Context(), "alone", "start")
		require.NoError(t, err)
		refused(false) // at once, which shows nothing
		ends := make(chan time.Time)
		request := func(project string, lasts time.Duration) {
			release, err := turns.Acquire(t.Context(), project, "start")
			if err != nil {
				return
			}
			<-time.After(lasts)
			ends <- time.Now()
			release(true)
		}
		for range 3 {
			go request("alone", 100*time.Millisecond)
		}
		first := <-ends
		require.Equal(t, first, <-ends, "a project alone has many turns")
		require.Equal(t, first, <-ends)

		require.True(t, turns.compute.Enter("other", time.Now()).Wait(0))
		for range 2 {
			go request("alone", 200*time.Millisecond)
		}
		first = <-ends
		require.Equal(t, 450*time.Millisecond, (<-ends).Sub(first), "the rest, and the second request")
	})
}
