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

// faulty is a memory whose renewals and resignations go wrong as a test wants.
type faulty struct {
	*lease.Memory

	mu      sync.Mutex
	renewed []time.Time // when renewals were asked for
	renew   func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error)
	resign  func(ctx context.Context) error // instead of the memory's, if it fails
}

func (f *faulty) Renew(ctx context.Context, key, token string, value []byte, terms lease.Terms) (lease.Entry, error) {
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

func (f *faulty) asked() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.renewed
}

var errAway = errors.New("the store is away")

func away(context.Context, func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
	return lease.Entry{}, errAway
}

// keep acquires and keeps.
func keep(t *testing.T, store lease.Store, pace lease.Pace) *lease.Hold {
	t.Helper()
	sent := time.Now()
	got, _, err := store.Acquire(t.Context(), key, "a", []byte("first"), pace.Terms)
	require.NoError(t, err)
	return lease.Keep(t.Context(), store, got, sent, pace)
}

// ended waits for the end of a lease and returns how long that took.
func ended(held *lease.Hold) time.Duration {
	start := time.Now()
	<-held.Done()
	return time.Since(start)
}

func TestALeaseIsKeptAndResigned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		counted := pace
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
		require.Equal(t, []byte{byte(len(store.asked()))}, entry.Value, "the value is asked for at each renewal")
		for i, at := range store.asked()[1:] {
			gap := at.Sub(store.asked()[i])
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

		renewals := len(store.asked())
		<-time.After(time.Minute)
		require.Len(t, store.asked(), renewals, "nothing is renewed after that")
	})
}

func TestALeaseThatWasTakenIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := lease.NewMemory()
		held := keep(t, store, pace)
		require.NoError(t, store.Delete(t.Context(), key, held.Entry().Token, held.Entry().Revision))
		other, _, err := store.Acquire(t.Context(), key, "b", nil, terms)
		require.NoError(t, err)
		require.LessOrEqual(t, ended(held), 5*time.Second, "at the next renewal")
		require.ErrorIs(t, held.Err(), lease.ErrLost)

		require.NoError(t, held.Resign(t.Context()), "somebody else has it, so nothing is left to give up")
		require.ErrorIs(t, held.Err(), lease.ErrLost, "the first reason counts")
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Held, entry.State)
		require.Equal(t, other.Token, entry.Token)
	})
}

func TestAStoreThatIsAwayIsAskedUntilTheLeaseIsNoLongerTrusted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory(), renew: away}
		held := keep(t, store, pace)
		require.Equal(t, 14*time.Second, ended(held), "a second before it runs out")
		require.ErrorIs(t, held.Err(), lease.ErrUntrusted)
		require.ErrorIs(t, held.Err(), errAway)
		require.GreaterOrEqual(t, len(store.asked()), 8)
		require.Less(t, store.asked()[1].Sub(store.asked()[0]), 400*time.Millisecond, "the second try comes soon")
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestAStoreThatComesBackInTimeIsEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory(), renew: away}
		held := keep(t, store, pace)
		<-time.After(12 * time.Second)
		store.set(nil)
		<-time.After(time.Minute)
		require.True(t, held.Valid())
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestALostAnswerIsAskedForAgain(t *testing.T) {
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
		held := keep(t, store, pace)
		<-time.After(time.Minute)
		require.True(t, held.Valid())
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestTrustIsCountedFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		// The store prolongs at once, its answers take 3 s, and from the third on there are none.
		store.set(func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			entry, err := ask(ctx)
			if len(store.asked()) > 2 {
				<-ctx.Done()
				return lease.Entry{}, ctx.Err()
			}
			<-time.After(3 * time.Second)
			return entry, err
		})
		held := keep(t, store, pace)
		<-held.Done()
		require.Equal(t, 14*time.Second, time.Since(store.asked()[1]))

		sent := time.Now().Add(-20 * time.Second)
		got, _, err := store.Acquire(t.Context(), "another", "a", nil, terms)
		require.NoError(t, err)
		late := lease.Keep(t.Context(), store, got, sent, pace)
		require.False(t, late.Valid(), "the answer to the acquisition took longer than it lasts")
		require.Zero(t, ended(late))
		require.NoError(t, late.Resign(t.Context()))
		require.NoError(t, held.Resign(t.Context()))
	})
}

