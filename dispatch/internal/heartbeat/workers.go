package heartbeat

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

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// Workers caches the heartbeats of all processes for the parts of a process. It lists all of them at an interval, and
// in between reads only those that were held at the last read: an expired entry stays readable for long, and there may
// be thousands after many restarts. An expired heartbeat that is renewed is found by a hint of the store, or by the
// next listing.
//
// Its methods are safe for concurrent use.
type Workers struct {
	leases lease.Store
	every  time.Duration

	mu      sync.Mutex
	entries map[string]lease.Entry // by key
	hinted  map[string]bool        // keys
	beats   map[string]beat        // decoded values by key
	listed  time.Time              // zero: everything must be listed
}

// beat is the value of a heartbeat, encoded and decoded.
type beat struct {
	value []byte
	says  dispatchtype.Heartbeat
}

// NewWorkers returns a cache that lists all heartbeats once in that time.
func NewWorkers(leases lease.Store, every time.Duration) *Workers {
	return &Workers{leases: leases, every: every, hinted: map[string]bool{}, beats: map[string]beat{}}
}

// Hint records that an entry may have changed.
func (r *Workers) Hint(key string) {
	if _, ok := wire.ServerOf(key); !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hinted[key] = true
}

// Invalidate makes the next read list everything: hints may have been missed.
func (r *Workers) Invalidate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed = time.Time{}
}

// Listed stores the entries that another part of the process has just listed. Entries of other kinds are ignored.
func (r *Workers) Listed(entries []lease.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(entries)
}

// replace is called with the lock held.
func (r *Workers) replace(entries []lease.Entry) {
	r.entries, r.listed = map[string]lease.Entry{}, time.Now()
	clear(r.hinted)
	for i := range entries {
		if _, ok := wire.ServerOf(entries[i].Key); ok {
			r.entries[entries[i].Key] = entries[i]
		}
	}
	maps.DeleteFunc(r.beats, func(key string, _ beat) bool { _, there := r.entries[key]; return !there })
}

// Entries returns the heartbeats, in no order. Held ones are current, as is the expiry of those that were held before.
// The age of an expired or resigned one is that of its last read.
func (r *Workers) Entries(ctx context.Context) ([]lease.Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock() // a concurrent caller waits for the same answer
	if r.listed.IsZero() || time.Since(r.listed) >= r.every {
		var all []lease.Entry
		for e, err := range r.leases.List(ctx, wire.WorkerPrefix) {
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

// Processes returns the processes of the heartbeats, live and dead, by server ID. Their heartbeats must not be changed.
func (r *Workers) Processes(ctx context.Context) (map[string]Process, error) {
	entries, err := r.Entries(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	processes := make(map[string]Process, len(entries))
	for i := range entries {
		if id, ok := wire.ServerOf(entries[i].Key); ok {
			processes[id] = r.process(id, &entries[i])
		}
	}
	return processes, nil
}

// process returns the process of a heartbeat. Each value is decoded once: expired ones do not change, and may be
// thousands with hundreds of projects each. It is called with the lock held.
func (r *Workers) process(id string, e *lease.Entry) Process {
	known, ok := r.beats[e.Key]
	if !ok || !bytes.Equal(known.value, e.Value) {
		known = beat{value: e.Value}
		if err := json.Unmarshal(e.Value, &known.says); err != nil {
			known.says = dispatchtype.Heartbeat{ServerID: id} // the process is alive all the same
		}
		r.beats[e.Key] = known
	}
	return Process{ServerID: id, Alive: e.State == lease.Held, Gone: e.State == lease.Resigned, Beat: known.says}
}
