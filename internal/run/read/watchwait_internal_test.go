package read

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatchesOfARunShareAQuarterOfAProcessor(t *testing.T) {
	t.Parallel()
	require.Equal(t, 400*time.Microsecond, watchWait(100*time.Microsecond, 1), "a single watch hardly waits")
	require.Equal(t, 400*time.Millisecond, watchWait(2*time.Millisecond, 50))
	require.Equal(t, time.Second, watchWait(time.Second, 100),
		"a client that reads slowly delays itself for a bounded time")
	require.Zero(t, watchWait(0, 100), "without a change it waits for the next one only")
}
