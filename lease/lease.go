// Package lease is time-limited ownership of a name, kept in a store that several processes share.
//
// A [Store] grants a key to one holder at a time. Each acquisition has a token of its own, and whatever the holder does
// later (renew, resign) is compared with it: who was slow and lost the lease changes nothing of its successor's. Entries outlive
// their leases for a while, so that others can tell a holder that resigned from one that crashed.
//
//	terms := lease.Terms{TTL: 15 * time.Second, Retention: 10 * time.Minute}
//	sent := time.Now()
//	got, before, err := store.Acquire(ctx, "dispatcher:shop:orders", serverID, nil, terms)
//	if errors.Is(err, lease.ErrHeld) { … } // by somebody else, see [HeldError]
//	held := lease.Keep(ctx, store, got, sent, lease.Pace{Renew: 5 * time.Second, Terms: terms})
//	defer held.Resign(ctx)
//	<-held.Done() // from now on, somebody else may have it
//
// [Memory] is a store inside one process, redislease.Store one in Redis; leasetest.Run holds any other to the same.
//
// # What holds
//
// Times are the store's own: no clock of a host is compared with another. A [Hold] stops trusting itself a margin before
// its lease can run out, by the monotonic clock of its host and counted from before it asked.
//
// Whoever asks and gets no answer does not know the outcome. A renewal or resignation is asked for again. After an acquisition
// the key may be held, under a token that nobody renews: the entry returned beside the error has that token, so the asker can tell
// its own lease from another's in the [HeldError] that comes next, and keep it, or wait until it runs out.
//
// # What does not
//
// A lease alone does not keep two processes from acting at once: one that is frozen between looking at its lease and
// acting does not know that the lease ran out meanwhile. What is acted on must refuse whoever comes late, by a number that
// grows with each owner (an epoch); package dispatch takes it from its inbox. A store that loses its data grants
// again what is still held, and one whose clock is put forward ends leases early. The monotonic clock of most hosts stands still while
// they are suspended, and so does the trust in a lease.
package lease

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// State is what the store's clock makes of an entry.
type State string

// The states of an entry. A key without an entry has none.
const (
	Held     State = "held"     // the holder has it
	Resigned State = "resigned" // the holder gave it up
	Expired  State = "expired"  // the holder did not renew it in time
)

// StateAt is the state of an entry at a time of the store's clock.
func StateAt(now, expiresAt time.Time, resigned bool) State {
	switch {
	case resigned:
		return Resigned
	case now.Before(expiresAt):
		return Held
	}
	return Expired
}

// Terms are how long things last.
type Terms struct {
	// TTL is how long an acquisition or a renewal counts; at least a millisecond.
	TTL time.Duration
	// Retention is how long the entry stays readable after the last acquisition, renewal or resignation; at least TTL.
	Retention time.Duration
}

// Entry is what a store knows of a key. All times are by the store's clock.
type Entry struct {
	Key    string
	Holder string
	// Token identifies the acquisition. It is unique over all keys and times.
	Token string
	// Revision grows with every write of the key, also over its deletion.
	Revision int64
	State    State
	// Value is what the holder has to say, at most [MaxValue] bytes.
	Value []byte
	// AcquiredAt is when the acquisition was made, RenewedAt when it was last renewed (at first: acquired), ExpiresAt when
	// it runs out without another renewal.
	AcquiredAt, RenewedAt, ExpiresAt time.Time
	// ReadAt is the store's time at which this was read.
	ReadAt time.Time
}

// Age is how long ago the holder gave its last sign of life.
func (e Entry) Age() time.Duration { return e.ReadAt.Sub(e.RenewedAt) }

// Remaining is how long the lease still counts without a renewal; negative once it does not.
func (e Entry) Remaining() time.Duration { return e.ExpiresAt.Sub(e.ReadAt) }

// Bounds of what a store takes.
const (
	// MaxKey and MaxHolder are in bytes.
	MaxKey    = 256
	MaxHolder = 256
	// MaxValue is in bytes.
	MaxValue = 4096
)

// What a store answers.
var (
	// ErrHeld: somebody has it. The error is a [*HeldError].
	ErrHeld = errors.New("the lease is held by another")
	// ErrLost: the token is not, or no longer, that of a lease that is held.
	ErrLost = errors.New("the lease was lost")
	// ErrChanged: the entry is not the one that was read before.
	ErrChanged = errors.New("the entry was changed")
	// ErrNotFound: there is no entry of the key.
	ErrNotFound = errors.New("there is no such entry")
	// ErrMalformed: what is stored under the key is no entry. The error is a [*MalformedError].
	ErrMalformed = errors.New("the entry cannot be read")
	// ErrInvalid: a key, holder, value or term that no store takes.
	ErrInvalid = errors.New("invalid lease request")
)

// HeldError tells who has it.
type HeldError struct{ Entry Entry }

// Error names the holder.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %q for another %s", e.Entry.Key, e.Entry.Holder, e.Entry.Remaining().Round(time.Millisecond))
}

// Unwrap returns [ErrHeld].
func (*HeldError) Unwrap() error { return ErrHeld }

// MalformedError tells which entry cannot be read.
type MalformedError struct{ Key, Why string }

// Error names the key.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("entry %q cannot be read: %s", e.Key, e.Why)
}

// Unwrap returns [ErrMalformed].
func (*MalformedError) Unwrap() error { return ErrMalformed }

// Store keeps leases. Each call is atomic, judges by one clock, and is safe for concurrent use by any number of processes.
// An error that is none of this package's means that the outcome is not known.
type Store interface {
	// Acquire gives the key to holder when nobody holds it, with a new token. before is the entry that it replaced, nil where
	// there was none. It does not matter who the holder was: holding it already is [ErrHeld] too. What stands in its place and
	// cannot be read is replaced, with before nil. With an error that leaves the outcome unknown, got has the key, the
	// holder and the token that were tried, and nothing else.
	Acquire(ctx context.Context, key, holder string, value []byte, terms Terms) (got Entry, before *Entry, err error)
	// Renew prolongs a lease that is held under the token, and replaces its value; nil keeps it. [ErrLost] otherwise: one
	// that has run out is not renewed, even if nobody has taken it.
	Renew(ctx context.Context, key, token string, value []byte, terms Terms) (Entry, error)
	// Resign gives up a lease that is held under the token. Its entry stays readable until its retention ends. [ErrLost] otherwise.
	Resign(ctx context.Context, key, token string) error
	// Delete removes the entry, in whichever state, if it is still the one with that token and revision; [ErrChanged] if it is
	// another, [ErrNotFound] if there is none, [ErrMalformed] if nobody can tell.
	Delete(ctx context.Context, key, token string, revision int64) error
	// Get returns the entry of a key, [ErrNotFound] or [ErrMalformed].
	Get(ctx context.Context, key string) (Entry, error)
	// List returns the entries whose keys begin with prefix, each at least once if it was there the whole time, in no
	// order. An entry that cannot be read comes as a [*MalformedError] and the others follow; any other error is the last item.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	// Watch returns a channel of keys that were just acquired, resigned or deleted. It is a hint, which may be late or missing;
	// the channel is closed when ctx ends. Whoever is too slow to read misses some.
	Watch(ctx context.Context) (<-chan string, error)
}
