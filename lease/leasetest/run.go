package leasetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
)

// Check is a test of one guarantee of a store.
type Check struct {
	Name string
	Run  func(t testing.TB, store lease.Store)
}

// Run runs all checks. Each check has its own store from open, which must be empty; open may close it in a cleanup of
// the test.
func Run(t *testing.T, open func(t *testing.T) lease.Store) {
	t.Helper()
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			check.Run(t, open(t))
		})
	}
}

// Checks returns the checks of [Run], to run them separately.
func Checks() []Check {
	return []Check{
		{"an acquisition can be read", acquisition},
		{"a held key cannot be acquired, not even by its holder", refusal},
		{"one of many concurrent acquisitions succeeds", concurrentAcquire},
		{"keys are independent", independentKeys},
		{"a renewal extends the lease", renewal},
		{"a lease that ran out is expired", expiry},
		{"a resigned key can be acquired", resignation},
		{"an old token changes nothing", oldToken},
		{"a deletion compares token and revision", deletion},
		{"entries outlive their leases", retention},
		{"all keys with a prefix are listed", listing},
		{"changes are reported to watchers", watching},
		{"keys may be any printable text, values any bytes", keysAndValues},
		{"invalid requests are refused", invalidRequests},
		{"a call with an ended context fails", endedContext},
		{"a random history is consistent", randomHistory},
	}
}

const (
	key = "lease:one/two"
	// limit is the time limit for what must happen.
	limit = 30 * time.Second
	tick  = 2 * time.Millisecond
)

// long lasts longer than any check.
func long() lease.Lifetime { return lease.Lifetime{TTL: 5 * time.Minute, Retention: 10 * time.Minute} }

// short runs out at once.
func short() lease.Lifetime {
	return lease.Lifetime{TTL: 30 * time.Millisecond, Retention: 10 * time.Minute}
}

// acquireFree acquires the key, which must be free.
func acquireFree(t testing.TB, store lease.Store, holder string, terms lease.Lifetime) (lease.Entry, *lease.Entry) {
	t.Helper()
	got, before, err := store.Acquire(t.Context(), key, holder, []byte("of "+holder), terms)
	require.NoError(t, err)
	requireConsistent(t, got)
	require.Equal(t, lease.Held, got.State)
	require.Equal(t, holder, got.Holder)
	return got, before
}

// read reads the entry, which must exist.
func read(t testing.TB, store lease.Store) lease.Entry {
	t.Helper()
	e, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	requireConsistent(t, e)
	return e
}

// until reads the entry until it satisfies a condition.
func until(t testing.TB, store lease.Store, wanted func(lease.Entry) bool) lease.Entry {
	t.Helper()
	for start := time.Now(); ; {
		e := read(t, store)
		if wanted(e) {
			return e
		}
		require.Less(t, time.Since(start), limit, "%+v", e)
		sleep(t.Context(), tick)
	}
}

// sleep waits between two reads. No check relies on its duration.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func expired(e lease.Entry) bool { return e.State == lease.Expired }

// requireConsistent checks an entry by itself.
func requireConsistent(t testing.TB, e lease.Entry) {
	t.Helper()
	require.NotEmpty(t, e.Token)
	require.Positive(t, e.Revision)
	require.Equal(t, lease.StateAt(e.ReadAt, e.ExpiresAt, e.State == lease.Resigned), e.State,
		"the state does not correspond to the times")
	require.False(t, e.RenewedAt.Before(e.AcquiredAt))
	require.False(t, e.ReadAt.Before(e.RenewedAt))
	require.True(t, e.ExpiresAt.After(e.RenewedAt))
}

// requireSame compares two reads without a write in between.
func requireSame(t testing.TB, want, got lease.Entry) {
	t.Helper()
	require.Equal(t, content(want), content(got))
}

func content(e lease.Entry) string {
	return fmt.Sprintf("%s %s %s %d %q %d %d %d", e.Key, e.Holder, e.Token, e.Revision, e.Value,
		e.AcquiredAt.UnixMicro(), e.RenewedAt.UnixMicro(), e.ExpiresAt.UnixMicro())
}
