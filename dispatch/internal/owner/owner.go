// Package owner is the loop by which a process comes to own a dispatcher, keeps it, and gives it up.
//
//	wait until it is fit → win the lease → look → fence in the inbox → decide → start, adopt or replace → keep → resign
//
// It acts only while it trusts its lease. Where it acts too late all the same, because it was frozen in between, the
// dispatcher and the inbox refuse: by the epoch, and by the ID of the run that it saw.
package owner

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

// Temporal is what the loop needs of it; its errors are those of package remote.
type Temporal interface {
	Describe(ctx context.Context, name inbox.Name) (*contract.Execution, error)
	Start(ctx context.Context, name inbox.Name, owner inbox.Owner, workers []contract.Worker) (runID string, err error)
	Adopt(ctx context.Context, name inbox.Name, runID string, owner inbox.Owner) (contract.State, error)
	// Ask returns nil if the run answers its owner.
	Ask(ctx context.Context, name inbox.Name, runID string, owner inbox.Owner) error
	Terminate(ctx context.Context, name inbox.Name, runID, reason string) error
	Ring(ctx context.Context, name inbox.Name) error
}

// Inbox is what the loop needs of it.
type Inbox interface {
	Fence(ctx context.Context, name inbox.Name, holder string, above int64) (inbox.Owner, error)
	Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error)
}

// Observer is told what happened. It does not wait for anything.
type Observer interface {
	// Joined: the dispatcher has another owner.
	Joined(name inbox.Name)
	// Changed: it has another owner. gap is how long it took: from the last renewal of the one before where its lease ran out, from when the
	// lease was won where it was given up or nothing is known of one, and from when that was noticed where an owner replaces its own.
	Changed(c terms.OwnerChange, gap time.Duration)
	// Failed: an attempt to own it ended in an error and will be made again.
	Failed(name inbox.Name, err error)
	// Terminated: a run was terminated, or with an error could not be.
	Terminated(t terms.Termination, err error)
	// Foreign: the dispatcher's ID is taken by something else, so that no process can own it. It is reported at every attempt.
	Foreign(f terms.Foreign)
	// NotForeign: the dispatcher has an owner, so its ID is not taken by something else.
	NotForeign(name inbox.Name)
	// Active: this process owns it, or does no more.
	Active(name inbox.Name, owned bool)
}

// Process is what the loops of a process share.
type Process struct {
	ServerID string
	Leases   lease.Store
	Inbox    Inbox
	Temporal Temporal
	Timing   terms.Timing
	// Fit waits until the process may own a dispatcher, or ctx ends: whoever cannot reach Temporal, or works for nobody, leaves the lease to
	// others.
	Fit func(ctx context.Context, name inbox.Name) error
	// StoreFailed tells whether the store of leases was seen failing within that time: what expired then proves no crash.
	StoreFailed func(within time.Duration) bool
	// Workers returns who works for the dispatcher, for one that is started.
	Workers func(name inbox.Name) []contract.Worker
	// Pace spreads attempts to win, Slots bounds how many loops act at once.
	Pace     *pace.Limit
	Slots    chan struct{}
	Observer Observer
	Log      *slog.Logger
}

const (
	// winSpread is the chance in when to try to win what has just become free, so that not all try at one moment.
	winSpread = 100 * time.Millisecond
	// backoffFirst and backoffMost are the pauses after attempts that failed.
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 15 * time.Second
	// handoverPause is for how long who handed over leaves it to others to win.
	handoverPause = 3 * time.Second
	// resignTimeout bounds giving up the lease, which runs out by itself.
	resignTimeout = 3 * time.Second
	// finishTimeout is for how long who is told to stop goes on with taking the dispatcher that it has begun to take.
	// It is longer than a workflow task of the dispatcher can be lost for.
	finishTimeout = 5 * time.Second
	// storeTimeout bounds questions to the store of leases and to the inbox.
	storeTimeout = 5 * time.Second
)

// Ownership is a dispatcher that this process owns.
type Ownership struct {
	Name  inbox.Name
	Owner inbox.Owner
	// RunID is that of the run which was seen last.
	RunID string
	Since time.Time
	// Workers are those that the dispatcher knew when it got this owner.
	Workers []contract.Worker
}

// Loop is the ownership loop of one dispatcher.
type Loop struct {
	p    *Process
	name inbox.Name
	key  string
	log  *slog.Logger

	hint  chan struct{}         // the lease may be free
	asked chan contract.Request // somebody wants another owner
	look  chan struct{}         // the dispatcher may be gone

	joined  bool
	failure int       // attempts running that failed
	rest    time.Time // not to win before

	mu    sync.Mutex
	owned *Ownership
}

