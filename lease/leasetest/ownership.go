package leasetest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
)

func acquisition(t testing.TB, store lease.Store) {
	t.Helper()
	_, err := store.Get(t.Context(), key)
	require.ErrorIs(t, err, lease.ErrNotFound)
	got, before := acquireFree(t, store, "a", long())
	require.Nil(t, before)
	require.Equal(t, key, got.Key)
	require.Equal(t, "of a", string(got.Value))
	require.True(t, got.AcquiredAt.Equal(got.RenewedAt))
	require.Equal(t, long().TTL, got.ExpiresAt.Sub(got.RenewedAt))
	e := read(t, store)
	requireSame(t, got, e)
	require.Equal(t, lease.Held, e.State)
	require.LessOrEqual(t, e.Remaining(), long().TTL)
	require.GreaterOrEqual(t, e.Age(), got.Age())
}

func refusal(t testing.TB, store lease.Store) {
	t.Helper()
	got, _ := acquireFree(t, store, "a", long())
	for _, holder := range []string{"a", "b"} {
		_, _, err := store.Acquire(t.Context(), key, holder, []byte("new"), short())
		require.ErrorIs(t, err, lease.ErrHeld)
		var held *lease.HeldError
		require.ErrorAs(t, err, &held)
		requireConsistent(t, held.Entry)
		requireSame(t, got, held.Entry)
		require.Equal(t, lease.Held, held.Entry.State)
	}
	requireSame(t, got, read(t, store))
}

func concurrentAcquire(t testing.TB, store lease.Store) {
	t.Helper()
	const many = 20
	var mu sync.Mutex
	var won []lease.Entry
	var refused []error
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			got, _, err := store.Acquire(t.Context(), key, "one of many", nil, long())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, got)
			} else {
				refused = append(refused, err)
			}
		})
	}
	all.Wait()
	require.Len(t, won, 1)
	require.Len(t, refused, many-1)
	for _, err := range refused {
		var held *lease.HeldError
		require.ErrorAs(t, err, &held)
		requireSame(t, won[0], held.Entry)
	}
	requireSame(t, won[0], read(t, store))
}

func independentKeys(t testing.TB, store lease.Store) {
	t.Helper()
	got, _ := acquireFree(t, store, "a", long())
	other, before, err := store.Acquire(t.Context(), key+"/three", "a", nil, long())
	require.NoError(t, err)
	require.Nil(t, before)
	require.NotEqual(t, got.Token, other.Token, "tokens are unique over all keys")

	_, err = store.Renew(t.Context(), other.Key, got.Token, nil, long())
	require.ErrorIs(t, err, lease.ErrLost)
	require.ErrorIs(t, store.Resign(t.Context(), other.Key, got.Token), lease.ErrLost)
	require.NoError(t, store.Resign(t.Context(), other.Key, other.Token))
	requireSame(t, got, read(t, store))
}

func renewal(t testing.TB, store lease.Store) {
	t.Helper()
	got, _ := acquireFree(t, store, "a", lease.Lifetime{TTL: long().TTL / 2, Retention: long().Retention})
	last := got
	for _, step := range []struct {
		value []byte
		want  string
	}{{nil, "of a"}, {[]byte("second"), "second"}, {nil, "second"}, {[]byte{}, ""}, {nil, ""}} {
		e, err := store.Renew(t.Context(), key, got.Token, step.value, long())
		require.NoError(t, err)
		requireConsistent(t, e)
		require.Equal(t, lease.Held, e.State)
		require.Equal(t, got.Token, e.Token)
		require.Equal(t, "a", e.Holder)
		require.Greater(t, e.Revision, last.Revision)
		require.True(t, e.AcquiredAt.Equal(got.AcquiredAt))
		require.False(t, e.RenewedAt.Before(last.RenewedAt))
		require.Equal(t, long().TTL, e.ExpiresAt.Sub(e.RenewedAt))
		require.Equal(t, step.want, string(e.Value))
		requireSame(t, e, read(t, store))
		last = e
	}
	_, _, err := store.Acquire(t.Context(), key, "b", nil, long())
	require.ErrorIs(t, err, lease.ErrHeld)
}

