package semaphore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// takeTurn takes a turn for a time, and returns how long it waited for it.
func takeTurn(t *testing.T, s *semaphore.Shared, key string, lasts time.Duration) (waited time.Duration) {
	t.Helper()
	since := time.Now()
	release, err := s.Acquire(t.Context(), key)
	require.NoError(t, err)
	waited = time.Since(since)
	<-time.After(lasts)
	release()
	return waited
}

// acquired reports whether a caller gets a turn within the given time; otherwise it leaves.
func acquired(s *semaphore.Shared, key string, wait time.Duration) bool {
	place := s.Enter(key, time.Now())
	if !place.Wait(wait) {
		place.Leave()
		return false
	}
	return true
}

func TestBusyKeyDelaysAnotherByOneTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lasts = 50 * time.Millisecond
		s := semaphore.NewShared(2)
		var group sync.WaitGroup
		for range 300 {
			group.Go(func() { takeTurn(t, s, "flood", lasts) })
		}
		synctest.Wait()
		for range 50 {
			require.LessOrEqual(t, takeTurn(t, s, "other", lasts), lasts)
		}
		group.Wait()
		require.True(t, acquired(s, "other", 0), "every turn was given back")
		require.True(t, acquired(s, "other", 0))
		require.False(t, acquired(s, "other", time.Millisecond), "and there are no more than two")
		s.Release("other")
		s.Release("other")
	})
}

func TestWaitingKeysGetEqualShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewShared(3)
		done := map[string]int{}
		var mu sync.Mutex
		end := time.Now().Add(10 * time.Second)
		var group sync.WaitGroup
		for key, callers := range map[string]int{"few": 5, "many": 50, "most": 200} {
			for range callers {
				group.Go(func() {
					for time.Now().Before(end) {
						takeTurn(t, s, key, 10*time.Millisecond)
						if time.Now().After(end) {
							return
						}
						mu.Lock()
						done[key]++
						mu.Unlock()
					}
				})
			}
		}
		group.Wait()
		for _, key := range []string{"few", "many", "most"} {
			require.InDelta(t, 1000, done[key], 100, "of 3000 turns in all: %v", done)
		}
	})
}

func TestSingleKeyGetsAllTurns(t *testing.T) {
	t.Parallel()
	s := semaphore.NewShared(4)
	for range 4 {
		require.True(t, acquired(s, "only", 0))
	}
	require.False(t, acquired(s, "only", time.Millisecond))
	for range 4 {
		s.Release("only")
	}
}

func TestEndOfAContextWithdrawsItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewShared(1)
		release, err := s.Acquire(t.Context(), "a")
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.Acquire(short, "b")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		release()
		release() // once is enough
		require.True(t, acquired(s, "c", 0))
		require.False(t, acquired(s, "c", 0))
		s.Release("c")
	})
}

func TestBacklogNotifiesBelowItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewShared(1)
		require.Nil(t, s.Backlog("a", 1, time.Hour))
		require.True(t, acquired(s, "a", 0))
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() { require.True(t, acquired(s, "a", time.Hour)) })
		}
		synctest.Wait()
		require.Nil(t, s.Backlog("a", 4, time.Hour), "three wait")
		require.Nil(t, s.Backlog("b", 1, time.Hour))
		three, two := s.Backlog("a", 3, time.Hour), s.Backlog("a", 2, time.Hour)
		require.Equal(t, three, s.Backlog("a", 3, time.Hour))
		s.Release("a")
		<-three
		select {
		case <-two:
			t.Error("two still wait")
		default:
		}
		s.Release("a")
		<-two
		s.Release("a")
		group.Wait()
		s.Release("a")
	})
}

func TestBacklogNotifiesWhenNoneWaitsForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewShared(1)
		running := s.Enter("a", time.Now())
		require.True(t, running.Wait(0))
		old := s.Enter("a", time.Now())
		require.Nil(t, s.Backlog("a", 4, 2*time.Second))
		require.False(t, old.Wait(3*time.Second))
		young := s.Enter("a", time.Now())
		held := s.Backlog("a", 4, 2*time.Second)
		require.NotNil(t, held, "one waits for three seconds")
		require.False(t, old.Wait(100*time.Millisecond), "it keeps its place")
		require.NotNil(t, s.Backlog("a", 4, 2*time.Second))
		running.Leave()
		<-held
		require.True(t, old.Wait(0))
		old.Leave()
		require.True(t, young.Wait(0))
		young.Leave()
	})
}

func TestOldestWorkIsNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewShared(1)
		began := time.Now()
		running := s.Enter("a", began)
		<-time.After(time.Second)
		young := s.Enter("a", time.Now())
		given := s.Enter("a", time.Now())
		old := s.Enter("a", began)
		given.Leave() // gives up its place
		require.False(t, young.Wait(time.Second))
		running.Leave()
		require.False(t, young.Wait(0))
		require.True(t, old.Wait(0))
		old.Leave()
		require.True(t, young.Wait(0))
		young.Leave()
		require.True(t, acquired(s, "b", 0))
		s.Release("b")
	})
}

func TestLateTurnsAreNotLost(t *testing.T) {
	t.Parallel()
	s := semaphore.NewShared(2)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for range 2000 {
				if key := fmt.Sprint(i % 3); acquired(s, key, time.Microsecond) {
					s.Release(key)
				}
			}
		})
	}
	group.Wait()
	require.True(t, acquired(s, "last", 0))
	require.True(t, acquired(s, "last", 0))
	s.Release("last")
	s.Release("last")
}

func TestKeysAreLimitedWhileOthersAreActive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		elsewhere := semaphore.NewShared(1)
		s := semaphore.NewShared(3).Limit(1, elsewhere)
		takeAll := func(want int) {
			t.Helper()
			got := 0
			for acquired(s, "a", time.Millisecond) {
				got++
			}
			require.Equal(t, want, got)
			for range got {
				s.Release("a")
			}
		}
		takeAll(3)
		require.True(t, acquired(s, "b", 0))
		takeAll(1)
		s.Release("b")
		takeAll(1)
		<-time.After(11 * time.Second)
		takeAll(3)
		require.True(t, acquired(elsewhere, "b", 0))
		takeAll(1)

		require.True(t, acquired(s, "a", 0))
		require.False(t, s.Contended("a"))
		second := make(chan bool, 1)
		go func() { second <- acquired(s, "a", time.Hour) }()
		synctest.Wait()
		require.True(t, s.Contended("a"), "one waits")
		require.NotNil(t, s.Backlog("a", 1, time.Hour))
		require.Nil(t, s.Backlog("a", 2, time.Hour))
		<-time.After(11 * time.Second)
		require.False(t, s.Contended("a"), "no other is active any more")
		require.True(t, acquired(s, "a", 0))
		require.True(t, <-second, "those that waited are served, too")
	})
}

func TestRestingTurnsAreForOtherKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.NewShared(2).Limit(1)
		require.True(t, acquired(s, "b", 0))
		s.Release("b")
		require.True(t, acquired(s, "a", 0))
		s.Rest("a", time.Second)
		began := time.Now()
		require.True(t, acquired(s, "b", 0))
		s.Release("b")
		require.True(t, acquired(s, "a", time.Hour))
		require.Equal(t, time.Second, time.Since(began))
		s.Release("a")
		for range 2 {
			require.True(t, acquired(s, "c", time.Hour), "every turn was given back")
			<-time.After(11 * time.Second)
		}
	})
}
