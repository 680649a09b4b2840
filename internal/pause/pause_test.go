package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/pause"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, pause.For(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(began))
		require.True(t, pause.For(t.Context(), 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.False(t, pause.For(ctx, time.Hour))
		require.Equal(t, time.Second+time.Minute, time.Since(began))
		require.False(t, pause.For(ctx, 0), "it had ended before")
	})
}
