package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Why a [Hold] ended, besides [ErrLost] and the end of its context.
var (
	// ErrUntrusted: no renewal was answered in time. The store may have given the key to somebody else by now.
	ErrUntrusted = errors.New("the lease was not renewed in time")
	// ErrResigned: its holder gave it up.
	ErrResigned = errors.New("the lease was resigned")
)

// DefaultMargin is how long before its end a lease is no longer trusted, if [Pace] does not say otherwise.
const DefaultMargin = time.Second

// Pace is how a lease is kept.
type Pace struct {
	// Renew is the time between renewals, at most: a tenth of it is left to chance, so that the leases of a process are not
	// all renewed at one moment, and what is trusted for less than twice as long is renewed sooner.
	Renew time.Duration
	// Margin is how long before its end the lease is no longer trusted; [DefaultMargin] if 0. It covers clocks that run at
	// different speeds, and the time between looking at the lease and acting.
	Margin time.Duration
	// Terms are those of each renewal.
	Terms Terms
	// Value, where set, is asked for the value of each renewal, from one goroutine. Otherwise the value stays.
	Value func() []byte
}

// Validate says why nothing can be kept at this pace: an error that is [ErrInvalid].
func (p Pace) Validate() error {
	var problems []error
	if err := checkContent(nil, p.Terms); err != nil {
		problems = append(problems, err)
	}
	if p.Margin < 0 {
		problems = append(problems, fmt.Errorf("%w: the margin of %s is negative", ErrInvalid, p.Margin))
	}
	if trusted := p.Terms.TTL - p.margin(); p.Renew <= 0 || p.Renew >= trusted {
		problems = append(problems, fmt.Errorf("%w: a renewal every %s does not keep what is trusted for %s (TTL %s less a margin of %s)",
			ErrInvalid, p.Renew, trusted, p.Terms.TTL, p.margin()))
	}
	return errors.Join(problems...)
}

func (p Pace) margin() time.Duration {
	if p.Margin == 0 {
		return DefaultMargin
	}
	return p.Margin
}

// Hold is a lease that is being renewed, from [Keep] until it ends: by [Hold.Resign], because it was lost or may have been, or with its
// context. Once ended it stays so. Its methods are safe for concurrent use.
type Hold struct {
	store  Store
	pace   Pace
	key    string
	token  string
	cancel context.CancelFunc // ends renewing
	joined chan struct{}      // closed when nothing is renewed any more
	done   chan struct{}

	mu       sync.Mutex
	entry    Entry
	deadline time.Time   // until when the lease is trusted, by the local monotonic clock
	timer    *time.Timer // calls expire then
	failure  error       // of the last renewal
	err      error       // why it ended
}

// Keep renews what was acquired until ctx ends or the lease does. sent is [time.Now] from just before the acquisition was asked for:
// trust is counted from there, since the store's time may have passed all the while the answer took. It also takes what a
// [HeldError] shows, when the token in it is the caller's own, with the time from before that was asked for.
//
// A pace that is not valid ends it at once. Whoever keeps a lease calls [Hold.Resign] in the end; the end of ctx stops the renewals
// but leaves the lease to run out.
func Keep(ctx context.Context, store Store, got Entry, sent time.Time, pace Pace) *Hold {
	ctx, cancel := context.WithCancel(ctx)
	h := &Hold{
		store: store, pace: pace, key: got.Key, token: got.Token, cancel: cancel,
		joined: make(chan struct{}), done: make(chan struct{}), entry: got,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = h.trustedUntil(sent, got)
	h.timer = time.AfterFunc(time.Until(h.deadline), h.expire)
	if err := pace.Validate(); err != nil {
		h.end(fmt.Errorf("keep lease %q: %w", h.key, err))
	}
	// Not by the goroutine that renews: a store that does not heed its context would delay it.
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.end(fmt.Errorf("keep lease %q: %w", h.key, context.Cause(ctx)))
	})
	go h.run(ctx)
	return h
}

