package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/loop"
)

type key struct{}

// begins starts a loop with work in progress, and reports whether the work was canceled.
func begins(ctx context.Context, r *loop.Runner, takes time.Duration) (cut chan bool) {
	cut = make(chan bool, 1)
	r.Start(ctx, func(ctx, work context.Context) {
		r.Go(func() {
			select {
			case <-work.Done():
				cut <- true
			case <-time.After(takes):
				cut <- work.Value(key{}) != "kept"
			}
		})
		<-ctx.Done()
	})
	return cut
}

func TestWorkInProgressFinishes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		var r loop.Runner
		cut := begins(started, &r, time.Second)
		cancel()
		began := time.Now()
		r.Stop(t.Context())
		require.Equal(t, time.Second, time.Since(began))
		require.False(t, <-cut)
	})
}

func TestWorkInProgressIsCanceledAtDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r loop.Runner
		cut := begins(t.Context(), &r, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		r.Stop(ctx)
		require.Equal(t, time.Minute, time.Since(began))
		require.True(t, <-cut)
	})
}
