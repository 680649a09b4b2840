package heart_test

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

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heart"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shaky is a store that can be away, or lose its answers.
type shaky struct {
	lease.Store
	mu   sync.Mutex
	away error
	lost bool // acquisitions are made, their answers lost
}

func (s *shaky) set(away error, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.lost = away, lost
}

func (s *shaky) trouble() (lost bool, away error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost, s.away
}

func (s *shaky) Acquire(ctx context.Context, key, holder string, value []byte, t lease.Terms) (lease.Entry, *lease.Entry, error) {
	lost, away := s.trouble()
	if away != nil {
		return lease.Entry{}, nil, away
	}
	got, before, err := s.Store.Acquire(ctx, key, holder, value, t)
	if lost {
		return lease.Entry{}, nil, errors.New("the answer was lost")
	}
	return got, before, err
}

func (s *shaky) Renew(ctx context.Context, key, token string, value []byte, t lease.Terms) (lease.Entry, error) {
	if _, away := s.trouble(); away != nil {
		return lease.Entry{}, away
	}
	return s.Store.Renew(ctx, key, token, value, t)
}

// story runs a heart in a bubble.
func story(t *testing.T, tell func(t *testing.T, h *heart.Heart, s *shaky, start func() (stop func()))) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shaky{Store: lease.NewMemory()}
		beats := 0
		h := &heart.Heart{
			Leases: s, ServerID: "w", Every: 5 * time.Second, Terms: lease.Terms{TTL: 20 * time.Second, Retention: 10 * time.Minute},
			Beat: func() contract.Beat {
				beats++
				return contract.Beat{ServerID: "w", Projects: []string{"shop"}, Serves: 1, Facts: map[string]string{"beat": fmt.Sprint(beats)}}
			},
			Returned: func() {}, Log: slog.New(slog.DiscardHandler),
		}
		tell(t, h, s, func() func() {
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

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func entry(t *testing.T, s *shaky) lease.Entry {
	t.Helper()
	e, err := s.Get(t.Context(), "worker:w")
	require.NoError(t, err)
	return e
}

// TestChangeIsSaidAtOnce: lists show a project without a worker until its heartbeat names it.
func TestChangeIsSaidAtOnce(t *testing.T) {
	story(t, func(t *testing.T, h *heart.Heart, s *shaky, start func() func()) {
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

func TestItBeats(t *testing.T) {
	story(t, func(t *testing.T, h *heart.Heart, s *shaky, start func() func()) {
		stop := start()
		for range 100 {
			pass(5 * time.Second)
			require.Equal(t, lease.Held, entry(t, s).State)
			require.LessOrEqual(t, entry(t, s).Age(), 5*time.Second)
		}
		var b contract.Beat
		require.NoError(t, json.Unmarshal(entry(t, s).Value, &b))
		require.Equal(t, []string{"shop"}, b.Projects)
		require.NotEqual(t, "1", b.Facts["beat"], "each beat says what is so now")
		stop()
		require.Equal(t, lease.Resigned, entry(t, s).State)
		require.False(t, h.StoreFailed(time.Hour))
	})
}

func TestItReturns(t *testing.T) {
	story(t, func(t *testing.T, h *heart.Heart, s *shaky, start func() func()) {
		returned := 0
		h.Returned = func() { returned++ }
		start()
		pass(time.Second)
		s.set(errors.New("away"), false)
		pass(time.Minute)
		require.Equal(t, lease.Expired, entry(t, s).State)
		require.True(t, h.StoreFailed(time.Second))
		require.Zero(t, returned)
		s.set(nil, false)
		pass(5 * time.Second)
		require.Equal(t, lease.Held, entry(t, s).State)
		require.Equal(t, 1, returned)
		pass(time.Minute)
		require.True(t, h.StoreFailed(2*time.Minute))
		require.False(t, h.StoreFailed(30*time.Second))
		e := entry(t, s)
		require.NoError(t, s.Delete(t.Context(), e.Key, e.Token, e.Revision)) // flushed
		pass(5 * time.Second)
		require.Equal(t, lease.Held, entry(t, s).State)
		require.Equal(t, 2, returned)
	})
}

func TestALostAnswerCostsNoBeat(t *testing.T) {
	story(t, func(t *testing.T, _ *heart.Heart, s *shaky, start func() func()) {
		s.set(nil, true)
		start()
		pass(time.Second)
		first := entry(t, s).Token
		s.set(nil, false)
		pass(time.Minute)
		require.Equal(t, lease.Held, entry(t, s).State)
		require.Equal(t, first, entry(t, s).Token)
	})
}

func TestReading(t *testing.T) {
	t.Parallel()
	now := time.Now()
	leases := lease.NewMemory(lease.WithClock(func() time.Time { return now }))
	put := func(id string, ttl time.Duration, b contract.Beat) lease.Entry {
		value, err := b.Encode()
		require.NoError(t, err)
		got, _, err := leases.Acquire(t.Context(), contract.WorkerKey(id), id, value, lease.Terms{TTL: ttl, Retention: time.Hour})
		require.NoError(t, err)
		return got
	}
	put("alive", time.Hour, contract.Beat{ServerID: "alive", Projects: []string{"shop"}, Serves: 1})
	put("busy", time.Hour, contract.Beat{ServerID: "busy", Projects: []string{"a"}, Serves: 500})
	gone := put("gone", time.Hour, contract.Beat{})
	require.NoError(t, leases.Resign(t.Context(), gone.Key, gone.Token))
	put("late", time.Second, contract.Beat{})
	_, _, err := leases.Acquire(t.Context(), "worker:odd", "odd", []byte("not JSON"), lease.Terms{TTL: time.Hour, Retention: time.Hour})
	require.NoError(t, err)
	now = now.Add(time.Minute)
	lives, err := heart.NewRoster(leases, time.Minute).Lives(t.Context())
	require.NoError(t, err)
	require.Len(t, lives, 5)
	require.True(t, lives["alive"].Alive)
	require.True(t, lives["alive"].Serves("shop"))
	require.False(t, lives["alive"].Serves("bank"))
	require.True(t, lives["busy"].Serves("bank"), "its heartbeat cannot name all")
	require.True(t, lives["gone"].Gone)
	require.False(t, lives["gone"].Alive)
	require.False(t, lives["late"].Alive)
	require.True(t, lives["odd"].Alive)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = heart.NewRoster(leases, time.Minute).Lives(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// counting counts what a store is asked.
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

// TestDeadHeartbeatsCostNothing: after many restarts there are thousands of them, and each process reads the heartbeats every few seconds.
func TestDeadHeartbeatsCostNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: lease.NewMemory()}
		roster := heart.NewRoster(store, time.Minute)
		beat := func(id string) {
			_, _, err := store.Acquire(t.Context(), contract.WorkerKey(id), id, nil, lease.Terms{TTL: 20 * time.Second, Retention: time.Hour})
			require.NoError(t, err)
		}
		alive := func() (n int) {
			lives, err := roster.Lives(t.Context())
			require.NoError(t, err)
			for _, life := range lives {
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
		roster.Hint(contract.WorkerKey("b"))
		roster.Hint(contract.OwnerKey(inbox.Name{Project: "shop", TaskQueue: "q"}))
		require.Equal(t, 2, alive())
		beat("dead-7")
		roster.Hint(contract.WorkerKey("dead-7"))
		require.Equal(t, 3, alive(), "it is back")
		<-time.After(30 * time.Second)
		require.Zero(t, alive(), "all have run out")
		beat("c")
		roster.Forget()
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
