package leasetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
)

// retention checks that an entry is readable until its retention after the last write is over, and not much longer.
func retention(t testing.TB, store lease.Store) {
	t.Helper()
	first := lease.Lifetime{TTL: 600 * time.Millisecond, Retention: 600 * time.Millisecond}
	keep := lease.Lifetime{TTL: 1500 * time.Millisecond, Retention: 1600 * time.Millisecond}
	last := lease.Lifetime{TTL: 30 * time.Millisecond, Retention: 600 * time.Millisecond}
	past := func(since time.Time, d time.Duration) func(lease.Entry) bool {
		return func(e lease.Entry) bool { return e.ReadAt.Sub(since) >= d }
	}
	// A renewal counts: the entry outlives the retention of the acquisition.
	got, _ := acquireFree(t, store, "a", first)
	until(t, store, past(got.AcquiredAt, first.TTL/4))
	renewed, err := store.Renew(t.Context(), key, got.Token, nil, keep)
	require.NoError(t, err)
	e := until(t, store, past(renewed.RenewedAt, first.Retention))
	require.Equal(t, lease.Held, e.State)

	// A resignation counts as well.
	sent := time.Now()
	require.NoError(t, store.Resign(t.Context(), key, got.Token))
	e = until(t, store, past(renewed.RenewedAt, keep.Retention+slack))
	require.Equal(t, lease.Resigned, e.State)
	awaitRemoval(t, store, sent.Add(keep.Retention))

	// An entry that was removed is no predecessor.
	sent = time.Now()
	_, before := acquireFree(t, store, "b", last)
	require.Nil(t, before)
	until(t, store, expired)
	awaitRemoval(t, store, sent.Add(last.Retention))
	for e, err := range store.List(t.Context(), "") {
		require.Fail(t, "an entry past its retention is listed", "%+v %v", e, err)
	}
}

// awaitRemoval waits until the store has removed an entry, which must not happen before the given time.
func awaitRemoval(t testing.TB, store lease.Store, earliest time.Time) {
	t.Helper()
	for start := time.Now(); ; sleep(t.Context(), tick) {
		_, err := store.Get(t.Context(), key)
		if err != nil {
			require.ErrorIs(t, err, lease.ErrNotFound)
			require.False(t, time.Now().Add(slack).Before(earliest), "before its retention was over")
			return
		}
		require.Less(t, time.Since(start), limit)
	}
}

func listing(t testing.TB, store lease.Store) {
	t.Helper()
	want := map[string]lease.Entry{}
	put := func(key string) {
		got, _, err := store.Acquire(t.Context(), key, "a", []byte(key), long())
		require.NoError(t, err)
		want[key] = got
	}
	const many = 300
	for i := range many {
		put(fmt.Sprintf("worker:%d", i))
	}
	others := []string{"work", "Worker:1", "dispatcher:worker:1", "wor*er:1", "w[o]rker:1", "w?rker:1", `w\orker:1`}
	for _, key := range others {
		put(key)
	}
	all := func(prefix string) map[string]lease.Entry {
		found := map[string]lease.Entry{}
		for e, err := range store.List(t.Context(), prefix) {
			require.NoError(t, err)
			requireConsistent(t, e)
			requireSame(t, want[e.Key], e)
			require.True(t, strings.HasPrefix(e.Key, prefix), e.Key)
			found[e.Key] = e
		}
		return found
	}
	require.Len(t, all(""), many+len(others))
	require.Len(t, all("worker:"), many)
	require.Len(t, all("worker:29"), 11)
	for _, key := range others[3:] {
		require.Len(t, all(key), 1, "the prefix is no pattern: %s", key)
	}
	require.Empty(t, all("*"))
	require.Empty(t, all("absent"))
	for _, err := range store.List(t.Context(), "worker:") {
		require.NoError(t, err)
		break // List must release its resources
	}
}

func watching(t testing.TB, store lease.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	keys, err := store.Watch(ctx)
	require.NoError(t, err)
	expect := func(what string) {
		t.Helper()
		select {
		case got, open := <-keys:
			require.True(t, open)
			require.Equal(t, key, got, what)
		case <-time.After(limit):
			require.Fail(t, "no key received", what)
		}
	}
	got, _ := acquireFree(t, store, "a", long())
	expect("acquired")
	require.NoError(t, store.Resign(t.Context(), key, got.Token))
	expect("resigned")
	e := read(t, store)
	require.NoError(t, store.Delete(t.Context(), key, e.Token, e.Revision))
	expect("deleted")

	// A watcher that does not read does not block the store.
	for range 1000 {
		got, _ := acquireFree(t, store, "a", long())
		require.NoError(t, store.Resign(t.Context(), key, got.Token))
	}
	cancel()
	for end := time.After(limit); ; {
		select {
		case _, open := <-keys:
			if !open {
				return
			}
		case <-end:
			require.Fail(t, "the channel is not closed")
		}
	}
}

