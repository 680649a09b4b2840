package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func testExclusive(t *testing.T, open Opener) {
	a, b, ctx := open(t), open(t), t.Context()
	nothing := func(context.Context) error { return nil }
	ran, err := a.Exclusive(ctx, "queue", func(inner context.Context) error {
		require.NoError(t, inner.Err())
		_, err := a.GetProject(inner, here)
		require.NoError(t, err, "the store is there for the work")
		for _, s := range []Store{a, b} {
			ran, err := s.Exclusive(ctx, "queue", func(context.Context) error { return errors.New("two at once") })
			require.NoError(t, err)
			require.False(t, ran)
		}
		ran, err := b.Exclusive(ctx, "reconcile", nothing)
		require.NoError(t, err)
		require.True(t, ran, "another name is another lock")
		return nil
	})
	require.NoError(t, err)
	require.True(t, ran)

	failure := errors.New("went wrong")
	ran, err = b.Exclusive(ctx, "queue", func(context.Context) error { return failure })
	require.Equal(t, failure, err)
	require.True(t, ran, "it was let go of")

	// A caller with a context that ends releases the lock, whatever error the work returns.
	leaving, leave := context.WithCancel(ctx)
	ran, err = a.Exclusive(leaving, "queue", func(inner context.Context) error {
		leave()
		<-inner.Done()
		return inner.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, ran)
	ran, err = b.Exclusive(ctx, "queue", nothing)
	require.NoError(t, err)
	require.True(t, ran)
}

func testExclusiveAmongMany(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	const rivals, wanted = 8, 5
	var inside, done atomic.Int32
	var wg sync.WaitGroup
	for i := range rivals {
		wg.Go(func() {
			for done.Load() < wanted {
				_, err := stores[i%2].Exclusive(t.Context(), "queue", func(ctx context.Context) error {
					if inside.Add(1) != 1 {
						t.Error("two at once")
					}
					_, err := stores[i%2].GetProject(ctx, here)
					inside.Add(-1)
					done.Add(1)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
