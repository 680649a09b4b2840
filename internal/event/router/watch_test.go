package router_test

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
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/router"
	"github.com/signalbox-dev/signalbox/internal/notice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const shop = "shop"

// bulletin is a store of nothing but news.
type bulletin struct {
	event.Store
	mu    sync.Mutex
	news  []event.News // told with each question from now on
	due   bool
	away  bool
	asked int
}

func (b *bulletin) News(_ context.Context, mark int64) ([]event.News, int64, error) {
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

func (b *bulletin) Progress(_ context.Context, names []inbox.Name) ([]inbox.Progress, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return []inbox.Progress{{Name: names[0], Due: b.due}}, nil
}

func (b *bulletin) set(change func(b *bulletin)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// questions are how often it was asked for news since the last time.
func (b *bulletin) questions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.asked
	b.asked = 0
	return n
}

func watching(t *testing.T, b *bulletin) (*router.Router, *notice.Board) {
	t.Helper()
	hints := notice.NewBoard()
	r := router.New(router.Options{Store: b, Hints: hints})
	require.NoError(t, r.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, r.Stop(ctx)) })
	return r, hints
}

// waited is how long Await took, at most a minute.
func waited(t *testing.T, r *router.Router, project string) time.Duration {
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
		b := &bulletin{}
		r, hints := watching(t, b)
		require.Zero(t, b.questions(), "nobody waits")
		require.Equal(t, time.Minute, waited(t, r, shop), "no news")
		require.InDelta(t, 3000, b.questions(), 2)

		time.AfterFunc(time.Second, func() { hints.Notify(shop) })
		require.Equal(t, time.Second, waited(t, r, shop), "what this process commits")

		time.AfterFunc(time.Second, func() { b.set(func(b *bulletin) { b.news = []event.News{{Project: shop, Head: 7}} }) })
		took := waited(t, r, shop)
		require.GreaterOrEqual(t, took, time.Second)
		require.LessOrEqual(t, took, time.Second+20*time.Millisecond, "what another process commits")
		require.Equal(t, time.Minute, waited(t, r, shop), "the same head again is no news")
		b.set(func(b *bulletin) { b.news = []event.News{{Project: "other", Head: 8}} })
		require.Equal(t, time.Minute, waited(t, r, shop), "nor is what another project has")
		b.set(func(b *bulletin) { b.news = []event.News{{Project: shop, Head: 7, Due: true}} })
		require.LessOrEqual(t, waited(t, r, shop), 20*time.Millisecond, "a delivery that has become due is")

		b.set(func(b *bulletin) { b.news, b.due = nil, true })
		require.Zero(t, waited(t, r, shop), "what is there already")
	})
}

// TestManyAwait: one question is asked for all, and none when nobody waits.
func TestManyAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bulletin{}
		r, _ := watching(t, b)
		var joined sync.WaitGroup
		for range 100 {
			joined.Go(func() { waited(t, r, shop) })
		}
		joined.Wait()
		require.InDelta(t, 3000, b.questions(), 2)
		<-time.After(time.Hour)
		require.LessOrEqual(t, b.questions(), 101, "it looks for two more seconds")
		require.Equal(t, time.Minute, waited(t, r, shop))
		require.InDelta(t, 3000, b.questions(), 2)
	})
}

func TestAwaitWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bulletin{away: true}
		r, _ := watching(t, b)
		require.Equal(t, time.Minute, waited(t, r, shop))
		require.InDelta(t, 60, b.questions(), 2, "it is left alone")
		b.set(func(b *bulletin) { b.away, b.news = false, []event.News{{Project: shop, Head: 1}} })
		require.LessOrEqual(t, waited(t, r, shop), 2*time.Second)
	})
}

func TestAwaitEndsWithTheRouter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := router.New(router.Options{Store: &bulletin{}, Hints: notice.NewBoard()})
		require.NoError(t, r.Stop(t.Context()), "one that was never started")
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
