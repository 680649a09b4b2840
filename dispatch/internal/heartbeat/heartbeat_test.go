package heartbeat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heartbeat"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faultyStore is a lease store that can be unavailable, or lose its answers.
type faultyStore struct {
	lease.Store
	mu   sync.Mutex
	away error
	lost bool // acquisitions are made, their answers lost
}

func (s *faultyStore) set(away error, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.lost = away, lost
}

func (s *faultyStore) failure() (lost bool, away error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost, s.away
}

func (s *faultyStore) Acquire(ctx context.Context, key, holder string, value []byte,
	t lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	lost, away := s.failure()
	if away != nil {
		return lease.Entry{}, nil, away
	}
	got, before, err := s.Store.Acquire(ctx, key, holder, value, t)
	if lost {
		return lease.Entry{}, nil, errors.New("the answer was lost")
	}
	return got, before, err
}

func (s *faultyStore) Renew(ctx context.Context, key, token string, value []byte,
	t lease.Lifetime) (lease.Entry, error) {
	if _, away := s.failure(); away != nil {
		return lease.Entry{}, away
	}
	return s.Store.Renew(ctx, key, token, value, t)
}

// run runs a heartbeat in a synctest bubble.
func run(t *testing.T, test func(t *testing.T, h *heartbeat.Heartbeat, s *faultyStore, start func() (stop func()))) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &faultyStore{Store: lease.NewMemory()}
		beats := 0
		h := &heartbeat.Heartbeat{
			Leases: s, ServerID: "w", Every: 5 * time.Second,
			Lifetime: lease.Lifetime{TTL: 20 * time.Second, Retention: 10 * time.Minute},
			Beat: func() dispatchtype.Heartbeat {
				beats++
				return dispatchtype.Heartbeat{
					ServerID: "w", Projects: []string{"shop"}, Serves: 1, Facts: map[string]string{"beat": fmt.Sprint(beats)}}
			},
			Returned: func() {}, Log: slog.New(slog.DiscardHandler),
		}
		test(t, h, s, func() func() {
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() {
				defer close(over)
				h.Run(ctx)
			}()
			stop := sync.OnceFunc(func() { cancel(); <-over })
			t.Cleanup(stop)
			return stop
		})
	})
}

func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func entry(t *testing.T, s *faultyStore) lease.Entry {
	t.Helper()
	e, err := s.Get(t.Context(), "worker:w")
	require.NoError(t, err)
	return e
}

// TestChangeIsWrittenAtOnce: lists show a project without a worker until a heartbeat names it.
func TestChangeIsWrittenAtOnce(t *testing.T) {
	run(t, func(t *testing.T, h *heartbeat.Heartbeat, s *faultyStore, start func() func()) {
		changed := make(chan struct{}, 1)
		h.Changed = changed
		start()
		synctest.Wait()
		before := entry(t, s)
		changed <- struct{}{}
		synctest.Wait()
		require.NotEqual(t, string(before.Value), string(entry(t, s).Value))
		require.Equal(t, before.Token, entry(t, s).Token)
	})
}

func TestHeartbeatIsWrittenAndResigned(t *testing.T) {
	run(t, func(t *testing.T, h *heartbeat.Heartbeat, s *faultyStore, start func() func()) {
		stop := start()
		for range 100 {
			advance(5 * time.Second)
			require.Equal(t, lease.Held, entry(t, s).State)
			require.LessOrEqual(t, entry(t, s).Age(), 5*time.Second)
		}
		var b dispatchtype.Heartbeat
		require.NoError(t, json.Unmarshal(entry(t, s).Value, &b))
		require.Equal(t, []string{"shop"}, b.Projects)
		require.NotEqual(t, "1", b.Facts["beat"], "each heartbeat has the current facts")
		stop()
		require.Equal(t, lease.Resigned, entry(t, s).State)
		require.False(t, h.StoreFailed(time.Hour))
	})
}

func TestLostHeartbeatIsWrittenAgain(t *testing.T) {
	run(t, func(t *testing.T, h *heartbeat.Heartbeat, s *faultyStore, start func() func()) {
		returned := 0
		h.Returned = func() { returned++ }
		start()
		advance(time.Second)
		s.set(errors.New("away"), false)
		advance(time.Minute)
		require.Equal(t, lease.Expired, entry(t, s).State)
		require.True(t, h.StoreFailed(time.Second))
		require.Zero(t, returned)
		s.set(nil, false)
		advance(5 * time.Second)
		require.Equal(t, lease.Held, entry(t, s).State)
		require.Equal(t, 1, returned)
		advance(time.Minute)
		require.True(t, h.StoreFailed(2*time.Minute))
		require.False(t, h.StoreFailed(30*time.Second))
		e := entry(t, s)
		require.NoError(t, s.Delete(t.Context(), e.Key, e.Token, e.Revision)) // flushed
		advance(5 * time.Second)
		require.Equal(t, lease.Held, entry(t, s).State)
		require.Equal(t, 2, returned)
	})
}

