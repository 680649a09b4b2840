package groupcommit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/groupcommit"
)

// slow commits numbers to their doubles in a second, and records the groups.
type slow struct{ groups [][]int }

func (s *slow) commit(_ context.Context, _ string, list []int) ([]int, error) {
	<-time.After(time.Second) // of a bubble
	s.groups = append(s.groups, list)
	doubles := make([]int, len(list))
	for i, n := range list {
		if n < 0 {
			panic("negative")
		}
		doubles[i] = 2 * n
	}
	return doubles, nil
}

func TestRequestsShareCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		c := groupcommit.New(s.commit, groupcommit.Options[string, int]{MaxGroup: 4})
		defer c.Close()
		begun := time.Now()
		got, err := c.Do(t.Context(), "shop", 1)
		require.NoError(t, err)
		require.Equal(t, 2, got)
		require.Equal(t, time.Second, time.Since(begun), "a single caller waits for no one")
		var callers sync.WaitGroup
		for n := 2; n < 8; n++ {
			callers.Go(func() {
				got, err := c.Do(t.Context(), "shop", n)
				if err != nil || got != 2*n {
					t.Errorf("%d: %d, %v", n, got, err)
				}
			})
			synctest.Wait()
		}
		callers.Wait()
		require.Equal(t, [][]int{{1}, {2}, {3, 4, 5, 6}, {7}}, s.groups)
		require.Zero(t, c.Waiting())
	})
}

func TestRequestWhoseCallerLeftIsOmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		c := groupcommit.New(s.commit, groupcommit.Options[string, int]{})
		leaving, leave := context.WithCancelCause(t.Context())
		reason := errors.New("the caller left")
		var callers sync.WaitGroup
		call := func(ctx context.Context, n int, want error) {
			callers.Go(func() {
				if _, err := c.Do(ctx, "shop", n); !errors.Is(err, want) {
					t.Errorf("%d: %v", n, err)
				}
			})
			synctest.Wait()
		}
		call(t.Context(), 1, nil)
		call(leaving, 2, reason)
		call(t.Context(), 3, nil)
		leave(reason)
		callers.Wait()
		_, err := c.Do(leaving, "shop", 4)
		require.ErrorIs(t, err, context.Canceled)
		c.Close()
		require.Equal(t, [][]int{{1}, {3}}, s.groups)
		require.Zero(t, c.Waiting())
		_, err = c.Do(t.Context(), "shop", 5)
		require.ErrorIs(t, err, groupcommit.ErrClosed)
	})
}

func TestPanicOfACommitIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := groupcommit.New((&slow{}).commit, groupcommit.Options[string, int]{})
		defer c.Close()
		_, err := c.Do(t.Context(), "shop", -1)
		require.ErrorContains(t, err, "panic: negative")
		got, err := c.Do(t.Context(), "shop", 1)
		require.NoError(t, err)
		require.Equal(t, 2, got)
	})
}
