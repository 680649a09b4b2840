// Package lease provides time-limited ownership of a name, in a store that several processes share.
//
// A [Store] grants a key to one holder at a time. Each acquisition has its own token, which every later request of the
// holder (renew, resign) must present: a slow holder that has lost its lease cannot change its successor's. Entries are
// kept for a while after their leases end, so that other processes can distinguish a holder that resigned from one that
// crashed.
//
//	lifetime := lease.Lifetime{TTL: 15 * time.Second, Retention: 10 * time.Minute}
//	sent := time.Now()
//	got, before, err := store.Acquire(ctx, "dispatcher:shop:orders", serverID, nil, lifetime)
//	if errors.Is(err, lease.ErrHeld) { … } // by another holder, see [HeldError]
//	hold := lease.Keep(ctx, store, got, sent, lease.KeepOptions{Interval: 5 * time.Second, Lifetime: lifetime})
//	defer hold.Resign(ctx) // also after an interrupt has canceled ctx
//	<-hold.Done() // from now on, another process may hold the lease
//
// [Memory] is a store inside one process, redislease.Store one in Redis. leasetest.Run tests any other implementation.
//
// # Guarantees
//
// All times are by the store's clock: clocks of different hosts are never compared. A [Hold] ends a margin before its
// lease can run out, by the monotonic clock of its host and counted from before the request was sent.
//
// A request without an answer has an unknown outcome. Renewals and resignations can be repeated. After an acquisition
// the key may be held, under a token that is not being renewed: the entry returned with the error has that token, so
// the caller can recognise its own lease in the next [HeldError], and keep it, or wait until it runs out.
//
// # Limits
//
// A lease alone does not prevent two processes from acting at the same time: a process that is frozen between checking
// its lease and acting does not notice that the lease has run out meanwhile. The resource that it acts on must reject
// requests of an earlier owner, by a number that grows with each owner (an epoch, or fencing token); package dispatch
// takes it from its inbox. A store that loses its data grants again what is still held, and putting its clock forward
// ends leases early. The monotonic clock of most hosts stops while they are suspended, so a Hold does not end during
// that time.
package lease

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// State is the state of an entry, by the store's clock.
type State string

// The states of an entry. A key without an entry has none.
const (
	Held     State = "held"     // the lease is in force
	Resigned State = "resigned" // the holder gave it up
	Expired  State = "expired"  // the holder did not renew it in time
)

// StateAt returns the state of an entry at a time of the store's clock.
func StateAt(now, expiresAt time.Time, resigned bool) State {
	switch {
	case resigned:
		return Resigned
	case now.Before(expiresAt):
		return Held
	}
	return Expired
}

// Lifetime determines how long a lease and its entry last.
type Lifetime struct {
	// TTL is how long the lease is in force after an acquisition or a renewal; at least a millisecond.
	TTL time.Duration
	// Retention is how long the entry is kept after the last acquisition, renewal or resignation; at least TTL.
	Retention time.Duration
}

// Entry is the entry of a key in a store. All times are by the store's clock.
type Entry struct {
	Key    string
	Holder string
	// Token identifies the acquisition. It is unique over all keys and times.
	Token string
	// Revision grows with every write of the key, also after its deletion.
	Revision int64
	State    State
	// Value is data of the holder, at most [MaxValue] bytes.
	Value []byte
	// AcquiredAt is when the lease was acquired, RenewedAt when it was last renewed (at first: acquired), ExpiresAt when
	// it runs out without another renewal.
	AcquiredAt, RenewedAt, ExpiresAt time.Time
	// ReadAt is the time at which the entry was read.
	ReadAt time.Time
}

// Age returns the time since the last renewal.
func (e Entry) Age() time.Duration { return e.ReadAt.Sub(e.RenewedAt) }

// Remaining returns how long the lease is still in force without a renewal; negative once it has run out.
func (e Entry) Remaining() time.Duration { return e.ExpiresAt.Sub(e.ReadAt) }

// Limits of requests.
const (
	// MaxKey and MaxHolder are in bytes.
	MaxKey    = 256
	MaxHolder = 256
	// MaxValue is in bytes.
	MaxValue = 4096
)

// Errors of a store.
var (
	// ErrHeld: the lease is in force. The error is a [*HeldError].
	ErrHeld = errors.New("the lease is held by another holder")
	// ErrLost: the token is not, or no longer, that of a lease in force.
	ErrLost = errors.New("the lease was lost")
	// ErrChanged: the entry is not the one that was read before.
	ErrChanged = errors.New("the entry has changed")
	// ErrNotFound: the key has no entry.
	ErrNotFound = errors.New("no such entry")
	// ErrMalformed: what is stored under the key is no entry. The error is a [*MalformedError].
	ErrMalformed = errors.New("the entry cannot be read")
	// ErrInvalid: the key, holder, value or lifetime is invalid.
	ErrInvalid = errors.New("invalid lease request")
)

// HeldError is the error of an acquisition of a lease that is in force. Entry is its entry.
type HeldError struct{ Entry Entry }

// Error names the holder and the remaining time.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %q for another %s", e.Entry.Key, e.Entry.Holder,
		e.Entry.Remaining().Round(time.Millisecond))
}

// Unwrap returns [ErrHeld].
func (*HeldError) Unwrap() error { return ErrHeld }

// MalformedError is the error of an entry that cannot be read, and why.
type MalformedError struct{ Key, Reason string }

// Error names the key.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("entry %q cannot be read: %s", e.Key, e.Reason)
}

// Unwrap returns [ErrMalformed].
func (*MalformedError) Unwrap() error { return ErrMalformed }

// Store stores leases. Each call is atomic, uses one clock, and is safe for concurrent use by any number of processes.
// An error that is none of this package's means that the outcome is unknown.
type Store interface {
	// Acquire grants the key to holder, with a new token, if no lease of it is in force; [ErrHeld] otherwise, also if the
	// holder is the same. before is the entry that was replaced, nil if there was none. A malformed entry is replaced,
	// with before nil. With an error that leaves the outcome unknown, got has only the key, the holder and the token of
	// the attempt.
	Acquire(ctx context.Context, key, holder string, value []byte, lifetime Lifetime) (got Entry, before *Entry, err error)
	// Renew extends the lease in force with that token, and replaces its value; nil keeps the value. [ErrLost] otherwise:
	// a lease that has run out cannot be renewed, even if it was not acquired again.
	Renew(ctx context.Context, key, token string, value []byte, lifetime Lifetime) (Entry, error)
	// Resign gives up the lease in force with that token. Its entry is kept until its retention ends. [ErrLost] otherwise.
	Resign(ctx context.Context, key, token string) error
	// Delete removes the entry, in any state, if it still has that token and revision; [ErrChanged] if it has others,
	// [ErrNotFound] if there is none, [ErrMalformed] if it cannot be read.
	Delete(ctx context.Context, key, token string, revision int64) error
	// Get returns the entry of a key, [ErrNotFound] or [ErrMalformed].
	Get(ctx context.Context, key string) (Entry, error)
	// List returns the entries whose keys begin with prefix, in no order, each at least once if it existed during the
	// whole call. An entry that cannot be read is a [*MalformedError], after which the others follow; any other error is
	// the last item.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	// Watch returns a channel of keys that were just acquired, resigned or deleted. Keys are hints, which may be late or
	// missing: a slow reader misses some. The channel is closed when ctx ends.
	Watch(ctx context.Context) (<-chan string, error)
}