func TestLostAnswerOfAcquire(t *testing.T) {
	run(t, func(t *testing.T, _ *heartbeat.Heartbeat, s *faultyStore, start func() func()) {
		s.set(nil, true)
		start()
		advance(time.Second)
		first := entry(t, s).Token
		s.set(nil, false)
		advance(time.Minute)
		require.Equal(t, lease.Held, entry(t, s).State)
		require.Equal(t, first, entry(t, s).Token)
	})
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	leases := lease.NewMemory(lease.WithClock(func() time.Time { return now }))
	put := func(id string, ttl time.Duration, b dispatchtype.Heartbeat) lease.Entry {
		value, err := wire.EncodeHeartbeat(b)
		require.NoError(t, err)
		got, _, err := leases.Acquire(t.Context(), wire.WorkerKey(id), id, value,
			lease.Lifetime{TTL: ttl, Retention: time.Hour})
		require.NoError(t, err)
		return got
	}
	put("alive", time.Hour, dispatchtype.Heartbeat{ServerID: "alive", Projects: []string{"shop"}, Serves: 1})
	put("busy", time.Hour, dispatchtype.Heartbeat{ServerID: "busy", Projects: []string{"a"}, Serves: 500})
	gone := put("gone", time.Hour, dispatchtype.Heartbeat{})
	require.NoError(t, leases.Resign(t.Context(), gone.Key, gone.Token))
	put("late", time.Second, dispatchtype.Heartbeat{})
	_, _, err := leases.Acquire(t.Context(), "worker:odd", "odd", []byte("not JSON"),
		lease.Lifetime{TTL: time.Hour, Retention: time.Hour})
	require.NoError(t, err)
	now = now.Add(time.Minute)
	processes, err := heartbeat.NewWorkers(leases, time.Minute).Processes(t.Context())
	require.NoError(t, err)
	require.Len(t, processes, 5)
	require.True(t, processes["alive"].Alive)
	require.True(t, processes["alive"].Serves("shop"))
	require.False(t, processes["alive"].Serves("bank"))
	require.True(t, processes["busy"].Serves("bank"), "its heartbeat does not list all projects")
	require.True(t, processes["gone"].Gone)
	require.False(t, processes["gone"].Alive)
	require.False(t, processes["late"].Alive)
	require.True(t, processes["odd"].Alive)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = heartbeat.NewWorkers(leases, time.Minute).Processes(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// counting counts the requests to a store.
type counting struct {
	lease.Store
	lists, gets int
}

func (c *counting) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	c.lists++
	return c.Store.List(ctx, prefix)
}

func (c *counting) Get(ctx context.Context, key string) (lease.Entry, error) {
	c.gets++
	return c.Store.Get(ctx, key)
}

// TestDeadHeartbeatsAreNotRead: after many restarts there are thousands of them, and each process reads the heartbeats
// every few seconds.
func TestDeadHeartbeatsAreNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: lease.NewMemory()}
		roster := heartbeat.NewWorkers(store, time.Minute)
		beat := func(id string) {
			_, _, err := store.Acquire(t.Context(), wire.WorkerKey(id), id, nil,
				lease.Lifetime{TTL: 20 * time.Second, Retention: time.Hour})
			require.NoError(t, err)
		}
		alive := func() (n int) {
			processes, err := roster.Processes(t.Context())
			require.NoError(t, err)
			for _, life := range processes {
				if life.Alive {
					n++
				}
			}
			return n
		}
		for i := range 1000 {
			beat(fmt.Sprint("dead-", i))
		}
		<-time.After(30 * time.Second)
		beat("a")
		require.Equal(t, 1, alive())
		for range 10 {
			<-time.After(time.Second)
			require.Equal(t, 1, alive())
		}
		require.Equal(t, []int{1, 10}, []int{store.lists, store.gets})
		beat("b")
		require.Equal(t, 1, alive(), "not announced")
		roster.Hint(wire.WorkerKey("b"))
		roster.Hint(wire.OwnerKey(inbox.Name{Project: "shop", TaskQueue: "q"}))
		require.Equal(t, 2, alive())
		beat("dead-7")
		roster.Hint(wire.WorkerKey("dead-7"))
		require.Equal(t, 3, alive(), "the hint makes it alive again")
		<-time.After(30 * time.Second)
		require.Zero(t, alive(), "all have expired")
		beat("c")
		roster.Invalidate()
		require.Equal(t, 1, alive())
		require.Equal(t, 2, store.lists)
		<-time.After(time.Minute)
		require.Zero(t, alive())
		require.Equal(t, 3, store.lists)
		roster.Listed(nil)
		require.Zero(t, alive())
		require.Equal(t, 3, store.lists, "another part has listed them")
	})
}
