package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("temporal is away")

func options(leases lease.Store) dispatch.Options {
	return dispatch.Options{
		ServerID: "w-1", Client: func() (client.Client, error) { return nil, errAway }, Namespace: "default", Leases: leases,
		Inbox: memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		}),
	}
}

func TestID(t *testing.T) {
	t.Parallel()
	id, err := dispatch.ID("default", "signalbox-default")
	require.NoError(t, err)
	require.Equal(t, "dispatcher-default-signalbox-default", id)
	_, err = dispatch.ID("Default", "")
	require.ErrorContains(t, err, `project "Default"`)
	require.ErrorContains(t, err, "task queue: missing")
}

func TestValidateReturnsEveryViolation(t *testing.T) {
	t.Parallel()
	_, err := dispatch.New(dispatch.Options{
		Timing:     dispatch.Timing{Renew: time.Minute},
		Supervisor: dispatch.SupervisorOptions{Interval: time.Hour, LegacyIDs: []string{"dispatcher-*"}},
	})
	for _, problem := range []string{
		"server ID", "client: missing", "namespace: missing", "leases: missing", "inbox: missing",
		"renew 1m0s is not shorter than ttl 9s",
		"add up to 1h0m22s", `pattern "dispatcher-*": {project} is missing`,
	} {
		require.ErrorContains(t, err, problem)
	}
	o := options(lease.NewMemory())
	require.NoError(t, o.Validate())
	o.ServerID = strings.Repeat("x", 250)
	require.ErrorContains(t, o.Validate(), "server ID")
}

func TestStartWithoutTemporal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := lease.NewMemory()
		d, err := dispatch.New(options(leases))
		require.NoError(t, err)
		early, late := dispatch.Name{Project: "early", TaskQueue: "q"}, dispatch.Name{Project: "late", TaskQueue: "q"}
		require.Error(t, d.Serve(dispatch.Name{Project: "Early"}))
		require.NoError(t, d.Serve(early))
		require.NoError(t, d.Start(t.Context()))
		require.Error(t, d.Start(t.Context()))
		require.NoError(t, d.Serve(late))
		require.NoError(t, d.Serve(late))
		<-time.After(time.Minute)

		beat, err := leases.Get(t.Context(), "worker:w-1")
		require.NoError(t, err)
		require.Equal(t, lease.Held, beat.State)
		require.Contains(t, string(beat.Value), `"projects":["early","late"]`)
		_, err = leases.Get(t.Context(), "dispatcher:early:q")
		require.ErrorIs(t, err, lease.ErrNotFound, "nothing is owned without Temporal")
		require.Empty(t, d.Owned())
		require.ErrorIs(t, d.Ring(t.Context(), early), errAway)
		require.ErrorIs(t, d.RequestHandover(t.Context(), early, "ann", "why"), dispatch.ErrNotOwned)

		require.NoError(t, d.Leave(t.Context(), late))
		require.NoError(t, d.Leave(t.Context(), late))
		<-time.After(10 * time.Second)
		beat, err = leases.Get(t.Context(), "worker:w-1")
		require.NoError(t, err)
		require.Contains(t, string(beat.Value), `"projects":["early"]`)

		require.NoError(t, d.Stop(t.Context()))
		require.NoError(t, d.Stop(t.Context()))
		beat, err = leases.Get(t.Context(), "worker:w-1")
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, beat.State)
	})
}

// TestServeDuringStopStartsNothing: the race detector reports a goroutine that is started too late.
func TestServeDuringStopStartsNothing(t *testing.T) {
	t.Parallel()
	for range 50 {
		d, err := dispatch.New(options(lease.NewMemory()))
		require.NoError(t, err)
		require.NoError(t, d.Start(t.Context()))
		var serving sync.WaitGroup
		for i := range 8 {
			serving.Go(func() { assert.NoError(t, d.Serve(dispatch.Name{Project: fmt.Sprintf("p-%d", i), TaskQueue: "q"})) })
		}
		require.NoError(t, d.Stop(t.Context()))
		serving.Wait()
		require.NoError(t, d.Serve(dispatch.Name{Project: "late", TaskQueue: "q"}),
			"Serve returns no error, and starts nothing")
		require.Empty(t, d.Owned())
	}
}

func TestHandoverIsRequestedFromOwner(t *testing.T) {
	t.Parallel()
	leases := lease.NewMemory()
	d, err := dispatch.New(options(leases))
	require.NoError(t, err)
	name := dispatch.Name{Project: "shop", TaskQueue: "orders"}
	_, _, err = leases.Acquire(t.Context(), "dispatcher:shop:orders", "w-2", nil,
		lease.Lifetime{TTL: time.Hour, Retention: time.Hour})
	require.NoError(t, err)
	require.NoError(t, d.RequestHandover(t.Context(), name, "ann", "deploy"))
	require.NoError(t, d.RequestHandover(t.Context(), name, "bob", "too"), "a pending request suffices")
	request, err := leases.Get(t.Context(), "handover:shop:orders")
	require.NoError(t, err)
	require.JSONEq(t, `{"by":"ann","reason":"deploy"}`, string(request.Value))
	require.Equal(t, 30*time.Second, request.ExpiresAt.Sub(request.AcquiredAt))
}

// TestManyServedDispatchersShareOnePoll: ten thousand goroutines wait for Temporal, and one polls for all.
func TestManyServedDispatchersShareOnePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(lease.NewMemory())
		calls := new(atomic.Int64)
		o.Client = func() (client.Client, error) {
			calls.Add(1)
			return nil, errAway
		}
		d, err := dispatch.New(o)
		require.NoError(t, err)
		require.NoError(t, d.Start(t.Context()))
		for i := range 10_000 {
			require.NoError(t, d.Serve(dispatch.Name{Project: fmt.Sprintf("p%d", i), TaskQueue: "q"}))
		}
		synctest.Wait()
		before := calls.Load()
		<-time.After(10 * time.Second)
		require.Less(t, calls.Load()-before, int64(1000))
		require.NoError(t, d.Stop(t.Context()))
	})
}
