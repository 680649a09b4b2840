package dispatcherflow_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dispatch/internal/delivery"
	"github.com/signalbox-dev/signalbox/dispatch/internal/dispatcherflow"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// activityBench executes activities without a workflow.
type activityBench struct {
	*testsuite.TestActivityEnvironment
	leases     *lease.Memory
	inbox      *memory.Inbox
	evicted    []dispatchtype.Eviction
	evictError error // the result of reporting an eviction
	acts       *dispatcherflow.Activities
	stop       chan struct{}
	// canceled receives the names of canceled routings.
	canceled chan inbox.Name
	ahead    atomic.Int64 // offset of the lease store's clock
}

func newActivityBench() *activityBench {
	w := &activityBench{stop: make(chan struct{}), canceled: make(chan inbox.Name, 1)}
	w.leases = lease.NewMemory(lease.WithClock(func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }))
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	w.TestActivityEnvironment = suite.NewTestActivityEnvironment()
	w.SetWorkerStopChannel(w.stop)
	w.inbox = memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
		return inbox.Outcome{Result: inbox.Done}
	})
	w.acts = &dispatcherflow.Activities{
		ServerID: "me", Inbox: w.inbox, Leases: w.leases, Idle: 50 * time.Millisecond, Metrics: client.MetricsNopHandler,
		Evicted: func(_ context.Context, e dispatchtype.Eviction) error {
			w.evicted = append(w.evicted, e)
			return w.evictError
		},
		Canceled: func(_ context.Context, name inbox.Name) { w.canceled <- name },
		Log:      slog.New(slog.DiscardHandler),
	}
	w.RegisterActivity(w.acts.Route)
	w.RegisterActivity(w.acts.Check)
	w.RegisterActivity(w.acts.Evict)
	return w
}

func (w *activityBench) beat(t *testing.T, id string) lease.Entry {
	got, _, err := w.leases.Acquire(t.Context(), wire.WorkerKey(id), id, nil,
		lease.Lifetime{TTL: 20 * time.Second, Retention: time.Hour})
	require.NoError(t, err)
	return got
}

func TestCheckReadsHeartbeats(t *testing.T) {
	t.Parallel()
	w := newActivityBench()
	w.beat(t, "late")
	w.beat(t, "late too")
	w.ahead.Store(int64(time.Minute))
	w.beat(t, "alive")
	left := w.beat(t, "left")
	require.NoError(t, w.leases.Resign(t.Context(), left.Key, left.Token))
	value, err := w.ExecuteActivity(w.acts.Check,
		dispatcherflow.CheckInput{
			ServerIDs: []string{"alive", "late", "late too", "left", "never"}, Reread: []string{"late"}})
	require.NoError(t, err)
	var out dispatcherflow.CheckOutput
	require.NoError(t, value.Get(&out))
	require.Equal(t, []string{"left"}, out.Left)
	require.Equal(t, []string{"late", "late too", "never"}, out.Missed)
}

// TestWorkerThatLeftIsNotMissed: a lease store in memory loses the resigned heartbeats at a restart.
func TestWorkerThatLeftIsNotMissed(t *testing.T) {
	t.Parallel()
	w := newActivityBench()
	var away error
	w.acts.Left = func(_ context.Context, serverIDs []string) ([]string, error) {
		require.Equal(t, []string{"killed", "left"}, serverIDs,
			"only workers that would be evicted: a new one is not stored yet")
		return []string{"left"}, away
	}
	in := dispatcherflow.CheckInput{ServerIDs: []string{"killed", "left", "new"}, Reread: []string{"killed", "left"}}
	value, err := w.ExecuteActivity(w.acts.Check, in)
	require.NoError(t, err)
	var out dispatcherflow.CheckOutput
	require.NoError(t, value.Get(&out))
	require.Equal(t, dispatcherflow.CheckOutput{Left: []string{"left"}, Missed: []string{"killed", "new"}}, out)
	away = errors.New("the database is away")
	_, err = w.ExecuteActivity(w.acts.Check, in)
	require.ErrorContains(t, err, "the database is away", "nothing is evicted while it is not known who left")
}

