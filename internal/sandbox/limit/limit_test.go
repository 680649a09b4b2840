package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
)

// The lower one of two limits holds, and the narrower one of two networks.
func TestLowerLimits(t *testing.T) {
	t.Parallel()
	runner := limit.Limits{Memory: 64, Processes: 8, Processors: 1, Disk: 10, Output: 100, Time: time.Minute,
		Network: limit.Host}
	require.Equal(t, runner, runner.Within(limit.Limits{}))
	require.Equal(t, runner, limit.Limits{}.Within(runner))
	project := limit.Limits{Memory: 128, Processes: 4, Processors: 0.5, Time: time.Hour, Network: limit.Guarded}
	both := limit.Limits{Memory: 64, Processes: 4, Processors: 0.5, Disk: 10, Output: 100, Time: time.Minute,
		Network: limit.Guarded}
	require.Equal(t, both, runner.Within(project))
	require.Equal(t, both, project.Within(runner))
	for _, n := range limit.Networks() {
		l := limit.Limits{Network: n}
		require.Equal(t, limit.None, l.Within(limit.Limits{Network: limit.None}).Network)
		require.Equal(t, n, l.Within(limit.Limits{Network: limit.Host}).Network)
	}
}
