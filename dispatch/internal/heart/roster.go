package heart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/lease"
)

// Roster is the heartbeats that a process knows, which its parts share. It lists all of them now and then, and asks in between only for those
// that were there when it last looked: an entry that has run out stays readable for long, and there may be thousands after many restarts. One
// that comes back is announced by a hint of the store, or found by the next listing.
//
// Its methods are safe for concurrent use.
type Roster struct {
	leases lease.Store
	every  time.Duration

	mu      sync.Mutex
	entries map[string]lease.Entry // by key
	hinted  map[string]bool        // keys
	listed  time.Time              // zero: everything is to be listed
}

// NewRoster returns a roster that lists everything once in that time.
func NewRoster(leases lease.Store, every time.Duration) *Roster {
	return &Roster{leases: leases, every: every, hinted: map[string]bool{}}
}

// Hint notes that an entry may have changed.
func (r *Roster) Hint(key string) {
	if _, ok := contract.ServerOf(key); !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hinted[key] = true
}

// Forget has everything listed at the next reading: hints may have been missed.
func (r *Roster) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed = time.Time{}
}

// Listed notes a listing that another part of the process has made just now. Entries of other kinds are passed over.
func (r *Roster) Listed(entries []lease.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(entries)
}

// replace is called with the lock held.
func (r *Roster) replace(entries []lease.Entry) {
	r.entries, r.listed = map[string]lease.Entry{}, time.Now()
	clear(r.hinted)
	for i := range entries {
		if _, ok := contract.ServerOf(entries[i].Key); ok {
			r.entries[entries[i].Key] = entries[i]
		}
	}
}

// Entries returns the heartbeats, in no order. Those that are held are as of now, and so is whether one has run out; the age of one that ran
// out or was resigned is that at which it was read.
func (r *Roster) Entries(ctx context.Context) ([]lease.Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock() // a concurrent caller asks the same question
	if r.listed.IsZero() || time.Since(r.listed) >= r.every {
		var all []lease.Entry
		for e, err := range r.leases.List(ctx, contract.WorkerPrefix) {
			if errors.Is(err, lease.ErrMalformed) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list heartbeats: %w", err)
			}
			all = append(all, e)
		}
		r.replace(all)
		return all, nil
	}
	for key, e := range r.entries {
		if e.State == lease.Held {
			r.hinted[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.hinted)) {
		e, err := r.leases.Get(ctx, key)
		switch {
		case errors.Is(err, lease.ErrNotFound), errors.Is(err, lease.ErrMalformed):
			delete(r.entries, key)
		case err != nil:
			return nil, fmt.Errorf("read heartbeats: %w", err)
		default:
			r.entries[key] = e
		}
		delete(r.hinted, key)
	}
	return slices.Collect(maps.Values(r.entries)), nil
}

// Lives returns the processes behind the heartbeats, of the living and of those who were lately, by server ID.
func (r *Roster) Lives(ctx context.Context) (map[string]Life, error) {
	entries, err := r.Entries(ctx)
	if err != nil {
		return nil, err
	}
	lives := make(map[string]Life, len(entries))
	for i := range entries {
		if life, ok := lifeOf(&entries[i]); ok {
			lives[life.ServerID] = life
		}
	}
	return lives, nil
}
