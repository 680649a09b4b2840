package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/leasetest"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	leasetest.Run(t, func(*testing.T) lease.Store { return lease.NewMemory() })
}

func TestWithClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	store := lease.NewMemory(lease.WithClock(func() time.Time { return now }))
	got, _, err := store.Acquire(t.Context(), key, "a", nil, lifetime)
	require.NoError(t, err)
	require.Equal(t, now, got.AcquiredAt)

	now = now.Add(lifetime.TTL - 1)
	e, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, lease.Held, e.State)
	require.Equal(t, time.Duration(1), e.Remaining())
	require.Equal(t, lifetime.TTL-1, e.Age())

	now = now.Add(1)
	e, err = store.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, lease.Expired, e.State)

	now = now.Add(lifetime.Retention - lifetime.TTL)
	_, err = store.Get(t.Context(), key)
	require.ErrorIs(t, err, lease.ErrNotFound)
}

// TestValuesAreCopies changes a value after it was passed to the store, and after it was returned.
func TestValuesAreCopies(t *testing.T) {
	t.Parallel()
	store := lease.NewMemory()
	value := []byte("value")
	got, _, err := store.Acquire(t.Context(), key, "a", value, lifetime)
	require.NoError(t, err)
	value[0], got.Value[1] = 'x', 'y'
	e, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "value", string(e.Value))
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	require.EqualError(t, &lease.HeldError{
		Entry: lease.Entry{Key: key, Holder: "a", ReadAt: now, ExpiresAt: now.Add(1500 * time.Millisecond)}},
		`lease "dispatcher:shop:orders" is held by "a" for another 1.5s`)
	malformed := &lease.MalformedError{Key: key, Reason: "it is a list"}
	require.EqualError(t, malformed, `entry "dispatcher:shop:orders" cannot be read: it is a list`)
	require.ErrorIs(t, malformed, lease.ErrMalformed)
}
