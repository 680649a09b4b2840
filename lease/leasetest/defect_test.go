package leasetest_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// defective is a store in memory with a fault. Methods that are not replaced work.
type defective struct {
	*lease.Memory

	acquire func(ctx context.Context, s *lease.Memory, key, holder string, value []byte,
		terms lease.Lifetime) (lease.Entry, *lease.Entry, error)
	renew func(ctx context.Context, s *lease.Memory, key, token string, value []byte,
		terms lease.Lifetime) (lease.Entry, error)
	resign func(ctx context.Context, s *lease.Memory, key, token string) error
	remove func(ctx context.Context, s *lease.Memory, key, token string, revision int64) error
	see    func(e *lease.Entry) error // changes the entries that are read
}

func (d *defective) seen(e lease.Entry, err error) (lease.Entry, error) {
	if err != nil || d.see == nil {
		return e, err
	}
	return e, d.see(&e)
}

func (d *defective) Acquire(ctx context.Context, key, holder string, value []byte,
	terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	if d.acquire != nil {
		return d.acquire(ctx, d.Memory, key, holder, value, terms)
	}
	return d.Memory.Acquire(ctx, key, holder, value, terms)
}

func (d *defective) Renew(ctx context.Context, key, token string, value []byte,
	terms lease.Lifetime) (lease.Entry, error) {
	if d.renew != nil {
		return d.renew(ctx, d.Memory, key, token, value, terms)
	}
	return d.Memory.Renew(ctx, key, token, value, terms)
}

func (d *defective) Resign(ctx context.Context, key, token string) error {
	if d.resign != nil {
		return d.resign(ctx, d.Memory, key, token)
	}
	return d.Memory.Resign(ctx, key, token)
}

func (d *defective) Delete(ctx context.Context, key, token string, revision int64) error {
	if d.remove != nil {
		return d.remove(ctx, d.Memory, key, token, revision)
	}
	return d.Memory.Delete(ctx, key, token, revision)
}

func (d *defective) Get(ctx context.Context, key string) (lease.Entry, error) {
	return d.seen(d.Memory.Get(ctx, key))
}