func expiry(t testing.TB, store lease.Store) {
	t.Helper()
	got, _ := acquireFree(t, store, "a", short())
	e := until(t, store, expired)
	requireSame(t, got, e)
	require.LessOrEqual(t, e.Remaining(), time.Duration(0))

	_, err := store.Renew(t.Context(), key, got.Token, nil, long())
	require.ErrorIs(t, err, lease.ErrLost, "also if it was not acquired again")
	require.ErrorIs(t, store.Resign(t.Context(), key, got.Token), lease.ErrLost)
	requireSame(t, got, read(t, store))

	next, before := acquireFree(t, store, "b", long())
	require.NotNil(t, before)
	requireConsistent(t, *before)
	requireSame(t, got, *before)
	require.Equal(t, lease.Expired, before.State)
	require.NotEqual(t, got.Token, next.Token)
	require.Greater(t, next.Revision, got.Revision)
}

func resignation(t testing.TB, store lease.Store) {
	t.Helper()
	got, _ := acquireFree(t, store, "a", long())
	require.NoError(t, store.Resign(t.Context(), key, got.Token))
	e := read(t, store)
	require.Equal(t, lease.Resigned, e.State)
	require.Equal(t, got.Token, e.Token)
	require.Equal(t, "of a", string(e.Value))
	require.Greater(t, e.Revision, got.Revision)

	_, err := store.Renew(t.Context(), key, got.Token, nil, long())
	require.ErrorIs(t, err, lease.ErrLost)
	require.ErrorIs(t, store.Resign(t.Context(), key, got.Token), lease.ErrLost)
	requireSame(t, e, read(t, store))

	next, before := acquireFree(t, store, "a", long())
	require.NotNil(t, before)
	requireSame(t, e, *before)
	require.Equal(t, lease.Resigned, before.State)
	require.NotEqual(t, got.Token, next.Token, "also for the same holder")

	require.NoError(t, store.Resign(t.Context(), key, next.Token))
	_, before = acquireFree(t, store, "b", long())
	require.NotNil(t, before)
	require.Equal(t, next.Token, before.Token, "the predecessor is the last one")
}

func oldToken(t testing.TB, store lease.Store) {
	t.Helper()
	old, _ := acquireFree(t, store, "a", short())
	until(t, store, expired)
	current, _ := acquireFree(t, store, "a", long())
	for _, token := range []string{old.Token, "", "unknown", current.Token + " "} {
		_, err := store.Renew(t.Context(), key, token, []byte("wrong"), short())
		require.ErrorIs(t, err, lease.ErrLost)
		require.ErrorIs(t, store.Resign(t.Context(), key, token), lease.ErrLost)
		require.ErrorIs(t, store.Delete(t.Context(), key, token, current.Revision), lease.ErrChanged)
		e := read(t, store)
		requireSame(t, current, e)
		require.Equal(t, lease.Held, e.State)
	}
	_, err := store.Renew(t.Context(), key+"/absent", current.Token, nil, long())
	require.ErrorIs(t, err, lease.ErrLost)
	require.ErrorIs(t, store.Resign(t.Context(), key+"/absent", current.Token), lease.ErrLost)
}

func deletion(t testing.TB, store lease.Store) {
	t.Helper()
	require.ErrorIs(t, store.Delete(t.Context(), key, "unknown", 1), lease.ErrNotFound)
	got, _ := acquireFree(t, store, "a", long())
	renewed, err := store.Renew(t.Context(), key, got.Token, nil, long())
	require.NoError(t, err)
	require.ErrorIs(t, store.Delete(t.Context(), key, got.Token, got.Revision), lease.ErrChanged,
		"it was renewed meanwhile")
	requireSame(t, renewed, read(t, store))
	require.NoError(t, store.Delete(t.Context(), key, renewed.Token, renewed.Revision),
		"an entry can be deleted while it is held")
	_, err = store.Get(t.Context(), key)
	require.ErrorIs(t, err, lease.ErrNotFound)
	require.ErrorIs(t, store.Delete(t.Context(), key, renewed.Token, renewed.Revision), lease.ErrNotFound)
	_, err = store.Renew(t.Context(), key, renewed.Token, nil, long())
	require.ErrorIs(t, err, lease.ErrLost)

	next, before := acquireFree(t, store, "b", long())
	require.Nil(t, before)
	require.Greater(t, next.Revision, renewed.Revision, "also after a deletion")
	require.NoError(t, store.Resign(t.Context(), key, next.Token))
	require.ErrorIs(t, store.Delete(t.Context(), key, next.Token, next.Revision), lease.ErrChanged,
		"it was resigned meanwhile")
	resigned := read(t, store)
	require.NoError(t, store.Delete(t.Context(), key, resigned.Token, resigned.Revision))

	acquireFree(t, store, "c", short())
	e := until(t, store, expired)
	require.NoError(t, store.Delete(t.Context(), key, e.Token, e.Revision))
	_, err = store.Get(t.Context(), key)
	require.ErrorIs(t, err, lease.ErrNotFound)
}
