package leasetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
)

// Check is one promise of a store.
type Check struct {
	Name string
	Run  func(t testing.TB, store lease.Store)
}

// Run holds a store to all its promises. Each check has a store of its own from open: without entries, and closed by a cleanup
// of the test where that is needed.
func Run(t *testing.T, open func(t *testing.T) lease.Store) {
	t.Helper()
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			check.Run(t, open(t))
		})
	}
}

// Checks are the promises, for whoever wants them one by one.
func Checks() []Check {
	return []Check{
		{"an acquisition can be read", acquisition},
		{"what is held is refused, to its holder as well", refusal},
		{"of many at once one gets it", crowd},
		{"keys have nothing to do with each other", neighbours},
		{"a renewal prolongs", renewal},
		{"what ran out is expired", expiry},
		{"what was resigned is free", resignation},
		{"an old token changes nothing", oldToken},
		{"a deletion compares", deletion},
		{"entries outlive their leases", retention},
		{"all that begins with a prefix is listed", listing},
		{"who watches is told", watching},
		{"anything printable is a key, anything at all a value", text},
		{"nonsense is refused", nonsense},
		{"a context that ended is heeded", endedContext},
		{"a history of many clients is in order", history},
	}
}

const (
	key = "lease:one/two"
	// limit is for what must happen.
	limit = 30 * time.Second
	tick  = 2 * time.Millisecond
)

var (
	// long is held for as long as any check takes.
	long = lease.Terms{TTL: 5 * time.Minute, Retention: 10 * time.Minute}
	// short runs out at once.
	short = lease.Terms{TTL: 30 * time.Millisecond, Retention: 10 * time.Minute}
)

// take acquires what must be free.
func take(t testing.TB, store lease.Store, holder string, terms lease.Terms) (lease.Entry, *lease.Entry) {
	t.Helper()
	got, before, err := store.Acquire(t.Context(), key, holder, []byte("of "+holder), terms)
	require.NoError(t, err)
	sane(t, got)
	require.Equal(t, lease.Held, got.State)
	require.Equal(t, holder, got.Holder)
	return got, before
}

// read reads what must be there.
func read(t testing.TB, store lease.Store) lease.Entry {
	t.Helper()
	e, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	sane(t, e)
	return e
}

// until reads until the store's own time and state are as wanted.
func until(t testing.TB, store lease.Store, wanted func(lease.Entry) bool) lease.Entry {
	t.Helper()
	for start := time.Now(); ; {
		e := read(t, store)
		if wanted(e) {
			return e
		}
		require.Less(t, time.Since(start), limit, "%+v", e)
		pause(t.Context(), tick)
	}
}

// pause is the pace of asking, never what a check relies on.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func expired(e lease.Entry) bool { return e.State == lease.Expired }

// sane looks at an entry by itself.
func sane(t testing.TB, e lease.Entry) {
	t.Helper()
	require.NotEmpty(t, e.Token)
	require.Positive(t, e.Revision)
	require.Equal(t, lease.StateAt(e.ReadAt, e.ExpiresAt, e.State == lease.Resigned), e.State, "by its times")
	require.False(t, e.RenewedAt.Before(e.AcquiredAt))
	require.False(t, e.ReadAt.Before(e.RenewedAt))
	require.True(t, e.ExpiresAt.After(e.RenewedAt))
}

// same compares what two readings must have in common when nothing was written in between.
func same(t testing.TB, want, got lease.Entry) {
	t.Helper()
	require.Equal(t, facts(want), facts(got))
}

func facts(e lease.Entry) string {
	return fmt.Sprintf("%s %s %s %d %q %d %d %d", e.Key, e.Holder, e.Token, e.Revision, e.Value,
		e.AcquiredAt.UnixMicro(), e.RenewedAt.UnixMicro(), e.ExpiresAt.UnixMicro())
}
