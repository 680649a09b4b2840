package server_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/server"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outage is a store that fails while it is away.
type outage struct {
	mu     sync.Mutex
	away   error
	beats  int
	left   []string
	silent []server.Server
}

func (o *outage) BeatServer(context.Context, server.Server, time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beats++
	return o.away
}

func (o *outage) LeaveServer(_ context.Context, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = append(o.left, id)
	return nil
}

func (o *outage) SilentServers(context.Context, time.Duration, int) ([]server.Server, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.silent, o.away
}

func (o *outage) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = err
}

// After an outage of the database the records of all servers are old: until each has had the time for a heartbeat, none
// is lost.
func TestNoServerIsLostBeforeOthersCouldWriteAHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{silent: []server.Server{{ID: "other"}}}
		h := server.NewHeartbeat(o, server.Server{ID: "own"})
		ctx := logger.WithContext(t.Context(), slog.New(slog.DiscardHandler))
		require.NoError(t, h.Start(ctx))
		known := func() bool {
			lost, known, err := h.Lost(ctx, 2*time.Minute)
			require.NoError(t, err)
			require.Equal(t, known, len(lost) == 1)
			return known
		}
		<-time.After(time.Second)
		require.False(t, known(), "the process has just started")
		<-time.After(20 * time.Second)
		require.True(t, known())
		o.set(errors.New("the database does not answer"))
		<-time.After(time.Minute)
		require.False(t, known())
		o.set(nil)
		<-time.After(6 * time.Second)
		require.False(t, known(), "the database has just answered again")
		<-time.After(20 * time.Second)
		require.True(t, known())
		require.NoError(t, h.Stop(ctx))
		require.Equal(t, []string{"own"}, o.left)
	})
}

// A server that is stopped, or whose instance has a new process, is not silent.
func TestSilentServers(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(),
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	begun := time.Now().UTC().Truncate(time.Microsecond)
	one := server.Server{ID: "one-1", Instance: "one:8080", Roles: []string{"api"}, Version: "1.2.3", StartedAt: begun}
	two := server.Server{ID: "two-1", Instance: "two:8080", Roles: []string{"worker"}, Version: "1.2.3", StartedAt: begun}
	ids := func(olderThan time.Duration) (ids []string) {
		list, err := s.SilentServers(t.Context(), olderThan, 10)
		require.NoError(t, err)
		for _, v := range list {
			ids = append(ids, v.ID)
			if v.ID == one.ID {
				v.SeenAt = time.Time{}
				require.Equal(t, one, v)
			}
		}
		return ids
	}
	for _, v := range []server.Server{one, two, one} {
		require.NoError(t, s.BeatServer(t.Context(), v, time.Hour))
	}
	require.ElementsMatch(t, []string{"one-1", "two-1"}, ids(-time.Second))
	require.Empty(t, ids(time.Minute))
	again := server.Server{ID: "one-2", Instance: "one:8080", StartedAt: begun.Add(time.Second)}
	require.NoError(t, s.BeatServer(t.Context(), again, time.Hour))
	require.ElementsMatch(t, []string{"one-2", "two-1"}, ids(-time.Second))
	require.NoError(t, s.LeaveServer(t.Context(), two.ID))
	require.NoError(t, s.LeaveServer(t.Context(), "unknown"))
	require.Equal(t, []string{"one-2"}, ids(-time.Second))
}
