package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Reasons why a [Hold] ended, besides [ErrLost] and the end of its context.
var (
	// ErrUntrusted: no renewal was answered in time. Another holder may have acquired the key by now.
	ErrUntrusted = errors.New("the lease was not renewed in time")
	// ErrResigned: the holder gave it up.
	ErrResigned = errors.New("the lease was resigned")
)

// DefaultMargin is the default of KeepOptions.Margin.
const DefaultMargin = time.Second

// ResignGrace is how long [Hold.Resign] continues after its context has ended.
const ResignGrace = 2 * time.Second

// KeepOptions configure [Keep].
type KeepOptions struct {
	// Interval is the maximum time between renewals. It is shortened by up to a tenth at random, so that the leases of a
	// process are not all renewed at the same time, and further where the lease is trusted for less than twice as long.
	Interval time.Duration
	// Margin is how long before the end of the lease the [Hold] ends; [DefaultMargin] if 0. It covers clocks that run at
	// different speeds, and the time between a check of the lease and the action that depends on it.
	Margin time.Duration
	// Lifetime is that of each renewal.
	Lifetime Lifetime
	// Value, where set, returns the value of each renewal. It is called from one goroutine. If nil, the value does not
	// change.
	Value func() []byte
}

// Validate returns an error that is [ErrInvalid] and contains every violation of the options.
func (p KeepOptions) Validate() error {
	var violations []error
	if err := checkContent(nil, p.Lifetime); err != nil {
		violations = append(violations, err)
	}
	if p.Margin < 0 {
		violations = append(violations, fmt.Errorf("%w: the margin of %s is negative", ErrInvalid, p.Margin))
	}
	if trustedFor := p.Lifetime.TTL - p.margin(); p.Interval <= 0 || p.Interval >= trustedFor {
		violations = append(violations,
			fmt.Errorf("%w: a renewal every %s does not keep a lease that is trusted for %s (TTL %s less a margin of %s)",
				ErrInvalid, p.Interval, trustedFor, p.Lifetime.TTL, p.margin()))
	}
	return errors.Join(violations...)
}

func (p KeepOptions) margin() time.Duration {
	if p.Margin == 0 {
		return DefaultMargin
	}
	return p.Margin
}

// Hold is a lease that is being renewed, from [Keep] until it ends: by [Hold.Resign], because the lease was lost or may
// have been, or with its context. A Hold that has ended never becomes valid again. Its methods are safe for concurrent
// use.
type Hold struct {
	store   Store
	options KeepOptions
	key     string
	token   string
	cancel  context.CancelFunc // ends the renewals
	stopped chan struct{}      // closed when the renewals have ended
	done    chan struct{}

	mu       sync.Mutex
	entry    Entry
	deadline time.Time   // when the lease is no longer trusted, by the local monotonic clock
	timer    *time.Timer // calls expire at the deadline
	renewErr error       // error of the last renewal
	err      error       // why it ended
}

// Keep renews an acquired lease until ctx or the lease ends. sent is [time.Now] from just before the acquisition was
// requested: the lease is trusted from then on, since the answer may have been sent long after the store granted it.
// got may also be the entry of a [HeldError] with the caller's own token, with the time from before that request.
//
// With invalid options the Hold ends at once. The caller must call [Hold.Resign]: the end of ctx stops the renewals,
// but the lease stays in force until it runs out.
func Keep(ctx context.Context, store Store, got Entry, sent time.Time, options KeepOptions) *Hold {
	ctx, cancel := context.WithCancel(ctx)
	h := &Hold{
		store: store, options: options, key: got.Key, token: got.Token, cancel: cancel,
		stopped: make(chan struct{}), done: make(chan struct{}), entry: got,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = h.trustedUntil(sent, got)
	h.timer = time.AfterFunc(time.Until(h.deadline), h.expire)
	if err := options.Validate(); err != nil {
		h.end(fmt.Errorf("keep lease %q: %w", h.key, err))
	}
	// Not by the goroutine that renews, which a store that ignores its context would delay.
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.end(fmt.Errorf("keep lease %q: %w", h.key, context.Cause(ctx)))
	})
	go h.run(ctx)
	return h
}

