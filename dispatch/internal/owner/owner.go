// Package owner is the loop in which a process acquires a dispatcher, keeps it, and resigns it.
//
//	wait until it may own → acquire the lease → observe → fence in the inbox → decide → start, adopt or replace → keep → resign
//
// The loop acts only while it trusts its lease. If it acts too late all the same, because the process was frozen in
// between, the dispatcher and the inbox reject the action by its epoch and by the ID of the run that it observed.
package owner

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/lease"
)

// Temporal is the part of Temporal that the loop uses; its errors are those of package remote.
type Temporal interface {
	Describe(ctx context.Context, name inbox.Name) (*wire.Execution, error)
	Start(ctx context.Context, name inbox.Name, owner inbox.Owner,
		workers []dispatchtype.RegisteredWorker) (runID string, err error)
	Adopt(ctx context.Context, name inbox.Name, runID string, owner inbox.Owner) (dispatchtype.State, error)
	// Detach lets any worker execute the next workflow task, at once.
	Detach(ctx context.Context, name inbox.Name)
	// Ask returns nil if the run answers and has this owner.
	Ask(ctx context.Context, name inbox.Name, runID string, owner inbox.Owner) error
	Terminate(ctx context.Context, name inbox.Name, runID, reason string) error
	Ring(ctx context.Context, name inbox.Name) error
}

// Inbox is the part of the inbox that the loop uses.
type Inbox interface {
	Fence(ctx context.Context, name inbox.Name, holder string, above int64) (inbox.Owner, error)
	Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error)
}

// Observer receives the events of the loop. Its methods must not block.
type Observer interface {
	// Joined: the dispatcher has another owner, and this process serves it.
	Joined(name inbox.Name)
	// Changed: the dispatcher has a new owner. gap is the time without an owner: since the last renewal of the previous
	// owner if its lease expired, since the acquisition of the lease if it was resigned or no owner is known, and since
	// the check that noticed it if an owner replaces its own dispatcher.
	Changed(c dispatchtype.OwnerChange, gap time.Duration)
	// Failed: an attempt to own the dispatcher failed and will be repeated.
	Failed(name inbox.Name, err error)
	// Terminated: a run was terminated, or with an error could not be.
	Terminated(t dispatchtype.Termination, err error)
	// Foreign: a foreign workflow has the dispatcher's ID, so no process can own it. It is reported at every attempt.
	Foreign(f dispatchtype.ForeignWorkflow)
	// NotForeign: the dispatcher has an owner, so no foreign workflow has its ID.
	NotForeign(name inbox.Name)
	// Active: this process owns the dispatcher, or no longer does.
	Active(name inbox.Name, owned bool)
}

// Process is shared by the loops of one process.
type Process struct {
	ServerID string
	Leases   lease.Store
	Inbox    Inbox
	Temporal Temporal
	Timing   dispatchtype.Timing
	// MayOwn waits until the process may own a dispatcher, or ctx ends. A process that cannot reach Temporal, or does not
	// poll the task queue, leaves the lease to others.
	MayOwn func(ctx context.Context, name inbox.Name) error
	// StoreFailed reports whether the lease store failed within that time: an expired lease then proves no crash.
	StoreFailed func(within time.Duration) bool
	// Workers returns the initial workers of a dispatcher that is started.
	Workers func(name inbox.Name) []dispatchtype.RegisteredWorker
	// Pace limits the rate of acquisitions. Slots limits how many loops take a dispatcher at the same time.
	Pace     *rate.Limiter
	Slots    chan struct{}
	Observer Observer
	Log      *slog.Logger
}

const (
	// acquireSpread is the random delay before an attempt to acquire a lease that has become free, so that processes do
	// not all try at once.
	acquireSpread = 100 * time.Millisecond
	// backoffFirst and backoffMost are the first and the longest pause after a failed attempt.
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 15 * time.Second
	// handoverPause is how long a process that handed over does not acquire the lease again.
	handoverPause = 3 * time.Second
	// resignTimeout bounds a resignation; without it the lease expires by itself.
	resignTimeout = 3 * time.Second
	// finishTimeout is how long a process that stops continues to take a dispatcher once it has begun. It is longer than
	// the timeout of a lost workflow task of the dispatcher.
	finishTimeout = 5 * time.Second
	// storeTimeout bounds requests to the lease store and the inbox.
	storeTimeout = 5 * time.Second
)

// Ownership is a dispatcher that this process owns.
type Ownership struct {
	Name  inbox.Name
	Owner inbox.Owner
	// RunID is the run ID that was observed last.
	RunID string
	Since time.Time
	// Workers are the workers that the dispatcher listed when it got this owner.
	Workers []dispatchtype.RegisteredWorker
}

// Loop is the ownership loop of one dispatcher.
type Loop struct {
	p    *Process
	name inbox.Name
	key  string
	log  *slog.Logger

	hint     chan struct{}     // the lease may be free
	handover chan wire.Request // a handover was requested
	check    chan struct{}     // the dispatcher may be closed

	joined   bool
	failures int       // consecutive failed attempts
	earliest time.Time // the lease is not acquired before

	mu    sync.Mutex
	owned *Ownership
}

