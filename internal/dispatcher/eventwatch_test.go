package dispatcher_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const shop = "shop"

// newsStore is a store that only has news.
type newsStore struct {
	event.Store
	mu    sync.Mutex
	news  []event.News // returned by each request from now on
	due   bool
	away  bool
	asked int
}

func (b *newsStore) News(_ context.Context, mark int64) ([]event.News, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if b.away {
		return nil, 0, errors.New("the database is away")
	}
	if mark == 0 {
		return nil, 1, nil
	}
	return b.news, mark + 1, nil
}

func (b *newsStore) Progress(_ context.Context, names []inbox.Name) ([]inbox.Progress, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return []inbox.Progress{{Name: names[0], Due: b.due}}, nil
}

func (b *newsStore) set(change func(b *newsStore)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// requests returns the number of requests for news since the last call.
func (b *newsStore) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.asked
	b.asked = 0
	return n
}

func watching(t *testing.T, b *newsStore) (*dispatcher.Router, *pubsub.Notifier) {
	t.Helper()
	hints := pubsub.NewNotifier()
	r := dispatcher.NewRouter(dispatcher.RouterOptions{Store: b, Hints: hints})
	require.NoError(t, r.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, r.Stop(ctx)) })
	return r, hints
}

// waited returns the duration of Await, at most a minute.
func waited(t *testing.T, r *dispatcher.Router, project string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	r.Await(ctx, inbox.Name{Project: project, TaskQueue: "q"})
	return time.Since(begin)
}

func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &newsStore{}
		r, hints := watching(t, b)
		require.Zero(t, b.requests(), "no waiter")
		require.Equal(t, time.Minute, waited(t, r, shop), "no news")
		require.InDelta(t, 3000, b.requests(), 2)

		time.AfterFunc(time.Second, func() { hints.Notify(shop) })
		require.Equal(t, time.Second, waited(t, r, shop), "a commit of this process")

		time.AfterFunc(time.Second, func() { b.set(func(b *newsStore) { b.news = []event.News{{Project: shop, Head: 7}} }) })
		took := waited(t, r, shop)
		require.GreaterOrEqual(t, took, time.Second)
		require.LessOrEqual(t, took, time.Second+20*time.Millisecond, "a commit of another process")
		require.Equal(t, time.Minute, waited(t, r, shop), "the same head again is no news")
		b.set(func(b *newsStore) { b.news = []event.News{{Project: "other", Head: 8}} })
		require.Equal(t, time.Minute, waited(t, r, shop), "nor is an event of another project")
		b.set(func(b *newsStore) { b.news = []event.News{{Project: shop, Head: 7, Due: true}} })
		require.LessOrEqual(t, waited(t, r, shop), 20*time.Millisecond, "a delivery that became due")

		b.set(func(b *newsStore) { b.news, b.due = nil, true })
		require.Zero(t, waited(t, r, shop), "an earlier event")
	})
}

// TestManyAwait: one request is made for all waiters, and none without waiters.
func TestManyAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &newsStore{}
		r, _ := watching(t, b)
		var joined sync.WaitGroup
		for range 100 {
			joined.Go(func() { waited(t, r, shop) })
		}
		joined.Wait()
		require.InDelta(t, 3000, b.requests(), 2)
		<-time.After(time.Hour)
		require.LessOrEqual(t, b.requests(), 101, "polling continues for two seconds")
		require.Equal(t, time.Minute, waited(t, r, shop))
		require.InDelta(t, 3000, b.requests(), 2)
	})
}

func TestAwaitDuringStoreOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &newsStore{away: true}
		r, _ := watching(t, b)
		require.Equal(t, time.Minute, waited(t, r, shop))
		require.InDelta(t, 60, b.requests(), 2, "a pause after each failure")
		b.set(func(b *newsStore) { b.away, b.news = false, []event.News{{Project: shop, Head: 1}} })
		require.LessOrEqual(t, waited(t, r, shop), 2*time.Second)
	})
}

func TestAwaitEndsWithTheRouter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := dispatcher.NewRouter(dispatcher.RouterOptions{Store: &newsStore{}, Hints: pubsub.NewNotifier()})
		require.NoError(t, r.Stop(t.Context()), "never started")
		require.NoError(t, r.Start(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		var joined sync.WaitGroup
		joined.Go(func() { r.Await(ctx, inbox.Name{Project: shop}) })
		synctest.Wait()
		require.NoError(t, r.Stop(t.Context()))
		cancel()
		joined.Wait()
	})
}