func (d *defective) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range d.Memory.List(ctx, prefix) {
			e, err := d.seen(e, err)
			if errors.Is(err, lease.ErrNotFound) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// defect is a fault, and a contradiction that Verify must find.
type defect struct {
	store func() lease.Store
	want  string
	timed bool // the fault makes waits of checks last until their time limit
}

func defects() map[string]defect {
	plant := func(change func(*defective)) func() lease.Store {
		return func() lease.Store {
			d := &defective{Memory: lease.NewMemory()}
			change(d)
			return d
		}
	}
	see := func(change func(e *lease.Entry)) func() lease.Store {
		return plant(func(d *defective) { d.see = func(e *lease.Entry) error { change(e); return nil } })
	}
	clock := func(now func() time.Time) func() lease.Store {
		return func() lease.Store { return lease.NewMemory(lease.WithClock(now)) }
	}
	still := time.Now()
	return map[string]defect{
		"acquiring ignores the lease in force": {
			store: plant(acquiresAnything), want: "two leases were in force at the same time"},
		"the holder can acquire again": {
			store: plant(acquiresItsOwn), want: "an acquisition replaced a lease in force"},
		"the predecessor is invented": {
			store: plant(inventsBefore), want: "an acquisition returned a wrong predecessor"},
		"predecessors are not returned": {
			store: plant(forgetsBefore), want: "an acquisition did not return its predecessor"},
		"acquiring an expired lease is refused": {
			store: plant(refusesTheExpired), want: "an acquisition was refused although no lease was in force"},
		"tokens are those of the holder": {store: tokensOfHolders, want: "one token was granted twice"},
		"renewing does not compare the token": {
			store: plant(renewsAnything), want: "a lease was renewed after another acquisition"},
		"any token renews": {
			store: plant(renewsAnything), want: "a token that was never granted was accepted"},
		"renewing renews another's lease": {store: plant(renewsAnothers), want: "a renewal returned another lease"},
		"renewing revives an expired lease": {
			store: plant(renewsTheExpired), want: "a lease was renewed after it had run out"},
		"renewals keep the revision": {
			store: plant(renewsWithoutRevision), want: "a write has not increased the revision"},
		"renewals without a value lose it": {
			store: plant(renewsWithoutValue), want: "an entry has a value \"nothing\" that its holder never wrote"},
		"renewals are refused sometimes": {store: plant(renewsAtTimes), want: "a lease in force was reported as lost"},
		"resigning does not compare": {
			store: plant(resignsAnything), want: "an entry is resigned without a resignation"},
		"resigning always succeeds": {store: plant(resignsAlways), want: "a lease was resigned after it had run out"},
		"resigning does nothing":    {store: plant(resignsNothing), want: "an entry is back after it was given up"},
		"resigning removes the entry": {
			store: plant(resignsByDeleting), want: "an acquisition did not return its predecessor"},
		"deleting does not compare": {
			store: plant(deletesAnything), want: "an entry was deleted after it had changed"},
		"deleting compares only the token": {store: plant(deletesByToken), want: "an entry was deleted after it had changed"},
		"expired entries are hidden": {store: plant(func(d *defective) {
			d.see = hidesTheExpired
		}), want: "an entry was removed too early"},
		"expired entries count as held": {store: see(holdsTheExpired), want: "a state contradicts the times"},
		"values are lost": {store: see(func(e *lease.Entry) {
			e.Value = nil
		}), want: "an entry has a value \"\" that its holder never wrote"},
		"tokens are hidden": {store: see(func(e *lease.Entry) {
			e.Token = "hidden"
		}), want: "an entry has a token that was never granted"},
		"the key is wrong": {store: see(func(e *lease.Entry) { e.Key += "x" }), want: "an entry has another key"},
		"the holder is wrong": {store: see(func(e *lease.Entry) {
			e.Holder += "x"
		}), want: "holder or time of an acquisition have changed"},
		"revisions stand still": {store: see(func(e *lease.Entry) {
			e.Revision = 1
		}), want: "an older revision was read after a newer one"},
		"revisions are coarse": {store: see(func(e *lease.Entry) {
			e.Revision /= 4
		}), want: "two entries with the same revision differ"},
		"reading counts as a renewal": {store: see(func(e *lease.Entry) {
			e.RenewedAt = e.ReadAt.Add(1)
		}), want: "the times of an entry are out of order"},
		"reads use another clock":      {store: see(readByAnother), want: "the store's times are not from one clock"},
		"each host uses its own clock": {store: clock(ofSomeHost), want: "the store's times are not from one clock"},
		"the clock is stopped": {store: clock(func() time.Time {
			return still
		}), want: "the store's times are not from one clock", timed: true},
	}
}

func acquiresAnything(d *defective) {
	d.acquire = func(ctx context.Context, s *lease.Memory, key, holder string, value []byte,
		terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
		got, before, err := s.Acquire(ctx, key, holder, value, terms)
		if held, refused := errors.AsType[*lease.HeldError](err); refused {
			_ = s.Delete(ctx, key, held.Entry.Token, held.Entry.Revision)
			return s.Acquire(ctx, key, holder, value, terms)
		}
		return got, before, err
	}
}

func acquiresItsOwn(d *defective) {
	d.acquire = func(ctx context.Context, s *lease.Memory, key, holder string, value []byte,
		terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
		got, before, err := s.Acquire(ctx, key, holder, value, terms)
		if held, refused := errors.AsType[*lease.HeldError](err); refused && held.Entry.Holder == holder {
			_ = s.Delete(ctx, key, held.Entry.Token, held.Entry.Revision)
			got, _, err = s.Acquire(ctx, key, holder, value, terms)
			return got, &held.Entry, err
		}
		return got, before, err
	}
}

func inventsBefore(d *defective) {
	var mu sync.Mutex
	first := map[string]lease.Entry{}
	d.acquire = func(ctx context.Context, s *lease.Memory, key, holder string, value []byte,
		terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
		got, before, err := s.Acquire(ctx, key, holder, value, terms)
		mu.Lock()
		defer mu.Unlock()
		if old, ok := first[key]; ok && before != nil {
			before = &old
		}
		if before != nil {
			first[key] = *before
		}
		return got, before, err
	}
}

func refusesTheExpired(d *defective) {
	d.acquire = func(ctx context.Context, s *lease.Memory, key, holder string, value []byte,
		terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
		if current, err := s.Get(ctx, key); err == nil && current.State == lease.Expired && current.Age() < 2*terms.TTL {
			return lease.Entry{}, nil, &lease.HeldError{Entry: current}
		}
		return s.Acquire(ctx, key, holder, value, terms)
	}
}

func renewsAnything(d *defective) {
	d.renew = func(ctx context.Context, s *lease.Memory, key, token string, value []byte,
		terms lease.Lifetime) (lease.Entry, error) {
		got, err := s.Renew(ctx, key, token, value, terms)
		if current, missing := s.Get(ctx, key); errors.Is(err, lease.ErrLost) && missing == nil {
			got, err = s.Renew(ctx, key, current.Token, value, terms)
			got.Token = token
		}
		return got, err
	}
}

func renewsAnothers(d *defective) {
	d.renew = func(ctx context.Context, s *lease.Memory, key, token string, value []byte,
		terms lease.Lifetime) (lease.Entry, error) {
		got, err := s.Renew(ctx, key, token, value, terms)
		if current, missing := s.Get(ctx, key); errors.Is(err, lease.ErrLost) && missing == nil {
			return s.Renew(ctx, key, current.Token, value, terms)
		}
		return got, err
	}
}

func renewsAtTimes(d *defective) {
	d.renew = func(ctx context.Context, s *lease.Memory, key, token string, value []byte,
		terms lease.Lifetime) (lease.Entry, error) {
		if value == nil {
			return lease.Entry{}, lease.ErrLost
		}
		return s.Renew(ctx, key, token, value, terms)
	}
}

func renewsTheExpired(d *defective) {
	d.renew = func(ctx context.Context, s *lease.Memory, key, token string, value []byte,
		terms lease.Lifetime) (lease.Entry, error) {
		got, err := s.Renew(ctx, key, token, value, terms)
		if current, missing := s.Get(ctx, key); errors.Is(err, lease.ErrLost) && missing == nil && current.Token == token &&
			current.State == lease.Expired {
			current.RenewedAt, current.ExpiresAt = current.ReadAt, current.ReadAt.Add(terms.TTL)
			current.State = lease.Held
			current.Revision++
			return current, nil
		}
		return got, err
	}
}

func renewsWithoutRevision(d *defective) {
	d.renew = func(ctx context.Context, s *lease.Memory, key, token string, value []byte,
		terms lease.Lifetime) (lease.Entry, error) {
		current, _ := s.Get(ctx, key)
		got, err := s.Renew(ctx, key, token, value, terms)
		got.Revision = current.Revision
		return got, err
	}
}

func renewsWithoutValue(d *defective) {
	d.renew = func(ctx context.Context, s *lease.Memory, key, token string, value []byte,
		terms lease.Lifetime) (lease.Entry, error) {
		if value == nil {
			value = []byte("nothing")
		}
		return s.Renew(ctx, key, token, value, terms)
	}
}

func resignsAnything(d *defective) {
	d.resign = func(ctx context.Context, s *lease.Memory, key, token string) error {
		err := s.Resign(ctx, key, token)
		if current, missing := s.Get(ctx, key); errors.Is(err, lease.ErrLost) && missing == nil {
			return s.Resign(ctx, key, current.Token)
		}
		return err
	}
}

func resignsAlways(d *defective) {
	d.resign = func(ctx context.Context, s *lease.Memory, key, token string) error {
		if err := s.Resign(ctx, key, token); !errors.Is(err, lease.ErrLost) {
			return err
		}
		return nil
	}
}

func resignsNothing(d *defective) {
	d.resign = func(ctx context.Context, s *lease.Memory, key, token string) error {
		if current, err := s.Get(ctx, key); err == nil && current.State == lease.Held && current.Token == token {
			return nil
		}
		return s.Resign(ctx, key, token)
	}
}

func resignsByDeleting(d *defective) {
	d.resign = func(ctx context.Context, s *lease.Memory, key, token string) error {
		err := s.Resign(ctx, key, token)
		if err == nil {
			current, _ := s.Get(ctx, key)
			_ = s.Delete(ctx, key, current.Token, current.Revision)
		}
		return err
	}
}

func deletesAnything(d *defective) {
	d.remove = func(ctx context.Context, s *lease.Memory, key, _ string, _ int64) error {
		current, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		return s.Delete(ctx, key, current.Token, current.Revision)
	}
}

func deletesByToken(d *defective) {
	d.remove = func(ctx context.Context, s *lease.Memory, key, token string, _ int64) error {
		current, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		return s.Delete(ctx, key, token, current.Revision)
	}
}

func forgetsBefore(d *defective) {
	d.acquire = func(ctx context.Context, s *lease.Memory, key, holder string, value []byte,
		terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
		got, _, err := s.Acquire(ctx, key, holder, value, terms)
		return got, nil, err
	}
}

func hidesTheExpired(e *lease.Entry) error {
	if e.State == lease.Expired {
		return lease.ErrNotFound
	}
	return nil
}

func holdsTheExpired(e *lease.Entry) {
	if e.State == lease.Expired {
		e.State = lease.Held
	}
}

// ofSomeHost returns the time of one of three clocks at random, as if each caller had a different one.
func ofSomeHost() time.Time { return time.Now().Add(time.Duration(rand.N(3)) * 200 * time.Millisecond) }

func readByAnother(e *lease.Entry) {
	e.ReadAt = ofSomeHost()
	e.State = lease.StateAt(e.ReadAt, e.ExpiresAt, e.State == lease.Resigned)
}

// holders is a store whose tokens are the names of the holders: a holder that acquires again gets its old token.
type holders struct {
	*lease.Memory

	mu     sync.Mutex
	tokens map[string]string // real ones, by holder and key
}

func tokensOfHolders() lease.Store {
	return &holders{Memory: lease.NewMemory(), tokens: map[string]string{}}
}

func (h *holders) Acquire(ctx context.Context, key, holder string, value []byte,
	terms lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	got, before, err := h.Memory.Acquire(ctx, key, holder, value, terms)
	if before != nil {
		before.Token = before.Holder
	}
	if held, refused := errors.AsType[*lease.HeldError](err); refused {
		held.Entry.Token = held.Entry.Holder
	}
	if err != nil {
		return got, before, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens[holder+key] = got.Token
	got.Token = holder
	return got, before, nil
}

func (h *holders) real(key, token string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tokens[token+key]
}

func (h *holders) Renew(ctx context.Context, key, token string, value []byte,
	terms lease.Lifetime) (lease.Entry, error) {
	got, err := h.Memory.Renew(ctx, key, h.real(key, token), value, terms)
	got.Token = token
	return got, err
}

func (h *holders) Resign(ctx context.Context, key, token string) error {
	return h.Memory.Resign(ctx, key, h.real(key, token))
}

func (h *holders) Delete(ctx context.Context, key, token string, revision int64) error {
	return h.Memory.Delete(ctx, key, h.real(key, token), revision)
}

func (h *holders) Get(ctx context.Context, key string) (lease.Entry, error) {
	e, err := h.Memory.Get(ctx, key)
	e.Token = e.Holder
	return e, err
}

func (h *holders) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range h.Memory.List(ctx, prefix) {
			e.Token = e.Holder
			if !yield(e, err) {
				return
			}
		}
	}
}
