package dispatch

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/lease"
)

// bell is a client by which doorbells can be rung, and nothing else.
type bell struct {
	client.Client
	rung atomic.Int64
}

func (b *bell) SignalWorkflow(context.Context, string, string, string, any) error {
	b.rung.Add(1)
	return nil
}

// TestASleeperThatNobodyOwns: who only serves a dispatcher rings as well, or a retry would wait until the leases are back.
func TestASleeperThatNobodyOwns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bell{}
		box := memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		})
		d, err := New(Options{
			ServerID: "w-1", Client: func() (client.Client, error) { return b, nil }, Namespace: "default", Leases: lease.NewMemory(), Inbox: box,
		})
		require.NoError(t, err)
		served := Name{Project: "shop", TaskQueue: "orders"}
		require.NoError(t, d.Serve(served))
		for _, name := range []Name{served, {Project: "bank", TaskQueue: "orders"}} {
			own, err := box.Fence(t.Context(), name, "gone", 0)
			require.NoError(t, err)
			parked, err := box.Park(t.Context(), name, own)
			require.NoError(t, err)
			require.True(t, parked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go d.sweep(ctx)
		<-time.After(time.Minute)
		require.Zero(t, b.rung.Load(), "nothing is due")
		box.Publish(served, "", "event")
		box.Publish(Name{Project: "bank", TaskQueue: "orders"}, "", "event")
		<-time.After(time.Minute)
		require.GreaterOrEqual(t, b.rung.Load(), int64(5))
		require.LessOrEqual(t, b.rung.Load(), int64(8), "slower than an owner, and for nobody that is not served")
	})
}

// TestWhoDoesNotPollLeavesTheDispatcherToOthers: one that crashes over and over before it works must not own in between.
func TestWhoDoesNotPollLeavesTheDispatcherToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var polls atomic.Bool
		served := Name{Project: "shop", TaskQueue: "orders"}
		d, err := New(Options{
			ServerID: "w-1", Client: func() (client.Client, error) { return &bell{}, nil }, Namespace: "default", Leases: lease.NewMemory(),
			Inbox: memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
				return inbox.Outcome{Result: inbox.Done}
			}),
			Polls: func(name Name) bool { return name == served && polls.Load() },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go d.watchClient(ctx)
		fit := make(chan error, 1)
		go func() { fit <- d.process.Fit(ctx, served) }()
		<-time.After(time.Hour)
		require.Empty(t, fit)
		require.NoError(t, d.ready(ctx), "it may use Temporal meanwhile")
		polls.Store(true)
		began := time.Now()
		require.NoError(t, <-fit)
		require.LessOrEqual(t, time.Since(began), clientEvery, "and does not wait for long once it does")
		require.NoError(t, d.process.Fit(ctx, served))
		polls.Store(false)
		cancel()
		require.ErrorIs(t, d.process.Fit(ctx, served), context.Canceled)
	})
}