// TestTheFrozen is about a process, or a store, that stands still beyond the lease: what comes after that changes nothing.
func TestTheFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		thaw := make(chan struct{})
		store.set(func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			entry, err := ask(ctx)
			<-thaw // and does not heed its context
			return entry, err
		})
		held := keep(t, store, pace)
		<-time.After(14*time.Second - 1)
		require.True(t, held.Valid())
		<-time.After(1)
		require.False(t, held.Valid())
		require.Zero(t, ended(held), "Done does not wait for the store")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, held.Resign(ctx), context.DeadlineExceeded, "a renewal that may still arrive is waited for")

		close(thaw)
		synctest.Wait()
		require.False(t, held.Valid(), "although the store had prolonged it")
		require.ErrorIs(t, held.Err(), lease.ErrUntrusted)
		require.NoError(t, held.Resign(t.Context()))
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State, "what the late renewal prolonged is given up")
	})
}

func TestResigningDuringARenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		begun := make(chan struct{})
		store.set(func(ctx context.Context, ask func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			close(begun)
			<-ctx.Done()
			// The request is on its way although its sender gave up.
			entry, err := ask(t.Context())
			require.NoError(t, err)
			return entry, err
		})
		held := keep(t, store, pace)
		<-begun
		require.NoError(t, held.Resign(t.Context()))
		require.ErrorIs(t, held.Err(), lease.ErrResigned)
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)
	})
}

func TestAResignationThatFailsIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory(), resign: func(context.Context) error { return errAway }}
		held := keep(t, store, pace)
		require.ErrorIs(t, held.Resign(t.Context()), errAway)
		store.resign = nil
		require.NoError(t, held.Resign(t.Context()))
		entry, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, entry.State)
	})
}

func TestTheEndOfTheContextLeavesTheLeaseToRunOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		hung := make(chan struct{})
		store.set(func(context.Context, func(context.Context) (lease.Entry, error)) (lease.Entry, error) {
			<-hung
			return lease.Entry{}, errAway
		})
		got, _, err := store.Acquire(t.Context(), key, "a", nil, terms)
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		held := lease.Keep(ctx, store, got, time.Now(), pace)
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

func TestALeaseOfOnesOwnIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{Memory: lease.NewMemory()}
		tried, _, err := store.Acquire(t.Context(), key, "a", nil, terms) // say its answer was lost
		require.NoError(t, err)
		<-time.After(12 * time.Second)
		sent := time.Now()
		_, _, err = store.Acquire(t.Context(), key, "a", nil, terms)
		var other *lease.HeldError
		require.ErrorAs(t, err, &other)
		require.Equal(t, tried.Token, other.Entry.Token)
		held := lease.Keep(t.Context(), store, other.Entry, sent, pace)
		require.True(t, held.Valid())
		<-time.After(time.Minute)
		require.True(t, held.Valid(), "the first renewal comes before the little that was left is over")
		require.NoError(t, held.Resign(t.Context()))
	})
}

func TestAPaceThatKeepsNothing(t *testing.T) {
	t.Parallel()
	require.NoError(t, pace.Validate())
	for name, wrong := range map[string]lease.Pace{
		"zero":                    {},
		"never renewed":           {Terms: terms},
		"renewed too late":        {Renew: 14 * time.Second, Terms: terms},
		"nothing beyond margin":   {Renew: time.Millisecond, Terms: lease.Terms{TTL: time.Second, Retention: time.Minute}},
		"a negative margin":       {Renew: time.Second, Margin: -1, Terms: terms},
		"forgotten while held":    {Renew: time.Second, Terms: lease.Terms{TTL: 15 * time.Second}},
		"a negative renewal time": {Renew: -1, Terms: terms},
	} {
		require.ErrorIs(t, wrong.Validate(), lease.ErrInvalid, name)
		synctest.Test(t, func(t *testing.T) {
			store := lease.NewMemory()
			got, _, err := store.Acquire(t.Context(), key, "a", nil, terms)
			require.NoError(t, err)
			held := lease.Keep(t.Context(), store, got, time.Now(), wrong)
			require.Zero(t, ended(held), name)
			require.ErrorIs(t, held.Err(), lease.ErrInvalid, name)
			require.NoError(t, held.Resign(t.Context()))
		})
	}
}
