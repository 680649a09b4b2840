package memory_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLevelHasHysteresis(t *testing.T) {
	t.Parallel()
	level := memory.Normal
	for _, tt := range []struct {
		used int64
		want memory.Level
	}{
		{69, memory.Normal}, {70, memory.High}, {66, memory.High}, {64, memory.Normal}, {86, memory.Critical},
		{81, memory.Critical},
		{79, memory.High}, {10, memory.Normal}, {1000, memory.Critical}, {0, memory.Normal},
	} {
		level = memory.LevelAt(level, tt.used, 100)
		require.Equal(t, tt.want, level, "at %d of 100", tt.used)
	}
	require.Equal(t, memory.Normal, memory.LevelAt(memory.Critical, 1<<40, 0), "without a limit nothing is shed")
}

func TestMonitorRefusesRunsAndRelievesNearTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		var relieved atomic.Int32
		var log bytes.Buffer
		m := memory.NewMonitor(memory.Options{
			Limit: memory.Limit{Bytes: 100 << 20, Source: memory.FromConfiguration}, Used: used.Load,
			Relieve: func() { relieved.Add(1) }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, m.Start(t.Context()))
		require.NoError(t, m.Admit())
		require.NoError(t, m.Check(t.Context()))

		used.Store(75 << 20)
		<-time.After(time.Second)
		require.Equal(t, memory.High, m.Level())
		require.NoError(t, m.Admit(), "runs are started while only diagnosis is shed")
		require.ErrorContains(t, m.Check(t.Context()), "diagnosis and repair of runs are suspended")
		require.Equal(t, int32(1), relieved.Load())

		used.Store(90 << 20)
		<-time.After(10 * time.Second)
		err := m.Admit()
		f, ok := apperror.From(err)
		require.True(t, ok)
		require.Equal(t, []any{apperror.Exhausted, apperror.MemoryExhausted}, []any{f.Class, f.Reason})
		require.Positive(t, f.RetryAfter)
		require.ErrorContains(t, err, "90 MiB of its memory limit of 100 MiB (memory_limit)")
		require.GreaterOrEqual(t, relieved.Load(), int32(2), "it is relieved again while it lasts")

		used.Store(1 << 20)
		<-time.After(time.Second)
		require.NoError(t, m.Admit())
		require.NoError(t, m.Stop(t.Context()))
		require.Contains(t, log.String(), "level=critical")
		require.Contains(t, log.String(), "Memory use has fallen")
	})
}

func TestMonitorWithoutALimitDoesNothing(t *testing.T) {
	t.Parallel()
	m := memory.NewMonitor(memory.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, m.Start(t.Context()))
	_, _, ok := m.Used()
	require.False(t, ok)
	require.NoError(t, m.Admit())
	require.NoError(t, m.Stop(t.Context()))
}

func TestInUseCountsLiveMemory(t *testing.T) { //nolint:paralleltest // it measures the process
	before := memory.InUse()
	held := bytes.Repeat([]byte{1}, 64<<20)
	runtime.GC()
	grown := memory.InUse() - before
	require.Greater(t, grown, int64(60<<20))
	require.Len(t, held, 64<<20)
	held = nil
	runtime.GC()
	require.Less(t, memory.InUse()-before, grown/2, "garbage does not count")
	require.Nil(t, held)
}