// Done returns a channel that is closed when the lease is no longer trusted. After that, another process may hold it.
func (h *Hold) Done() <-chan struct{} { return h.done }

// Err returns why the Hold ended: [ErrLost], [ErrUntrusted] with the cause, [ErrResigned], or the error of the context;
// nil before that.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Valid reports whether the lease is trusted now. In a process that was frozen it may be false before Done is closed.
func (h *Hold) Valid() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trusted()
}

// Entry returns the last answer of the store.
func (h *Hold) Entry() Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entry
}

// Resign ends the Hold and gives up the lease in the store, also if it was lost or is no longer trusted: a renewal may
// have reached the store without its answer reaching the holder. It returns after the renewals have ended. nil means
// that this holder no longer has the lease, whether or not another one has it. With an error the lease may stay in
// force until it runs out; Resign can be called again.
//
// It also works with a context that has ended, such as that of the program after an interrupt: Resign returns at the
// latest [ResignGrace] after the end of ctx, or after the call if ctx has ended before.
func (h *Hold) Resign(ctx context.Context) error {
	ctx, cancel := withGrace(ctx)
	defer cancel()
	h.mu.Lock()
	h.end(ErrResigned)
	h.mu.Unlock()
	select {
	case <-h.stopped:
	case <-ctx.Done():
		return fmt.Errorf("resign lease %q: a renewal has not ended: %w", h.key, context.Cause(ctx))
	}
	if err := h.store.Resign(ctx, h.key, h.token); err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("resign lease %q: %w", h.key, err)
	}
	return nil
}

// withGrace returns a context with the values of ctx that ends with cancel, or ResignGrace after ctx, with the cause of
// ctx.
func withGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	graced, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(ResignGrace, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(graced, func() { timer.Stop() })
	})
	return graced, func() {
		stop()
		cancel(nil)
	}
}

// run renews until ctx ends.
func (h *Hold) run(ctx context.Context) {
	defer close(h.stopped)
	failures := 0
	for loop.Sleep(ctx, h.next(failures)) {
		if h.renew(ctx) {
			failures = 0
		} else {
			failures++
		}
	}
}

// next returns how long to wait before the next renewal, after a number of consecutive failures.
func (h *Hold) next(failures int) time.Duration {
	if failures > 0 {
		return backoff.Jitter(backoff.Delay(h.options.Interval/16, h.options.Interval/4, failures))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := h.options.Interval - rand.N(h.options.Interval/10+1) //nolint:gosec // spreads load, guards nothing
	return min(wait, time.Until(h.deadline)/2)
}

// renew sends one renewal and reports whether it succeeded.
func (h *Hold) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, h.options.Interval)
	defer cancel()
	var value []byte
	if h.options.Value != nil {
		value = h.options.Value()
	}
	sent := time.Now()
	entry, err := h.store.Renew(ctx, h.key, h.token, value, h.options.Lifetime)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, ErrLost):
		h.end(fmt.Errorf("renew lease %q: %w", h.key, err))
	case err != nil:
		h.renewErr = err
	case !h.trusted():
		// Too late, although the store has renewed the lease: a Hold must not become valid again after Valid returned false.
		h.renewErr = nil
		h.end(h.untrusted())
	default:
		h.entry, h.renewErr = entry, nil
		h.deadline = h.trustedUntil(sent, entry)
		h.timer.Reset(time.Until(h.deadline))
	}
	return err == nil
}

func (h *Hold) trustedUntil(sent time.Time, e Entry) time.Time {
	return sent.Add(e.Remaining() - h.options.margin())
}

// expire is called by the timer, which may fire while a renewal changes the deadline.
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
	if h.renewErr != nil {
		return fmt.Errorf("renew lease %q: %w: %w", h.key, ErrUntrusted, h.renewErr)
	}
	return fmt.Errorf("renew lease %q: %w", h.key, ErrUntrusted)
}

func (h *Hold) trusted() bool { return h.err == nil && time.Now().Before(h.deadline) }

// end ends the Hold, unless it has ended already. The lock is held.

func (h *Hold) end(reason error) {
	if h.err != nil {
		return
	}
	h.err = reason
	h.timer.Stop()
	h.cancel()
	close(h.done)
}