func keysAndValues(t testing.TB, store lease.Store) {
	t.Helper()
	for _, name := range []string{
		"a", " ", "{tag}:x", "clé/κλειδί", `"quoted" and \`, "{", "%s%d", strings.Repeat("x", lease.MaxKey)} {
		value := []byte("\x00\xff\r\n" + name)
		got, _, err := store.Acquire(t.Context(), name, name, value, long())
		require.NoError(t, err, name)
		require.Equal(t, name, got.Holder)
		e, err := store.Get(t.Context(), name)
		require.NoError(t, err, name)
		requireSame(t, got, e)
		require.Equal(t, value, e.Value)
	}
	largest := make([]byte, lease.MaxValue)
	got, _, err := store.Acquire(t.Context(), key, "a", largest, long())
	require.NoError(t, err)
	require.Len(t, got.Value, lease.MaxValue)
}

func invalidRequests(t testing.TB, store lease.Store) {
	t.Helper()
	for name, a := range map[string]struct {
		key, holder string
		value       []byte
		terms       lease.Lifetime
	}{
		"no key":                {"", "a", nil, long()},
		"a long key":            {strings.Repeat("x", lease.MaxKey+1), "a", nil, long()},
		"a key of bytes":        {"\xff", "a", nil, long()},
		"a key of two lines":    {"a\nb", "a", nil, long()},
		"no holder":             {key, "", nil, long()},
		"a long holder":         {key, strings.Repeat("x", lease.MaxHolder+1), nil, long()},
		"a large value":         {key, "a", make([]byte, lease.MaxValue+1), long()},
		"no terms":              {key, "a", nil, lease.Lifetime{}},
		"a negative TTL":        {key, "a", nil, lease.Lifetime{TTL: -time.Second, Retention: time.Second}},
		"a TTL of microseconds": {key, "a", nil, lease.Lifetime{TTL: time.Microsecond, Retention: time.Second}},
		"no retention":          {key, "a", nil, lease.Lifetime{TTL: time.Second}},
		"retention for ever":    {key, "a", nil, lease.Lifetime{TTL: time.Second, Retention: 1<<63 - 1}},
	} {
		_, _, err := store.Acquire(t.Context(), a.key, a.holder, a.value, a.terms)
		require.ErrorIs(t, err, lease.ErrInvalid, name)
	}
	got, _ := acquireFree(t, store, "a", long())
	_, err := store.Renew(t.Context(), key, got.Token, make([]byte, lease.MaxValue+1), long())
	require.ErrorIs(t, err, lease.ErrInvalid)
	_, err = store.Renew(t.Context(), key, got.Token, nil, lease.Lifetime{})
	require.ErrorIs(t, err, lease.ErrInvalid)
	_, err = store.Renew(t.Context(), "", got.Token, nil, long())
	require.ErrorIs(t, err, lease.ErrInvalid)
	require.ErrorIs(t, store.Resign(t.Context(), "", got.Token), lease.ErrInvalid)
	require.ErrorIs(t, store.Delete(t.Context(), "", got.Token, got.Revision), lease.ErrInvalid)
	_, err = store.Get(t.Context(), "")
	require.ErrorIs(t, err, lease.ErrInvalid)
	requireSame(t, got, read(t, store))
}

func endedContext(t testing.TB, store lease.Store) {
	t.Helper()
	got, _ := acquireFree(t, store, "a", long())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := store.Acquire(ctx, key+"/other", "b", nil, long())
	errs := []error{err}
	_, err = store.Renew(ctx, key, got.Token, nil, long())
	errs = append(errs, err, store.Resign(ctx, key, got.Token), store.Delete(ctx, key, got.Token, got.Revision))
	_, err = store.Get(ctx, key)
	errs = append(errs, err)
	for _, err := range store.List(ctx, "") {
		errs = append(errs, err)
	}
	_, err = store.Watch(ctx)
	errs = append(errs, err)
	require.Len(t, errs, 7)
	for i, err := range errs {
		require.ErrorIs(t, err, context.Canceled, "%d", i)
		require.True(t, Call{Err: err}.unknown(), "%d: %v", i, err)
	}
	requireSame(t, got, read(t, store))
}
