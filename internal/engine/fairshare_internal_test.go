package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// computePiece is a piece of compute with a duration in the bubble's time.
func computePiece(t *testing.T, s *fairShare, project string, lasts time.Duration) (waited time.Duration) {
	t.Helper()
	since := time.Now()
	for !s.Acquire(project, 100*time.Millisecond) {
	}
	waited = time.Since(since)
	<-time.After(lasts)
	s.Release(project)
	return waited
}

func TestBusyProjectDelaysAnotherByOnePiece(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lasts = 50 * time.Millisecond
		s := newFairShare(2)
		var group sync.WaitGroup
		for range 300 {
			group.Go(func() { computePiece(t, s, "flood", lasts) })
		}
		synctest.Wait()
		for range 50 {
			require.LessOrEqual(t, computePiece(t, s, "other", lasts), lasts)
		}
		group.Wait()
		require.True(t, s.Acquire("other", 0), "every turn was given back")
		require.True(t, s.Acquire("other", 0))
		require.False(t, s.Acquire("other", time.Millisecond), "and there are no more than two")
		s.Release("other")
		s.Release("other")
	})
}

func TestWaitingProjectsGetEqualShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFairShare(3)
		done := map[string]int{}
		var mu sync.Mutex
		end := time.Now().Add(10 * time.Second)
		var group sync.WaitGroup
		for project, callers := range map[string]int{"few": 5, "many": 50, "most": 200} {
			for range callers {
				group.Go(func() {
					for time.Now().Before(end) {
						computePiece(t, s, project, 10*time.Millisecond)
						if time.Now().After(end) {
							return
						}
						mu.Lock()
						done[project]++
						mu.Unlock()
					}
				})
			}
		}
		group.Wait()
		for _, project := range []string{"few", "many", "most"} {
			require.InDelta(t, 1000, done[project], 100, "of 3000 pieces in all: %v", done)
		}
	})
}

func TestSingleProjectGetsAllTurns(t *testing.T) {
	t.Parallel()
	s := newFairShare(4)
	for range 4 {
		require.True(t, s.Acquire("only", 0))
	}
	require.False(t, s.Acquire("only", time.Millisecond))
	for range 4 {
		s.Release("only")
	}
}

func TestNoTasksArePolledWhilePiecesWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFairShare(1)
		busy, err := s.Slots("busy", 1000)
		require.NoError(t, err)
		idle, err := s.Slots("idle", 1000)
		require.NoError(t, err)
		require.True(t, s.Acquire("busy", 0))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { require.True(t, s.Acquire("busy", time.Hour)) })
		}
		synctest.Wait()

		require.Nil(t, busy.TryReserveSlot(nil))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = busy.ReserveSlot(short, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, idle.TryReserveSlot(nil), "other projects' tasks are polled for")
		permit, err := idle.ReserveSlot(t.Context(), nil)
		require.NoError(t, err)
		require.NotNil(t, permit)

		reserved := make(chan error, 1)
		go func() {
			_, err := busy.ReserveSlot(t.Context(), nil)
			reserved <- err
		}()
		synctest.Wait()
		require.Empty(t, reserved)
		s.Release("busy") // the first waiting piece continues, three are left
		require.NoError(t, <-reserved)
		for range 4 {
			synctest.Wait()
			s.Release("busy")
		}
		group.Wait()
	})
}

func TestLateTurnsAreNotLost(t *testing.T) {
	t.Parallel()
	s := newFairShare(2)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for range 2000 {
				if name := fmt.Sprint(i % 3); s.Acquire(name, time.Microsecond) {
					s.Release(name)
				}
			}
		})
	}
	group.Wait()
	require.True(t, s.Acquire("last", 0))
	require.True(t, s.Acquire("last", 0))
	s.Release("last")
	s.Release("last")
}
