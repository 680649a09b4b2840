package loop_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/loop"
)

func TestLoopCallsAfterTheReturnedDelayAndAfterWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var calls []time.Duration
		l := loop.New(func(context.Context, context.Context) time.Duration {
			calls = append(calls, time.Since(begun))
			return time.Duration(len(calls)) * time.Second
		})
		started, cancel := context.WithCancel(t.Context())
		require.NoError(t, l.Start(started))
		cancel() // ends the call of Start, not the loop
		<-time.After(3500 * time.Millisecond)
		l.Wake()
		synctest.Wait()
		require.NoError(t, l.Stop(t.Context()))
		l.Wake()
		<-time.After(time.Hour)
		require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second, 3500 * time.Millisecond}, calls)
	})
}

func TestWakeDuringACallCausesAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var l *loop.Loop
		l = loop.New(func(context.Context, context.Context) time.Duration {
			if calls++; calls == 1 {
				l.Wake()
				require.Len(t, l.Woken(), 1)
			}
			return time.Hour
		})
		require.NoError(t, l.Start(t.Context()))
		synctest.Wait()
		require.NoError(t, l.Stop(t.Context()))
		require.Equal(t, 2, calls)
	})
}

func TestParallelCallsShareWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		l := loop.NewParallel(3, func(context.Context, context.Context) time.Duration {
			calls.Add(1)
			return time.Hour
		})
		require.NoError(t, l.Start(t.Context()))
		synctest.Wait()
		require.EqualValues(t, 3, calls.Load())
		l.Wake()
		synctest.Wait()
		require.EqualValues(t, 4, calls.Load())
		require.NoError(t, l.Stop(t.Context()))
	})
}

func TestPauseReportsWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loop.New(nil)
		require.False(t, l.Pause(t.Context(), time.Second))
		l.Wake()
		require.True(t, l.Pause(t.Context(), time.Second))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, l.Pause(ended, time.Hour))
	})
}

func TestLoopThatHasNotStartedStops(t *testing.T) {
	t.Parallel()
	require.NoError(t, loop.New(nil).Stop(t.Context()))
}

func TestStopWaitsForWorkBesideTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l *loop.Loop
		var ended, canceled bool
		l = loop.New(func(_, work context.Context) time.Duration {
			l.Go(func() {
				<-time.After(3 * time.Second)
				ended, canceled = true, work.Err() != nil
			})
			return time.Hour
		})
		require.NoError(t, l.Start(t.Context()))
		synctest.Wait()
		require.NoError(t, l.Stop(t.Context()))
		require.True(t, ended)
		require.False(t, canceled)
	})
}
