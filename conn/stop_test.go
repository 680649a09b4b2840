package conn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

// TestEveryStopWaitsForHooks has a hook that delays the end of the manager. Every call of Stop returns nil only after
// the hook has returned: the first one, concurrent ones, and those after one with an ended context.
func TestEveryStopWaitsForHooks(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	hooked, release := make(chan struct{}), make(chan struct{})
	r.OnConnect("slow", func(context.Context, client.Client) error {
		close(hooked)
		<-release
		return nil
	})
	r.connect(t)
	<-hooked
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, r.Stop(ctx), context.DeadlineExceeded)
		cancel()
	}
	ended := make(chan error, 2)
	ctx := soon(t)
	for range cap(ended) {
		go func() { ended <- r.Stop(ctx) }()
	}
	require.Never(t, func() bool { return len(ended) > 0 }, 50*time.Millisecond, 5*time.Millisecond)
	close(release)
	for range cap(ended) {
		require.NoError(t, <-ended)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Stop(late), "nothing is left, so the ended context does not matter")
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Stop(soon(t)))
	require.ErrorContains(t, r.Start(t.Context()), "stopped")
	require.Equal(t, conn.Closed, r.Status().State)
	var down *conn.DownError
	require.ErrorAs(t, r.Await(soon(t)), &down)
	require.Equal(t, conn.Closed, down.State)
	require.NoError(t, r.Stop(soon(t)))
	require.Zero(t, r.frontend.Accepted())
}

// TestStopDoesNotWaitForAFrozenServer stops workers while the server does not end their polls, before the manager has
// detected the freeze and after.
func TestStopDoesNotWaitForAFrozenServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		detected bool
		limit    time.Duration
	}{
		"detected":     {true, 2500 * time.Millisecond},
		"not detected": {false, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, conntest.Options{}, func(o *conn.Options) { o.DrainTimeout = patience })
			require.NoError(t, r.Register("orders", idle("orders")))
			r.connect(t)
			r.until(t, polling)
			require.NoError(t, r.frontend.AwaitPollers(soon(t), "orders", 2))
			r.frontend.Freeze()
			if tt.detected {
				r.until(t, is(conn.Down, conn.Hung))
			}
			watch := stopwatch.Start(t)
			require.NoError(t, r.Unregister(soon(t), "orders"))
			require.Less(t, watch.Elapsed(), tt.limit)
		})
	}
}

// reporting is a worker that reports the result of an activity during its stop, over the worker's client, as the SDK
// does.
type reporting struct {
	worker.Worker

	client  client.Client
	stopped chan struct{} // closed when the stop begins
	outcome chan error
}

func (w reporting) Stop() {
	close(w.stopped)
	w.outcome <- w.client.CompleteActivity(context.Background(), []byte("task"), "result", nil)
	w.Worker.Stop()
}

// TestStopGivesUpResultsWithoutAServer stops a worker that has a result to report while no process listens at
// Temporal's address. The SDK alone would retry for 10 s.
func TestStopGivesUpResultsWithoutAServer(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		t.Run(map[bool]string{false: "server stays down", true: "server restarts in time"}[back], func(t *testing.T) {
			t.Parallel()
			r := newRig(t, conntest.Options{})
			stopped, outcome := make(chan struct{}), make(chan error, 1)
			require.NoError(t, r.Register("orders", func(c client.Client) (worker.Worker, error) {
				w, err := idle("orders")(c)
				return reporting{w, c, stopped, outcome}, err
			}))
			r.connect(t)
			r.until(t, polling)
			r.frontend.Stop()
			watch := stopwatch.Start(t)
			removed := make(chan error, 1)
			ctx := soon(t)
			go func() { removed <- r.Unregister(ctx, "orders") }()
			<-stopped
			if back {
				require.NoError(t, r.frontend.Restart())
				require.NoError(t, r.frontend.AwaitCalls(soon(t), "RespondActivityTaskCompleted", 1))
			} else {
				var canceled *serviceerror.Canceled
				require.ErrorAs(t, <-outcome, &canceled)
			}
			require.NoError(t, <-removed)
			require.Less(t, watch.Elapsed(), 8*time.Second)
		})
	}
}

// TestSecondWorkerStopsSoonerOverAFrozenServer stops workers one after another while the manager has not detected the
// freeze.
func TestSecondWorkerStopsSoonerOverAFrozenServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{}, func(o *conn.Options) {
		o.CheckEvery, o.ProbeEvery, o.CheckTimeout = time.Hour, time.Hour, time.Minute
	})
	for _, name := range []string{"orders", "refunds"} {
		require.NoError(t, r.Register(name, idle(name)))
	}
	r.connect(t)
	r.until(t, polling)
	r.frontend.Freeze()
	first := stopwatch.Start(t)
	require.NoError(t, r.Unregister(soon(t), "orders"))
	took := first.Elapsed()
	second := stopwatch.Start(t)
	require.NoError(t, r.Unregister(soon(t), "refunds"))
	require.Less(t, second.Elapsed(), took)
	require.Equal(t, conn.Connected, r.Status().State)
}

func TestStopWhileConnecting(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	r.frontend.Mute()
	require.NoError(t, r.Register("orders", idle("orders")))
	r.start(t)
	require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Accepted() > 0 }))
	watch := stopwatch.Start(t)
	require.NoError(t, r.Stop(soon(t)))
	require.Less(t, watch.Elapsed(), time.Second)
	require.Equal(t, conn.Closed, r.Status().State)
	require.Error(t, r.Await(soon(t)))
	require.Error(t, r.Start(t.Context()))
}

// TestStopWhileUnreachable stops workers whose polls wait for a connection, before and after the manager has detected
// the outage.
func TestStopWhileUnreachable(t *testing.T) {
	t.Parallel()
	for name, detected := range map[string]bool{"detected": true, "not detected yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, conntest.Options{})
			require.NoError(t, r.Register("orders", idle("orders")))
			r.connect(t)
			r.until(t, polling)
			r.frontend.Stop()
			if detected {
				r.until(t, is(conn.Down, conn.Unreachable))
			}
			watch := stopwatch.Start(t)
			require.NoError(t, r.Unregister(soon(t), "orders"))
			require.Less(t, watch.Elapsed(), 2*time.Second)
			require.NoError(t, r.Stop(soon(t)))
			require.Less(t, watch.Elapsed(), 2*time.Second)
		})
	}
}

func TestStopWhileHung(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	r.connect(t)
	r.until(t, polling)
	r.frontend.Freeze()
	r.until(t, is(conn.Down, conn.Hung))
	watch := stopwatch.Start(t)
	require.NoError(t, r.Stop(soon(t)))
	require.Less(t, watch.Elapsed(), 4*time.Second, "the drain has a time limit")
}
