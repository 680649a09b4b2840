package token_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/token"
)

func TestKeysThatArriveDuringARequestAreReadTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var sizes []int
		r := token.NewLookup(func(_ context.Context, keys []int) (map[int]string, error) {
			sizes = append(sizes, len(keys))
			<-release
			found := map[int]string{}
			for _, key := range keys {
				if key%2 == 0 {
					found[key] = "even"
				}
			}
			return found, nil
		})
		var callers sync.WaitGroup
		get := func(key int) {
			callers.Go(func() {
				v, found, err := r.Get(t.Context(), key)
				if err != nil || found != (key%2 == 0) || found && v != "even" {
					t.Errorf("key %d: %q, %v, %v", key, v, found, err)
				}
			})
		}
		get(1)
		synctest.Wait()
		for key := range token.LookupKeys + 10 {
			get(key + 2)
		}
		synctest.Wait()
		close(release)
		callers.Wait()
		require.Equal(t, []int{1, token.LookupKeys, 10}, sizes)
	})
}

func TestCallerThatLeavesDoesNotEndTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, asked := make(chan struct{}), atomic.Int32{}
		r := token.NewLookup(func(ctx context.Context, _ []string) (map[string]int, error) {
			asked.Add(1)
			<-release
			return map[string]int{"a": 1}, ctx.Err()
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		left := make(chan error, 1)
		go func() {
			_, _, err := r.Get(ctx, "a")
			left <- err
		}()
		synctest.Wait()
		gone := errors.New("gone")
		cancel(gone)
		require.ErrorIs(t, <-left, gone)
		close(release)
		v, found, err := r.Get(t.Context(), "a")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, 1, v)
		require.Equal(t, int32(2), asked.Load(), "a later call reads again")
	})
}

func TestErrorOfARequestIsThatOfItsCallers(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	r := token.NewLookup(func(context.Context, []string) (map[string]int, error) { return nil, broken })
	_, found, err := r.Get(t.Context(), "a")
	require.ErrorIs(t, err, broken)
	require.False(t, found)
}

func TestPanicOfTheStoreIsAnError(t *testing.T) {
	t.Parallel()
	r := token.NewLookup(func(context.Context, []int) (map[int]string, error) { panic("broken") })
	for range 2 {
		_, _, err := r.Get(t.Context(), 1)
		require.EqualError(t, err, "read 1 keys: panic: broken")
	}
}
