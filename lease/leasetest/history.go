package leasetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// The operations in a history.
const (
	acquire = "acquire"
	renew   = "renew"
	resign  = "resign"
	remove  = "delete"
	get     = "get"
	list    = "list" // one call for each entry listed
)

// Call is one call of a store with its result.
type Call struct {
	Op       string // acquire, renew, resign, delete, get, or list for each entry listed
	Key      string
	Holder   string // acquire
	Token    string // of the request
	Revision int64  // delete
	Value    []byte // acquire, renew
	Lifetime lease.Lifetime
	// Start and End are times of one monotonic clock, as durations since an arbitrary moment.
	Start, End time.Duration
	// Got is the entry returned, also in a [lease.HeldError].
	Got    *lease.Entry
	Before *lease.Entry
	Err    error
}

// String formats the call as one line.
func (c Call) String() string {
	text := fmt.Sprintf("%s…%s %s %s", c.Start, c.End, c.Op, c.Key)
	if c.Op == acquire {
		text += " for " + c.Holder
	}
	if c.Token != "" {
		text += " under " + c.Token
	}
	if c.Op == remove {
		text += fmt.Sprintf(" revision %d", c.Revision)
	}
	if c.Got != nil {
		text += fmt.Sprintf(" → %s %s revision %d until %s at %s", c.Got.State, c.Got.Token, c.Got.Revision,
			c.Got.ExpiresAt.Format(clockFormat), c.Got.ReadAt.Format(clockFormat))
	}
	if c.Err != nil {
		text += fmt.Sprintf(" → %v", c.Err)
	}
	return text
}

const clockFormat = "15:04:05.000000"

// unknown reports whether the outcome of the call is unknown.
func (c Call) unknown() bool {
	if c.Err == nil {
		return false
	}
	known := []error{lease.ErrHeld, lease.ErrLost, lease.ErrChanged, lease.ErrNotFound, lease.ErrMalformed,
		lease.ErrInvalid}
	return !slices.ContainsFunc(known, func(e error) bool { return errors.Is(c.Err, e) })
}

// Recorder is a store that records the calls of another store.
type Recorder struct {
	store lease.Store
	began time.Time

	mu    sync.Mutex
	calls []Call
}

var _ lease.Store = (*Recorder)(nil)

// NewRecorder returns a store that records its calls of another store.
func NewRecorder(store lease.Store) *Recorder { return &Recorder{store: store, began: time.Now()} }

// Calls returns the calls so far.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *Recorder) now() time.Duration { return time.Since(r.began) }

func (r *Recorder) add(c Call, got *lease.Entry, err error) {
	c.End, c.Err = r.now(), err
	var held *lease.HeldError
	switch {
	case err == nil:
		c.Got = got
	case errors.As(err, &held):
		c.Got = &held.Entry
	case c.Op == acquire && got != nil:
		c.Token = got.Token // of the attempt
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// Acquire records [lease.Store.Acquire].
func (r *Recorder) Acquire(ctx context.Context, key, holder string, value []byte,
	lifetime lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	c := Call{Op: acquire, Key: key, Holder: holder, Value: value, Lifetime: lifetime, Start: r.now()}
	got, before, err := r.store.Acquire(ctx, key, holder, value, lifetime)
	c.Before = before
	r.add(c, &got, err)
	return got, before, err
}

// Renew records [lease.Store.Renew].
func (r *Recorder) Renew(ctx context.Context, key, token string, value []byte,
	lifetime lease.Lifetime) (lease.Entry, error) {
	c := Call{Op: renew, Key: key, Token: token, Value: value, Lifetime: lifetime, Start: r.now()}
	got, err := r.store.Renew(ctx, key, token, value, lifetime)
	r.add(c, &got, err)
	return got, err
}

// Resign records [lease.Store.Resign].
func (r *Recorder) Resign(ctx context.Context, key, token string) error {
	c := Call{Op: resign, Key: key, Token: token, Start: r.now()}
	err := r.store.Resign(ctx, key, token)
	r.add(c, nil, err)
	return err
}

// Delete records [lease.Store.Delete].
func (r *Recorder) Delete(ctx context.Context, key, token string, revision int64) error {
	c := Call{Op: remove, Key: key, Token: token, Revision: revision, Start: r.now()}
	err := r.store.Delete(ctx, key, token, revision)
	r.add(c, nil, err)
	return err
}

// Get records [lease.Store.Get].
func (r *Recorder) Get(ctx context.Context, key string) (lease.Entry, error) {
	c := Call{Op: get, Key: key, Start: r.now()}
	got, err := r.store.Get(ctx, key)
	r.add(c, &got, err)
	return got, err
}

// List records [lease.Store.List], each entry as a separate call.
func (r *Recorder) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		start := r.now()
		for e, err := range r.store.List(ctx, prefix) {
			r.add(Call{Op: list, Key: e.Key, Start: start}, &e, err)
			if !yield(e, err) {
				return
			}
		}
	}
}

// Watch is [lease.Store.Watch]. It is not recorded, since hints have no guarantee.
func (r *Recorder) Watch(ctx context.Context) (<-chan string, error) { return r.store.Watch(ctx) }
