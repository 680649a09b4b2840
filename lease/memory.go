package lease

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"sync"
	"time"
)

// Memory is a [Store] inside one process, for tests and for a platform that is one process. Nothing outlives it.
type Memory struct {
	now func() time.Time

	mu       sync.Mutex
	entries  map[string]*kept
	revision int64     // of the last write of any key
	sweepAt  time.Time // when entries past their retention are looked for next
	watchers map[chan string]struct{}
}

// kept is an entry, with what the outside does not see.
type kept struct {
	entry     Entry // State and ReadAt are set on reading
	resigned  bool
	retention time.Duration
	vanishAt  time.Time
}

// MemoryOption changes how a [Memory] works.
type MemoryOption func(*Memory)

// WithClock makes now the store's clock, [time.Now] otherwise. It is called while the store is locked.
func WithClock(now func() time.Time) MemoryOption {
	return func(m *Memory) { m.now = now }
}

// How often the whole memory is searched for entries past their retention, and how many hints wait for a slow watcher.
const (
	sweepEvery = time.Minute
	hints      = 256
)

// NewMemory makes an empty store.
func NewMemory(options ...MemoryOption) *Memory {
	m := &Memory{now: time.Now, entries: map[string]*kept{}, watchers: map[chan string]struct{}{}}
	for _, o := range options {
		o(m)
	}
	return m
}

// Acquire is [Store.Acquire].
func (m *Memory) Acquire(ctx context.Context, key, holder string, value []byte, terms Terms) (Entry, *Entry, error) {
	if err := CheckAcquire(key, holder, value, terms); err != nil {
		return Entry{}, nil, err
	}
	now, unlock, err := m.lock(ctx)
	if err != nil {
		return Entry{}, nil, err
	}
	defer unlock()
	m.sweep(now)
	var before *Entry
	if old := m.find(key, now); old != nil {
		entry := old.read(now)
		if entry.State == Held {
			return Entry{}, nil, &HeldError{Entry: entry}
		}
		before = &entry
	}
	k := &kept{entry: Entry{Key: key, Holder: holder, Token: NewToken(), AcquiredAt: now}}
	m.entries[key] = k
	m.prolong(k, now, value, terms)
	m.tell(key)
	return k.read(now), before, nil
}

// Renew is [Store.Renew].
func (m *Memory) Renew(ctx context.Context, key, token string, value []byte, terms Terms) (Entry, error) {
	if err := CheckRenew(key, value, terms); err != nil {
		return Entry{}, err
	}
	now, unlock, err := m.lock(ctx)
	if err != nil {
		return Entry{}, err
	}
	defer unlock()
	k := m.find(key, now)
	if k == nil || !k.heldUnder(token, now) {
		return Entry{}, ErrLost
	}
	if value == nil {
		value = k.entry.Value
	}
	m.prolong(k, now, value, terms)
	return k.read(now), nil
}

// Resign is [Store.Resign].
func (m *Memory) Resign(ctx context.Context, key, token string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	now, unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	k := m.find(key, now)
	if k == nil || !k.heldUnder(token, now) {
		return ErrLost
	}
	k.resigned = true
	k.vanishAt = now.Add(k.retention)
	m.revise(k)
	m.tell(key)
	return nil
}

// Delete is [Store.Delete].
func (m *Memory) Delete(ctx context.Context, key, token string, revision int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	now, unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	k := m.find(key, now)
	if k == nil {
		return ErrNotFound
	}
	if k.entry.Token != token || k.entry.Revision != revision {
		return ErrChanged
	}
	delete(m.entries, key)
	m.tell(key)
	return nil
}

// Get is [Store.Get].
func (m *Memory) Get(ctx context.Context, key string) (Entry, error) {
	if err := CheckKey(key); err != nil {
		return Entry{}, err
	}
	now, unlock, err := m.lock(ctx)
	if err != nil {
		return Entry{}, err
	}
	defer unlock()
	k := m.find(key, now)
	if k == nil {
		return Entry{}, ErrNotFound
	}
	return k.read(now), nil
}

// List is [Store.List]: what there is at the moment of the first item.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		entries, err := m.snapshot(ctx, prefix)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *Memory) snapshot(ctx context.Context, prefix string) ([]Entry, error) {
	now, unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var entries []Entry
	for key := range m.entries {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if k := m.find(key, now); k != nil {
			entries = append(entries, k.read(now))
		}
	}
	return entries, nil
}

// Watch is [Store.Watch].
func (m *Memory) Watch(ctx context.Context) (<-chan string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys := make(chan string, hints)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers[keys] = struct{}{}
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, keys)
		close(keys)
	})
	return keys, nil
}

// lock begins a call: what it does happens at the time returned.
func (m *Memory) lock(ctx context.Context) (now time.Time, unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, nil, err
	}
	m.mu.Lock()
	return m.now().UTC(), m.mu.Unlock, nil
}

// find returns what is kept under a key, nil where there is nothing or its retention is over.
func (m *Memory) find(key string, now time.Time) *kept {
	k := m.entries[key]
	if k == nil || now.Before(k.vanishAt) {
		return k
	}
	delete(m.entries, key)
	return nil
}

// sweep removes what nobody asks for any more: keys that name a process never come back.
func (m *Memory) sweep(now time.Time) {
	if now.Before(m.sweepAt) {
		return
	}
	m.sweepAt = now.Add(sweepEvery)
	for key := range m.entries {
		m.find(key, now)
	}
}

func (m *Memory) prolong(k *kept, now time.Time, value []byte, terms Terms) {
	k.entry.Value = bytes.Clone(value)
	k.entry.RenewedAt, k.entry.ExpiresAt = now, now.Add(terms.TTL)
	k.retention, k.vanishAt = terms.Retention, now.Add(terms.Retention)
	m.revise(k)
}

func (m *Memory) revise(k *kept) {
	m.revision++
	k.entry.Revision = m.revision
}

func (m *Memory) tell(key string) {
	for keys := range m.watchers {
		select {
		case keys <- key:
		default: // too slow to read
		}
	}
}

func (k *kept) heldUnder(token string, now time.Time) bool {
	return k.entry.Token == token && StateAt(now, k.entry.ExpiresAt, k.resigned) == Held
}

func (k *kept) read(now time.Time) Entry {
	e := k.entry
	e.Value = bytes.Clone(e.Value)
	e.State, e.ReadAt = StateAt(now, e.ExpiresAt, k.resigned), now
	return e
}
