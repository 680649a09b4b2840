package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
)

// faulty is a store in memory with faults in renewals and resignations.
type faulty struct {
	*lease.Memory

	mu      sync.Mutex
	renewed []time.Time // times of the renewals
	renew   func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error)
	resign  func(ctx context.Context) error // called first; an error replaces the memory's result
}

func (f *faulty) Renew(ctx context.Context, key, token string, value []byte,
	terms lease.Lifetime) (lease.Entry, error) {
	f.mu.Lock()
	f.renewed = append(f.renewed, time.Now())
	renew := f.renew
	f.mu.Unlock()
	ask := func(ctx context.Context) (lease.Entry, error) { return f.Memory.Renew(ctx, key, token, value, terms) }
	if renew == nil {
		return ask(ctx)
	}
	return renew(ctx, ask)
}

func (f *faulty) Resign(ctx context.Context, key, token string) error {
	if f.resign != nil {
		if err := f.resign(ctx); err != nil {
			return err
		}
	}
	return f.Memory.Resign(ctx, key, token)
}

func (f *faulty) set(renew func(context.Context, func(context.Context) (lease.Entry, error)) (lease.Entry, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew = renew
}

func (f *faulty) renewals() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.renewed
}

var errAway = errors.New("the store is away")

func unavailable(context.Context, func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
	return lease.Entry{}, errAway
}

// keep acquires the key and keeps the lease.
func keep(t *testing.T, store lease.Store, options lease.KeepOptions) *lease.Hold {
	t.Helper()
	sent := time.Now()
	got, _, err := store.Acquire(t.Context(), key, "a", []byte("first"), options.Lifetime)
	require.NoError(t, err)
	return lease.Keep(t.Context(), store, got, sent, options)
}

// ended waits for the end of a hold and returns how long that took.
func ended(held *lease.Hold) time.Duration {
	start := time.Now()
	<-held.Done()
	return time.Since(start)
}

func TestKeepAndResign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		counted := options
		asked := 0
		counted.Value = func() []byte { asked++; return []byte{byte(asked)} }
		held := keep(t, store, counted)
		require.Equal(t, []byte("first"), held.Entry().Value)

		<-time.After(10 * time.Minute)
		require.True(t, held.Valid())
		require.NoError(t, held.Err())
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Held, entry.State)
		require.Equal(t, held.Entry().Token, entry.Token)
		require.Equal(t, []byte{byte(len(store.renewals()))}, entry.Value, "Value is called for each renewal")
		for i, at := range store.renewals()[1:] {
			gap := at.Sub(store.renewals()[i])
			require.LessOrEqual(t, gap, 5*time.Second)
			require.GreaterOrEqual(t, gap, 4500*time.Millisecond)
		}

		require.NoError(t, held.Resign(t.Context()))
		<-held.Done()
		require.ErrorIs(t, held.Err(), lease.ErrResigned)
		require.False(t, held.Valid())
		entry, err = store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)
		require.NoError(t, held.Resign(t.Context()), "again")

		renewals := len(store.renewals())
		<-time.After(time.Minute)
		require.Len(t, store.renewals(), renewals, "no renewal after the resignation")
	})
}

func TestLeaseOfAnotherHolderIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := lease.NewMemory()
		held := keep(t, store, options)
		require.NoError(t, store.Delete(t.Context(), key, held.Entry().Token, held.Entry().Revision))
		other, _, err := store.Acquire(t.Context(), key, "b", nil, lifetime)
		require.NoError(t, err)
		require.LessOrEqual(t, ended(held), 5*time.Second, "at the next renewal")
		require.ErrorIs(t, held.Err(), lease.ErrLost)

		require.NoError(t, held.Resign(t.Context()), "another holder has the lease, so there is nothing to give up")
		require.ErrorIs(t, held.Err(), lease.ErrLost, "the first reason remains")
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Held, entry.State)
		require.Equal(t, other.Token, entry.Token)
	})
}

func TestRenewalIsRetriedUntilTheLeaseIsNoLongerTrusted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory(), renew: unavailable}
		held := keep(t, store, options)
		require.Equal(t, 14*time.Second, ended(held), "a second before it runs out")
		require.ErrorIs(t, held.Err(), lease.ErrUntrusted)
		require.ErrorIs(t, held.Err(), errAway)
		require.GreaterOrEqual(t, len(store.renewals()), 8)
		require.Less(t, store.renewals()[1].Sub(store.renewals()[0]), 400*time.Millisecond, "the second try comes soon")
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestLeaseSurvivesShortOutageOfStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory(), renew: unavailable}
		held := keep(t, store, options)
		<-time.After(12 * time.Second)
		store.set(nil)
		<-time.After(time.Minute)
		require.True(t, held.Valid())
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestRenewalIsRepeatedAfterLostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		lost := 0
		store.set(func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			entry, err := ask(ctx)
			if lost++; lost%2 == 1 {
				return lease.Entry{}, errAway
			}
			return entry, err
		})
		held := keep(t, store, options)
		<-time.After(time.Minute)
		require.True(t, held.Valid())
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestTrustIsCountedFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		// The store renews at once, but its answers take 3 s, and there are none from the third on.
		store.set(func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			entry, err := ask(ctx)
			if len(store.renewals()) > 2 {
				<-ctx.Done()
				return lease.Entry{}, ctx.Err()
			}
			<-time.After(3 * time.Second)
			return entry, err
		})
		held := keep(t, store, options)
		<-held.Done()
		require.Equal(t, 14*time.Second, time.Since(store.renewals()[1]))

		sent := time.Now().Add(-20 * time.Second)
		got, _, err := store.Acquire(t.Context(), "another", "a", nil, lifetime)
		require.NoError(t, err)
		late := lease.Keep(t.Context(), store, got, sent, options)
		require.False(t, late.Valid(), "the answer to the acquisition took longer than the lease lasts")
		require.Zero(t, ended(late))
		require.NoError(t, late.Resign(t.Context()))
		require.NoError(t, held.Resign(t.Context()))
	})
}

