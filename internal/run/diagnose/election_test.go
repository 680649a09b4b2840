package diagnose_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// TestOneWatcherIsElected starts two watchers on one store. The second one takes over when the first one stops.
func TestOneWatcherIsElected(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	other := diagnose.New(w.store.Verdicts(), w.store, w.engine, diagnose.Options{
		After: time.Minute, Now: func() time.Time {
			return w.now
		}, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
		Changes: w.changes, Committed: func(context.Context, string, bool) {},
	})
	acting := func(x *diagnose.Watcher) func() bool {
		return func() bool {
			_, is := x.Counts()
			return is
		}
	}
	require.NoError(t, w.Start(t.Context()))
	require.Eventually(t, acting(w.Watcher), time.Minute, 5*time.Millisecond)
	require.NoError(t, other.Start(t.Context()))
	require.Never(t, acting(other), 100*time.Millisecond, 10*time.Millisecond)
	require.NoError(t, w.Stop(t.Context()))
	require.False(t, acting(w.Watcher)())
	require.Eventually(t, acting(other), time.Minute, 5*time.Millisecond)
	require.NoError(t, other.Stop(t.Context()))
}

// TestSuspendedWatcherGivesUpItsElection suspends the elected watcher, as a process near its memory limit does.
func TestSuspendedWatcherGivesUpItsElection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var suspended atomic.Bool
		s := &oneRunStore{verdicts: make(chan time.Time, 1)}
		w := diagnose.New(s, s, &fakeEngine{queue: diagnose.QueueState{Name: "signalbox-default"}}, diagnose.Options{
			After: time.Minute, Now: time.Now, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
			Changes: pubsub.NewNotifier(), Committed: func(context.Context, string, bool) {}, Suspended: suspended.Load,
		})
		require.NoError(t, w.Start(t.Context()))
		<-time.After(5 * time.Second)
		_, acting := w.Counts()
		require.True(t, acting)

		suspended.Store(true)
		<-time.After(5 * time.Second)
		_, acting = w.Counts()
		require.False(t, acting, "it is no longer elected")
		s.mu.Lock()
		described := s.queries
		s.mu.Unlock()
		<-time.After(time.Minute)
		s.mu.Lock()
		require.Equal(t, described, s.queries, "it makes no query while suspended")
		s.mu.Unlock()

		suspended.Store(false)
		<-time.After(5 * time.Second)
		_, acting = w.Counts()
		require.True(t, acting)
		require.NoError(t, w.Stop(t.Context()))
	})
}

// lockedStore is a store whose lock another process may hold.
type lockedStore struct {
	*oneRunStore

	held atomic.Bool
}

func (s *lockedStore) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (bool, error) {
	if s.held.Load() {
		return false, nil
	}
	return s.oneRunStore.Exclusive(ctx, name, fn)
}

// A process in another Temporal than the runs judges them only while no other process does: their verdicts would
// alternate.
func TestServerInAnotherTemporalLeavesVerdictsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &lockedStore{oneRunStore: &oneRunStore{verdicts: make(chan time.Time, 100)}}
		s.held.Store(true)
		w := diagnose.New(s, s, &fakeEngine{queue: diagnose.QueueState{Name: "signalbox-default"}}, diagnose.Options{
			After: time.Minute, Now: time.Now, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
			Elsewhere: func() run.ClusterID { return run.ClusterID{Address: "a:7233", Namespace: "ns", NamespaceID: "n1"} },
			Changes:   pubsub.NewNotifier(), Committed: func(context.Context, string, bool) {},
		})
		require.NoError(t, w.Start(t.Context()))
		queries := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.queries
		}
		// The other process loses its election for a moment, again and again: for one attempt of those that the watcher
		// makes every 6 s.
		<-time.After(time.Second)
		for range 5 {
			<-time.After(20 * time.Second)
			s.held.Store(false)
			<-time.After(4 * time.Second)
			s.held.Store(true)
		}
		require.Zero(t, queries())
		s.held.Store(false)
		<-time.After(15 * time.Second)
		require.Positive(t, queries(), "no other process is left")
		require.NoError(t, w.Stop(t.Context()))
	})
}