// New returns the loop of a dispatcher.
func New(p *Process, name inbox.Name) *Loop {
	return &Loop{
		p: p, name: name, key: wire.OwnerKey(name), log: p.Log.With("project", name.Project, "task_queue", name.TaskQueue),
		hint: make(chan struct{}, 1), handover: make(chan wire.Request, 1), check: make(chan struct{}, 1),
	}
}

// Hint reports that the lease may have become free.
func (l *Loop) Hint() { notify(l.hint) }

// Check requests a check that the dispatcher is still open.
func (l *Loop) Check() { notify(l.check) }

// HandOver requests the resignation of the lease, if it is held.
func (l *Loop) HandOver(r wire.Request) {
	select {
	case l.handover <- r:
	default:
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Owned returns the ownership, or nil.
func (l *Loop) Owned() *Ownership {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owned
}

func (l *Loop) own(o *Ownership) {
	l.mu.Lock()
	was := l.owned != nil
	l.owned = o
	l.mu.Unlock()
	if was != (o != nil) {
		l.p.Observer.Active(l.name, o != nil)
	}
}

// continued records the new run ID of a dispatcher that continued as new.
func (l *Loop) continued(runID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owned != nil && l.owned.RunID != runID {
		owned := *l.owned
		owned.RunID = runID
		l.owned = &owned
	}
}

// Run acquires and keeps the dispatcher whenever it can, until ctx ends. Then it resigns the lease if it holds it.
func (l *Loop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		got, err := l.acquire(ctx)
		if err != nil || got == nil {
			l.wait(ctx, err)
			continue
		}
		err = l.hold(ctx, got)
		if err != nil {
			l.failed(ctx, err)
		}
	}
}

// acquired is a lease that was acquired.
type acquired struct {
	entry  lease.Entry
	before *lease.Entry
	sent   time.Time
}

// acquire tries to acquire the lease. It returns nil without an error if another process holds it.
func (l *Loop) acquire(ctx context.Context) (*acquired, error) {
	if err := l.p.MayOwn(ctx, l.name); err != nil {
		return nil, err
	}
	if err := l.p.Pace.Wait(ctx); err != nil {
		return nil, err
	}
	value, err := json.Marshal(wire.Claim{ServerID: l.p.ServerID})
	if err != nil {
		return nil, err
	}
	// Not with ctx: a canceled request may still acquire the lease, and would leave it held.
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	sent := time.Now()
	got, before, err := l.p.Leases.Acquire(ask, l.key, l.p.ServerID, value, l.p.Timing.Owner())
	held, isHeld := errors.AsType[*lease.HeldError](err)
	switch {
	case err == nil:
		return &acquired{entry: got, before: before, sent: sent}, nil
	case isHeld && held.Entry.Holder == l.p.ServerID && held.Entry.Remaining() > 2*l.p.Timing.Margin:
		// Acquired by an earlier attempt whose answer was lost. One that is about to end is not used: it was neither renewed
		// nor resigned because the store refuses that, so it would be lost again at once.
		return &acquired{entry: held.Entry, sent: sent}, nil
	case isHeld:
		if !l.joined {
			l.joined = true
			l.p.Observer.Joined(l.name)
		}
		var claim wire.Claim
		if json.Unmarshal(held.Entry.Value, &claim) == nil && claim.Epoch > 0 {
			l.p.Observer.NotForeign(l.name)
		}
		l.failures = 0
		l.earliest = time.Now().Add(held.Entry.Remaining())
		return nil, nil
	}
	return nil, err
}

// wait waits until the lease may be free; after an error, for the backoff.
func (l *Loop) wait(ctx context.Context, err error) {
	if err != nil {
		l.failed(ctx, err)
		return
	}
	timer := time.NewTimer(time.Until(l.earliest) + rand.N(acquireSpread)) //nolint:gosec // spreads load, guards nothing
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-l.hint:
		loop.Sleep(ctx, rand.N(acquireSpread/5)) //nolint:gosec // spreads load, guards nothing
	}
}

// failed reports a failure and waits, longer each time.
func (l *Loop) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		l.p.Observer.Foreign(foreign.ForeignWorkflow)
	} else {
		l.p.Observer.Failed(l.name, err)
	}
	l.failures++
	loop.Sleep(ctx, backoff.Jitter(backoff.Delay(backoffFirst, backoffMost, l.failures)))
}

// hold owns the dispatcher until the lease ends. It returns an error if the dispatcher could not be owned.
func (l *Loop) hold(ctx context.Context, got *acquired) error {
	t := &term{l: l, acquired: got, began: time.Now()}
	// Not with ctx: the lease must be kept until it is resigned.
	t.hold = lease.Keep(context.WithoutCancel(ctx), l.p.Leases, got.entry, got.sent, lease.KeepOptions{
		Interval: l.p.Timing.Renew, Margin: l.p.Timing.Margin, Lifetime: l.p.Timing.Owner(), Value: t.value,
	})
	defer t.resign(ctx)
	drain(l.handover)
	if err := t.take(ctx, t.previous(ctx)); err != nil {
		return err
	}
	l.failures = 0
	return t.keep(ctx)
}

func drain[T any](c chan T) {
	select {
	case <-c:
	default:
	}
}
