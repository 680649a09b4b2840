package stopwatch_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

func TestWaitingIsMeasured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		watch := stopwatch.Start(t)
		<-time.After(3 * time.Second)
		require.Equal(t, 3*time.Second, watch.Elapsed())
	})
}

// A stopped process stands for one that the machine does not run.
func TestStallsAreNotMeasured(t *testing.T) {
	t.Parallel()
	began := time.Now()
	watch := stopwatch.Start(t)
	pid := strconv.Itoa(os.Getpid())
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c",
		"kill -STOP "+pid+"; sleep 0.5; kill -CONT "+pid).Run())
	elapsed, wall := watch.Elapsed(), time.Since(began)
	require.Greater(t, wall, 500*time.Millisecond)
	require.LessOrEqual(t, elapsed, wall-400*time.Millisecond)
}
