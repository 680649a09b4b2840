package lease

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"sync"
	"time"
)

// Memory is a [Store] in the memory of one process, for tests and for platforms of a single process.
type Memory struct {
	now func() time.Time

	mu       sync.Mutex
	entries  map[string]*record
	revision int64     // of the last write of any key
	sweepAt  time.Time // when entries past their retention are removed next
	watchers map[chan string]struct{}
}

// record is an entry with internal fields.
type record struct {
	entry     Entry // State and ReadAt are set on reading
	resigned  bool
	retention time.Duration
	deleteAt  time.Time
}

// MemoryOption configures a [Memory].
type MemoryOption func(*Memory)

// WithClock sets the store's clock; the default is [time.Now]. now is called while the store is locked.
func WithClock(now func() time.Time) MemoryOption {
	return func(m *Memory) { m.now = now }
}

// sweepEvery is how often entries past their retention are removed, hintBuffer the number of keys buffered for a slow
// watcher.
const (
	sweepEvery = time.Minute
	hintBuffer = 256
)

// NewMemory returns an empty store.
func NewMemory(options ...MemoryOption) *Memory {
	m := &Memory{now: time.Now, entries: map[string]*record{}, watchers: map[chan string]struct{}{}}
	for _, o := range options {
		o(m)
	}
	return m
}

// Acquire implements [Store.Acquire].
func (m *Memory) Acquire(ctx context.Context, key, holder string, value []byte,
	lifetime Lifetime) (Entry, *Entry, error) {
	if err := CheckAcquire(key, holder, value, lifetime); err != nil {
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
	k := &record{entry: Entry{Key: key, Holder: holder, Token: NewToken(), AcquiredAt: now}}
	m.entries[key] = k
	m.renewRecord(k, now, value, lifetime)
	m.notify(key)
	return k.read(now), before, nil
}

// Renew implements [Store.Renew].
func (m *Memory) Renew(ctx context.Context, key, token string, value []byte, lifetime Lifetime) (Entry, error) {
	if err := CheckRenew(key, value, lifetime); err != nil {
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
	m.renewRecord(k, now, value, lifetime)
	return k.read(now), nil
}

// Resign implements [Store.Resign].
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
	k.deleteAt = now.Add(k.retention)
	m.bumpRevision(k)
	m.notify(key)
	return nil
}

// Delete implements [Store.Delete].
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
	m.notify(key)
	return nil
}

// Get implements [Store.Get].
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

// List implements [Store.List]. The entries are those at the time of the first item.
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

// Watch implements [Store.Watch].
func (m *Memory) Watch(ctx context.Context) (<-chan string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys := make(chan string, hintBuffer)
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

// lock locks the store for a call, and returns the time of that call.
func (m *Memory) lock(ctx context.Context) (now time.Time, unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, nil, err
	}
	m.mu.Lock()
	return m.now().UTC(), m.mu.Unlock, nil
}

// find returns the record of a key; nil if there is none or its retention is over.
func (m *Memory) find(key string, now time.Time) *record {
	k := m.entries[key]
	if k == nil || now.Before(k.deleteAt) {
		return k
	}
	delete(m.entries, key)
	return nil
}

// sweep removes records past their retention: keys that contain the ID of a process are never used again.
func (m *Memory) sweep(now time.Time) {
	if now.Before(m.sweepAt) {
		return
	}
	m.sweepAt = now.Add(sweepEvery)
	for key := range m.entries {
		m.find(key, now)
	}
}

func (m *Memory) renewRecord(k *record, now time.Time, value []byte, lifetime Lifetime) {
	k.entry.Value = bytes.Clone(value)
	k.entry.RenewedAt, k.entry.ExpiresAt = now, now.Add(lifetime.TTL)
	k.retention, k.deleteAt = lifetime.Retention, now.Add(lifetime.Retention)
	m.bumpRevision(k)
}

func (m *Memory) bumpRevision(k *record) {
	m.revision++
	k.entry.Revision = m.revision
}

func (m *Memory) notify(key string) {
	for keys := range m.watchers {
		select {
		case keys <- key:
		default: // too slow to read
		}
	}
}

func (k *record) heldUnder(token string, now time.Time) bool {
	return k.entry.Token == token && StateAt(now, k.entry.ExpiresAt, k.resigned) == Held
}

func (k *record) read(now time.Time) Entry {
	e := k.entry
	e.Value = bytes.Clone(e.Value)
	e.State, e.ReadAt = StateAt(now, e.ExpiresAt, k.resigned), now
	return e
}
