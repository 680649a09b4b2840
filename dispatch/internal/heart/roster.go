package heart

import (
	"bytes"
	"context"
	"encoding/json"
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
	beats   map[string]beat        // by key, as they were decoded last
	listed  time.Time              // zero: everything is to be listed
}

// beat is a value of a heartbeat and what it says.
type beat struct {
	value []byte
	says  contract.Beat
}

// NewRoster returns a roster that lists everything once in that time.
func NewRoster(leases lease.Store, every time.Duration) *Roster {
	return &Roster{leases: leases, every: every, hinted: map[string]bool{}, beats: map[string]beat{}}
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
	maps.DeleteFunc(r.beats, func(key string, _ beat) bool { _, there := r.entries[key]; return !there })
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

// Lives returns the processes behind the heartbeats, of the living and of those who were lately, by server ID. What they say must not be changed.
func (r *Roster) Lives(ctx context.Context) (map[string]Life, error) {
	entries, err := r.Entries(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lives := make(map[string]Life, len(entries))
	for i := range entries {
		if id, ok := contract.ServerOf(entries[i].Key); ok {
			lives[id] = r.life(id, &entries[i])
		}
	}
	return lives, nil
}

// life is the process behind a heartbeat. A value is decoded once: those that ran out stay the same, and may be thousands that name hundreds
// of projects each. It is called with the lock held.
func (r *Roster) life(id string, e *lease.Entry) Life {
	known, ok := r.beats[e.Key]
	if !ok || !bytes.Equal(known.value, e.Value) {
		known = beat{value: e.Value}
		if err := json.Unmarshal(e.Value, &known.says); err != nil {
			known.says = contract.Beat{ServerID: id} // it beats all the same
		}
		r.beats[e.Key] = known
	}
	return Life{ServerID: id, Alive: e.State == lease.Held, Gone: e.State == lease.Resigned, Beat: known.says}
}
