package permission_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

func TestLimiterCountsPerKey(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := permission.NewLimiter(permission.LimiterOptions{Rate: 2, Burst: 3, Now: func() time.Time { return now }})
	for range 3 {
		require.Zero(t, l.Take("a"))
	}
	require.Equal(t, 500*time.Millisecond, l.Take("a"))
	require.Equal(t, 500*time.Millisecond, l.Wait("a"), "Wait consumes nothing")
	require.Zero(t, l.Take("b"))
	now = now.Add(500 * time.Millisecond)
	require.Zero(t, l.Wait("a"))
	require.Zero(t, l.Take("a"))
	require.NotZero(t, l.Take("a"))
	now = now.Add(time.Hour)
	for range 3 {
		require.Zero(t, l.Take("a"))
	}
	require.NotZero(t, l.Take("a"), "no more than the burst is saved up")
	now = now.Add(-2 * time.Hour)
	require.NotZero(t, l.Take("a"), "a clock that is set back refills nothing")

	free := permission.NewLimiter(permission.LimiterOptions{Now: time.Now})
	for range 1000 {
		require.Zero(t, free.Take("a"))
		require.Zero(t, free.Wait("a"))
	}
}

func TestLimiterDropsOldestKeys(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := permission.NewLimiter(permission.LimiterOptions{Rate: 0.001, Burst: 1, Now: func() time.Time { return now }})
	for i := range 50_000 {
		now = now.Add(time.Millisecond)
		require.Zero(t, l.Take(fmt.Sprint(i)))
	}
	require.NotZero(t, l.Wait("49999"), "the newest are kept")
	require.Zero(t, l.Wait("0"), "the oldest are not")
}
