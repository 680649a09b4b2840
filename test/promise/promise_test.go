package promise_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestShareOfTimes(t *testing.T) {
	t.Parallel()
	var times promise.Times
	for n := range 100 {
		times = append(times, time.Duration(100-n)*time.Second)
	}
	require.Equal(t, 50*time.Second, times.At(.5))
	require.Equal(t, 95*time.Second, times.At(.95))
	require.Equal(t, 100*time.Second, times.Worst())
	require.Zero(t, promise.Times(nil).At(.5))
	require.Equal(t, "p50 1.23s, p95 1.23s, worst 1.23s", promise.Times{1234 * time.Millisecond}.String())
}

func TestRecordedFiguresAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures")
	t.Setenv(promise.FileVariable, path)
	t.Setenv(promise.FullVariable, "1")
	promise.Record(t, promise.Figure{Promise: "P-1", What: "a | b", Aim: "1 s", Trials: 2, Figure: "0.5 s"})
	promise.Record(t, promise.Figure{Promise: "P-2", What: "c", Trials: 1, Figure: "1", Seed: 7})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	figures, err := promise.Read(string(text))
	require.NoError(t, err)
	require.Equal(t, []promise.Figure{
		{Promise: "P-1", What: "a | b", Aim: "1 s", Trials: 2, Figure: "0.5 s", Test: t.Name(), Full: true},
		{Promise: "P-2", What: "c", Trials: 1, Figure: "1", Seed: 7, Test: t.Name(), Full: true},
	}, figures)
	_, err = promise.Read("{\n")
	require.Error(t, err)
}