func TestWorkerBackBeforeRereadIsAlive(t *testing.T) {
	t.Parallel()
	w := newActivityBench()
	w.beat(t, "late")
	w.ahead.Store(int64(time.Minute))
	ctx := t.Context()
	back := make(chan error, 1)
	time.AfterFunc(200*time.Millisecond, func() {
		_, _, err := w.leases.Acquire(ctx, wire.WorkerKey("late"), "late", nil,
			lease.Lifetime{TTL: time.Hour, Retention: time.Hour})
		back <- err
	})
	value, err := w.ExecuteActivity(w.acts.Check,
		dispatcherflow.CheckInput{ServerIDs: []string{"late"}, Reread: []string{"late"}})
	require.NoError(t, err)
	require.NoError(t, <-back)
	var out dispatcherflow.CheckOutput
	require.NoError(t, value.Get(&out))
	require.Empty(t, out.Missed)
}

func TestEvictReportsWorkers(t *testing.T) {
	t.Parallel()
	w := newActivityBench()
	at := time.Now().UTC()
	_, err := w.ExecuteActivity(w.acts.Evict, dispatcherflow.EvictInput{Name: name, Evicted: []string{"a", "b"}, At: at})
	require.NoError(t, err)
	require.Equal(t, []dispatchtype.Eviction{{Name: name, Evicted: []string{"a", "b"}, By: "me", At: at}}, w.evicted)
	w.evictError = errors.New("the database is away")
	_, err = w.ExecuteActivity(w.acts.Evict, dispatcherflow.EvictInput{Name: name, Evicted: []string{"c"}, At: at})
	require.ErrorContains(t, err, "the database is away", "Temporal retries the report")
}

func TestRouteRecordsHeartbeats(t *testing.T) {
	t.Parallel()
	w := newActivityBench()
	owner, err := w.inbox.Fence(t.Context(), name, "me", 0)
	require.NoError(t, err)
	w.inbox.Publish(name, "", "event")
	value, err := w.ExecuteActivity(w.acts.Route, dispatcherflow.RouteInput{Name: name, Owner: owner})
	require.NoError(t, err)
	var end delivery.End
	require.NoError(t, value.Get(&end))
	require.Equal(t, delivery.Parked, end)
}

func TestRouteEndsWhenWorkerStops(t *testing.T) {
	t.Parallel()
	w := newActivityBench()
	owner, err := w.inbox.Fence(t.Context(), name, "me", 0)
	require.NoError(t, err)
	w.acts.Idle = time.Hour // an empty inbox parks nothing before the stop is noticed
	close(w.stop)
	_, err = w.ExecuteActivity(w.acts.Route, dispatcherflow.RouteInput{Name: name, Owner: owner, Busy: true})
	application, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "stopped", application.Type())
	require.False(t, application.NonRetryable())
	require.Equal(t, time.Millisecond, application.NextRetryDelay(), "another process continues at once")
}

// TestCanceledRoutingRecordsOutcomes: after its dispatcher was closed, no claimed delivery may wait until its
// visibility time ends.
func TestCanceledRoutingRecordsOutcomes(t *testing.T) {
	t.Parallel()
	w := newActivityBench()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	w.inbox = memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
		cancel()
		return inbox.Outcome{Result: inbox.Done}
	})
	w.acts.Inbox, w.acts.Idle = w.inbox, time.Hour
	owner, err := w.inbox.Fence(t.Context(), name, "me", 0)
	require.NoError(t, err)
	w.inbox.Publish(name, "", "event")
	value, err := w.ExecuteActivity(w.acts.Route, dispatcherflow.RouteInput{Name: name, Owner: owner})
	require.NoError(t, err)
	var end delivery.End
	require.NoError(t, value.Get(&end))
	require.Equal(t, delivery.Turned, end)
	require.Equal(t, name, <-w.canceled, "its owner is notified")
	progress, err := w.inbox.Progress(t.Context(), name)
	require.NoError(t, err)
	require.Zero(t, progress[0].Pending)
}