// TestFrozenStoreOrProcess freezes the store, or the process, until the lease has run out. A late answer does not make
// the hold valid again.
func TestFrozenStoreOrProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		thaw := make(chan struct{})
		store.set(func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			entry, err := ask(ctx)
			<-thaw // ignores its context
			return entry, err
		})
		held := keep(t, store, options)
		<-time.After(14*time.Second - 1)
		require.True(t, held.Valid())
		<-time.After(1)
		require.False(t, held.Valid())
		require.Zero(t, ended(held), "Done does not wait for the store")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, held.Resign(ctx), context.DeadlineExceeded, "Resign waits for a renewal that may still arrive")

		close(thaw)
		synctest.Wait()
		require.False(t, held.Valid(), "although the store has renewed the lease")
		require.ErrorIs(t, held.Err(), lease.ErrUntrusted)
		require.NoError(t, held.Resign(t.Context()))
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State, "the lease that was renewed late is given up")
	})
}

func TestResignDuringRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		begun := make(chan struct{})
		store.set(func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			close(begun)
			<-ctx.Done()
			// The request reaches the store although its context has ended.
			entry, err := ask(t.Context())
			require.NoError(t, err)
			return entry, err
		})
		held := keep(t, store, options)
		<-begun
		require.NoError(t, held.Resign(t.Context()))
		require.ErrorIs(t, held.Err(), lease.ErrResigned)
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)
	})
}

// The context of a program has ended when its deferred calls run after an interrupt.
func TestResignWithEndedContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		held := keep(t, store, options)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, held.Resign(ctx))
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)

		store.resign = func(ctx context.Context) error { // the store does not answer
			<-ctx.Done()
			return context.Cause(ctx)
		}
		begin := time.Now()
		require.ErrorIs(t, held.Resign(ctx), context.Canceled)
		require.Equal(t, lease.ResignGrace, time.Since(begin))
	})
}

func TestResignReturnsErrorOfStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory(), resign: func(context.Context) error { return errAway }}
		held := keep(t, store, options)
		require.ErrorIs(t, held.Resign(t.Context()), errAway)
		store.resign = nil
		require.NoError(t, held.Resign(t.Context()))
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)
	})
}

func TestEndOfContextLeavesLeaseUntilExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		hung := make(chan struct{})
		store.set(func(context.Context, func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			<-hung
			return lease.Entry{}, errAway
		})
		got, _, err := store.Acquire(t.Context(), key, "a", nil, lifetime)
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		held := lease.Keep(ctx, store, got, time.Now(), options)
		<-time.After(6 * time.Second) // a renewal hangs
		shutdown := errors.New("shutting down")
		cancel(shutdown)
		require.Zero(t, ended(held), "Done does not wait for the store")
		require.ErrorIs(t, held.Err(), shutdown)
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Held, entry.State)
		close(hung)
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestKeepOwnLeaseAfterLostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		tried, _, err := store.Acquire(t.Context(), key, "a", nil, lifetime) // its answer counts as lost
		require.NoError(t, err)
		<-time.After(12 * time.Second)
		sent := time.Now()
		_, _, err = store.Acquire(t.Context(), key, "a", nil, lifetime)
		var other *lease.HeldError
		require.ErrorAs(t, err, &other)
		require.Equal(t, tried.Token, other.Entry.Token)
		held := lease.Keep(t.Context(), store, other.Entry, sent, options)
		require.True(t, held.Valid())
		<-time.After(time.Minute)
		require.True(t, held.Valid(), "the first renewal comes before the remaining time is over")
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestInvalidKeepOptions(t *testing.T) {
	t.Parallel()
	require.NoError(t, options.Validate())
	for name, wrong := range map[string]lease.KeepOptions{
		"zero":             {},
		"never renewed":    {Lifetime: lifetime},
		"renewed too late": {Interval: 14 * time.Second, Lifetime: lifetime},
		"nothing beyond margin": {
			Interval: time.Millisecond, Lifetime: lease.Lifetime{TTL: time.Second, Retention: time.Minute}},
		"a negative margin":       {Interval: time.Second, Margin: -1, Lifetime: lifetime},
		"retention below TTL":     {Interval: time.Second, Lifetime: lease.Lifetime{TTL: 15 * time.Second}},
		"a negative renewal time": {Interval: -1, Lifetime: lifetime},
	} {
		require.ErrorIs(t, wrong.Validate(), lease.ErrInvalid, name)
		synctest.Test(t, func(t *testing.T) {
			store := lease.NewMemory()
			got, _, err := store.Acquire(t.Context(), key, "a", nil, lifetime)
			require.NoError(t, err)
			held := lease.Keep(t.Context(), store, got, time.Now(), wrong)
			require.Zero(t, ended(held), name)
			require.ErrorIs(t, held.Err(), lease.ErrInvalid, name)
			require.NoError(t, held.Resign(t.Context()))
		})
	}
}