// New returns the loop of a dispatcher.
func New(p *Process, name inbox.Name) *Loop {
	return &Loop{
		p: p, name: name, key: contract.OwnerKey(name), log: p.Log.With("project", name.Project, "task_queue", name.TaskQueue),
		hint: make(chan struct{}, 1), asked: make(chan contract.Request, 1), look: make(chan struct{}, 1),
	}
}

// Hint says that the lease may have become free.
func (l *Loop) Hint() { poke(l.hint) }

// Look says that the dispatcher may be gone.
func (l *Loop) Look() { poke(l.look) }

// HandOver asks for the lease to be given up, if it is held.
func (l *Loop) HandOver(r contract.Request) {
	select {
	case l.asked <- r:
	default:
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Owned returns what is owned, nil for nothing.
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

// renamed notes that the dispatcher continued as new.
func (l *Loop) renamed(runID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owned != nil && l.owned.RunID != runID {
		owned := *l.owned
		owned.RunID = runID
		l.owned = &owned
	}
}

// Run owns the dispatcher whenever it can, until ctx ends. Then it gives up what is its own.
func (l *Loop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		won, err := l.win(ctx)
		if err != nil || won == nil {
			l.wait(ctx, err)
			continue
		}
		err = l.hold(ctx, won)
		if err != nil {
			l.failed(ctx, err)
		}
	}
}

// victory is a lease that was won.
type victory struct {
	entry  lease.Entry
	before *lease.Entry
	sent   time.Time
}

// win tries to win the lease. Without an error and a victory, somebody else has it.
func (l *Loop) win(ctx context.Context) (*victory, error) {
	if err := l.p.Fit(ctx, l.name); err != nil {
		return nil, err
	}
	if !l.p.Pace.Wait(ctx) {
		return nil, ctx.Err()
	}
	value, err := json.Marshal(contract.Claim{ServerID: l.p.ServerID})
	if err != nil {
		return nil, err
	}
	// Not with ctx: an answer that nobody waits for would leave a lease that nobody gives up.
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	sent := time.Now()
	got, before, err := l.p.Leases.Acquire(ask, l.key, l.p.ServerID, value, l.p.Timing.Owner())
	held, isHeld := errors.AsType[*lease.HeldError](err)
	switch {
	case err == nil:
		return &victory{entry: got, before: before, sent: sent}, nil
	case isHeld && held.Entry.Holder == l.p.ServerID:
		// Won by an earlier attempt whose answer was lost.
		return &victory{entry: held.Entry, sent: sent}, nil
	case isHeld:
		if !l.joined {
			l.joined = true
			l.p.Observer.Joined(l.name)
		}
		var claim contract.Claim
		if json.Unmarshal(held.Entry.Value, &claim) == nil && claim.Epoch > 0 {
			l.p.Observer.NotForeign(l.name)
		}
		l.failure = 0
		l.rest = time.Now().Add(held.Entry.Remaining())
		return nil, nil
	}
	return nil, err
}

// wait waits until the lease may be free, or after an error for a while.
func (l *Loop) wait(ctx context.Context, err error) {
	if err != nil {
		l.failed(ctx, err)
		return
	}
	timer := time.NewTimer(time.Until(l.rest) + rand.N(winSpread)) //nolint:gosec // spreads load, guards nothing
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-l.hint:
		pace.Sleep(ctx, rand.N(winSpread/5)) //nolint:gosec // spreads load, guards nothing
	}
}

// failed tells of a failure and waits, longer each time.
func (l *Loop) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		l.p.Observer.Foreign(foreign.Foreign)
	} else {
		l.p.Observer.Failed(l.name, err)
	}
	pause := min(backoffFirst<<min(l.failure, 10), backoffMost)
	l.failure++
	pace.Sleep(ctx, pace.Jitter(pause))
}

// hold owns the dispatcher until the lease ends. The error is why it could not be owned.
func (l *Loop) hold(ctx context.Context, won *victory) error {
	t := &tenure{l: l, won: won, began: time.Now()}
	// Not with ctx: it must be kept until it was resigned.
	t.hold = lease.Keep(context.WithoutCancel(ctx), l.p.Leases, won.entry, won.sent, lease.Pace{
		Renew: l.p.Timing.Renew, Margin: l.p.Timing.Margin, Terms: l.p.Timing.Owner(), Value: t.value,
	})
	defer t.resign(ctx)
	drain(l.asked)
	if err := t.take(ctx, previous(l.p, won)); err != nil {
		return err
	}
	l.failure = 0
	return t.keep(ctx)
}

func drain[T any](c chan T) {
	select {
	case <-c:
	default:
	}
}