// Done is closed when the lease may no longer be trusted. What the holder does after that, somebody else may be doing too.
func (h *Hold) Done() <-chan struct{} { return h.done }

// Err says why the lease ended: [ErrLost], [ErrUntrusted] with the cause, [ErrResigned], or the context's; nil before that.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Valid tells whether the lease is trusted at this moment. A process that was frozen may see it false before Done is closed.
func (h *Hold) Valid() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trusted()
}

// Entry is what the store answered last.
func (h *Hold) Entry() Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entry
}

// Resign ends the lease and gives it up in the store, also where it was lost or is no longer trusted: a renewal may have
// reached the store and its answer not the holder. It returns after renewing has stopped. nil means that this holder has it no
// more, be it that somebody else does; with any other error it lasts until it runs out, or the next call.
func (h *Hold) Resign(ctx context.Context) error {
	h.mu.Lock()
	h.end(ErrResigned)
	h.mu.Unlock()
	select {
	case <-h.joined:
	case <-ctx.Done():
		return fmt.Errorf("resign lease %q: a renewal has not ended: %w", h.key, context.Cause(ctx))
	}
	if err := h.store.Resign(ctx, h.key, h.token); err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("resign lease %q: %w", h.key, err)
	}
	return nil
}

// run renews until ctx ends.
func (h *Hold) run(ctx context.Context) {
	defer close(h.joined)
	failures := 0
	for ctx.Err() == nil {
		wait := time.NewTimer(h.next(failures))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		if h.renew(ctx) {
			failures = 0
		} else {
			failures++
		}
	}
}

// next is how long to wait for the next renewal, after so many that failed.
func (h *Hold) next(failures int) time.Duration {
	if failures > 0 {
		wait := h.pace.Renew / 16 << min(failures-1, 2)
		return wait/2 + rand.N(wait/2+1) //nolint:gosec // spreads load, guards nothing
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := h.pace.Renew - rand.N(h.pace.Renew/10+1) //nolint:gosec // spreads load, guards nothing
	return min(wait, time.Until(h.deadline)/2)
}

// renew asks the store once and tells whether it answered.
func (h *Hold) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, h.pace.Renew)
	defer cancel()
	var value []byte
	if h.pace.Value != nil {
		value = h.pace.Value()
	}
	sent := time.Now()
	entry, err := h.store.Renew(ctx, h.key, h.token, value, h.pace.Terms)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, ErrLost):
		h.end(fmt.Errorf("renew lease %q: %w", h.key, err))
	case err != nil:
		h.failure = err
	case !h.trusted():
		// Too late, although the store prolonged it: who saw it invalid once must not find it valid again.
		h.failure = nil
		h.end(h.untrusted())
	default:
		h.entry, h.failure = entry, nil
		h.deadline = h.trustedUntil(sent, entry)
		h.timer.Reset(time.Until(h.deadline))
	}
	return err == nil
}

func (h *Hold) trustedUntil(sent time.Time, e Entry) time.Time {
	return sent.Add(e.Remaining() - h.pace.margin())
}

// expire is called by the timer, which may fire while a renewal moves the deadline.
func (h *Hold) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := time.Until(h.deadline); left > 0 {
		h.timer.Reset(left)
		return
	}
	h.end(h.untrusted())
}

func (h *Hold) untrusted() error {
	if h.failure != nil {
		return fmt.Errorf("renew lease %q: %w: %w", h.key, ErrUntrusted, h.failure)
	}
	return fmt.Errorf("renew lease %q: %w", h.key, ErrUntrusted)
}

func (h *Hold) trusted() bool { return h.err == nil && time.Now().Before(h.deadline) }

// end is called with the lock held. The first reason counts.
func (h *Hold) end(why error) {
	if h.err != nil {
		return
	}
	h.err = why
	h.timer.Stop()
	h.cancel()
	close(h.done)
}
