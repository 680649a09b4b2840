package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/loop"
)

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, loop.Sleep(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(began))
		require.True(t, loop.Sleep(t.Context(), 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.False(t, loop.Sleep(ctx, time.Hour))
		require.Equal(t, time.Second+time.Minute, time.Since(began))
		require.False(t, loop.Sleep(ctx, 0), "ctx had ended before")
	})
}
