package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// maxTries is the number of attempts to take a dispatcher before the lease is resigned; the pauses add up to about
	// fifteen seconds.
	maxTries  = 12
	tryPause  = 50 * time.Millisecond
	tryPauses = 2 * time.Second
)

// errReplacing means that the previous run was terminated and a new one must be started.
var errReplacing = errors.New("the previous run was terminated")

// foreignError means that the dispatcher cannot be owned because a foreign workflow has its ID.
type foreignError struct{ dispatchtype.ForeignWorkflow }

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("own dispatcher %q: run %q of the foreign workflow type %q has its ID", e.WorkflowID, e.RunID,
		e.Type)
}

// term is the time from the acquisition of a lease to its end.
type term struct {
	l        *Loop
	acquired *acquired
	hold     *lease.Hold
	began    time.Time

	stall stall

	mu    sync.Mutex
	owner inbox.Owner // zero until the inbox has allocated the epoch
}

// value returns the value of the lease's entry.
func (t *term) value() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := json.Marshal(wire.Claim{ServerID: t.l.p.ServerID, Epoch: t.owner.Epoch})
	if err != nil {
		return nil // keeps the current value
	}
	return value
}

// previous returns what happened to the previous owner.
func (t *term) previous(ctx context.Context) plan.Previous {
	before, p := t.acquired.before, t.l.p
	switch {
	case before == nil:
		return plan.PreviousUnknown
	case before.State == lease.Resigned:
		return plan.Resigned
	case before.Holder == p.ServerID || p.StoreFailed(before.Age()):
		// The holder could not renew: it is this process, which is alive, or the store was failing.
		return plan.PreviousUnknown
	case t.outlived(ctx, *before):
		return plan.PreviousUnknown
	}
	return plan.Crashed
}

// outlived reports whether the holder of an expired lease was alive when it should have renewed it: its heartbeat was
// written later. A process that crashed writes none after that. A heartbeat that cannot be read counts as one, because
// nothing is terminated for lack of data. Only a holder with an epoch counts: after one without, a supervisor may be
// about to terminate the dispatcher still.
func (t *term) outlived(ctx context.Context, before lease.Entry) bool {
	var claim wire.Claim
	if json.Unmarshal(before.Value, &claim) != nil || claim.Epoch == 0 {
		return false
	}
	ask, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	beat, err := t.l.p.Leases.Get(ask, wire.WorkerKey(before.Holder))
	if errors.Is(err, lease.ErrNotFound) {
		return false
	}
	return err != nil || beat.RenewedAt.Sub(before.RenewedAt) > t.l.p.Timing.Renew+t.l.p.Timing.Margin
}

// take makes this process the owner of the dispatcher. After an action without its effect, it observes and decides
// again.
func (t *term) take(ctx context.Context, before plan.Previous) error {
	select {
	case t.l.p.Slots <- struct{}{}:
		defer func() { <-t.l.p.Slots }()
	case <-ctx.Done():
		return nil
	case <-t.hold.Done():
		return nil
	}
	acting, cancel := t.acting(ctx)
	defer cancel()
	a := &attempt{t: t, before: before, outcome: dispatchtype.Handover, unanswered: map[string]bool{}}
	var last error
	for try := range maxTries {
		if ctx.Err() != nil && a.owner.Epoch == 0 {
			break // nothing has begun
		}
		// After a termination there is nothing to wait for.
		if last != nil && !errors.Is(last, errReplacing) &&
			!loop.Sleep(acting, backoff.Jitter(backoff.Delay(tryPause, tryPauses, try+1))) {
			break
		}
		done, err := a.once(acting)
		if done {
			return err
		}
		last = err
		if !t.hold.Valid() {
			break
		}
	}
	if ctx.Err() != nil || !t.hold.Valid() {
		return nil // the caller handles the end of ctx or of the lease
	}
	return fmt.Errorf("own dispatcher %q: gave up after %d attempts: %w", t.l.name.DispatcherID(), maxTries, last)
}

// whileHeld returns a context that ends with the lease.
func (t *term) whileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-t.hold.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// acting returns a context that ends with the lease, and finishTimeout after ctx: a process that stops while it takes a
// dispatcher completes what it began. An epoch that was allocated and never used makes the next owner terminate a
// healthy dispatcher.
func (t *term) acting(ctx context.Context) (context.Context, context.CancelFunc) {
	acting, cancel := t.whileHeld(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		loop.Sleep(acting, finishTimeout)
		cancel()
	})
	return acting, func() { stop(); cancel() }
}

// attempt is the state of taking a dispatcher.
type attempt struct {
	t          *term
	before     plan.Previous
	owner      inbox.Owner
	outcome    dispatchtype.Outcome
	ended      string   // the run ID that was terminated
	cause      plan.Act // the decision to terminate it
	from       plan.Observed
	unanswered map[string]bool // by run ID
	// sent is set if an adoption under this epoch may still arrive. fence is the owner that the inbox accepts, as far as
	// observed.
	sent  bool
	fence inbox.Owner
}

// once observes, decides and acts. It returns true when the attempt is complete: with an error, this process cannot own
// the dispatcher.
func (a *attempt) once(ctx context.Context) (bool, error) {
	t := a.t
	detached := a.detach(ctx)
	seen, open, err := a.observe(ctx)
	<-detached
	if err != nil {
		return false, err
	}
	if plan.Decide(a.before, seen, a.owner).Kind == plan.Refuse {
		// Decided before an epoch is allocated: the epoch would stay unused, and the next attempt would allocate another.
		return true, &foreignError{dispatchtype.ForeignWorkflow{
			Name: t.l.name, WorkflowID: open.WorkflowID, RunID: open.RunID, Type: open.Type, By: t.l.p.ServerID, At: time.Now(),
		}}
	}
	if a.owner.Epoch == 0 {
		if err := a.fenceAndRenew(ctx, seen.Epoch); err != nil {
			// Without the lease, further epochs would only fence the holder of the lease.
			return errors.Is(err, lease.ErrLost), err
		}
		a.from = seen
	}
	if !t.hold.Valid() {
		return false, t.hold.Err()
	}
	act := plan.Decide(a.before, seen, a.owner)
	switch act.Kind {
	case plan.ColdStart:
		runID, err := t.l.p.Temporal.Start(ctx, t.l.name, a.owner, t.l.p.Workers(t.l.name))
		if a.outcome == dispatchtype.Handover {
			a.outcome = dispatchtype.ColdStart
		}
		if err != nil {
			return false, err
		}
		a.done(act, runID, t.l.p.Workers(t.l.name))
		return true, nil
	case plan.Adopt:
		state, err := t.l.p.Temporal.Adopt(ctx, t.l.name, open.RunID, a.owner)
		a.unanswered[open.RunID] = errors.Is(err, remote.ErrUnanswered)
		if err != nil {
			a.sent = !errors.Is(err, remote.ErrFenced) && !errors.Is(err, remote.ErrGone)
			return false, err
		}
		a.done(act, open.RunID, state.Workers)
		return true, nil
	case plan.TakeOver:
		if a.sent {
			// If the adoption arrives after all, the run shows this epoch as complete. The next owner would then adopt the run
			// just before this termination hits it. Under another epoch it does not adopt it.
			a.sent, a.owner = false, inbox.Owner{}
			return a.once(ctx)
		}
		// The next observation decides what to start.
		return false, a.terminate(ctx, act, seen, open.RunID)
	case plan.Keep:
		a.done(act, open.RunID, t.l.p.Workers(t.l.name))
		return true, nil
	default: // step down
		// Acquiring the lease again at once would lead to the same decision.
		return true, fmt.Errorf("own dispatcher %q with epoch %d: %s", t.l.name.DispatcherID(), a.owner.Epoch, act.Reason)
	}
}

// detach prepares the dispatcher for the fence, which ends the routing of the previous owner, and so makes a workflow
// task. The worker that executed the last one may have stopped polling since; with a task that waits for it, the
// adoption would wait for five seconds.
func (a *attempt) detach(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if a.owner.Epoch != 0 {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		a.t.l.p.Temporal.Detach(ctx, a.t.l.name)
	}()
	return done
}

// observe reads Temporal and the inbox, at the same time. An error of either means that nothing is done.
func (a *attempt) observe(ctx context.Context) (plan.Observed, wire.Execution, error) {
	t := a.t
	var group sync.WaitGroup
	var progress []inbox.Progress
	var unread error
	group.Go(func() {
		ask, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		progress, unread = t.l.p.Inbox.Progress(ask, t.l.name)
	})
	open, err := t.l.p.Temporal.Describe(ctx, t.l.name)
	group.Wait()
	if err != nil {
		return plan.Observed{}, wire.Execution{}, err
	}
	if open == nil {
		return plan.Observed{}, wire.Execution{}, nil
	}
	seen := plan.Observed{Open: true, Belongs: wire.Belongs(t.l.name, *open, nil), Unanswered: a.unanswered[open.RunID]}
	if seen.Belongs != wire.Mine {
		return seen, *open, nil
	}
	seen.Owner, seen.Epoch = open.Memo.Owner, open.Memo.Epoch
	if unread != nil {
		return plan.Observed{}, wire.Execution{}, fmt.Errorf("read progress of dispatcher %q: %w", open.WorkflowID, unread)
	}
	for _, p := range progress {
		a.fence = p.Owner
		seen.Silent = !p.Parked && p.Due && p.SinceProgress > t.l.p.Timing.StaleAfter
	}
	if seen.Silent && t.stall.unanswered && t.stall.runID == open.RunID {
		seen.Unanswered = true
	}
	return seen, *open, nil
}

// fenceAndRenew allocates the epoch and renews the lease with it. From then on, the inbox rejects claims of the
// previous owner. An owner that acts without this renewal may act on the dispatcher of a process that has acquired the
// lease since.
func (a *attempt) fenceAndRenew(ctx context.Context, above int64) error {
	t := a.t
	ask, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	owner, err := t.l.p.Inbox.Fence(ask, t.l.name, t.l.p.ServerID, above)
	if err != nil {
		return fmt.Errorf("fence dispatcher %q: %w", t.l.name.DispatcherID(), err)
	}
	t.mu.Lock()
	t.owner = owner
	t.mu.Unlock()
	if _, err := t.l.p.Leases.Renew(ask, t.l.key, t.acquired.entry.Token, t.value(), t.l.p.Timing.Owner()); err != nil {
		return fmt.Errorf("renew the lease of dispatcher %q with its epoch: %w", t.l.name.DispatcherID(), err)
	}
	a.owner = owner
	return nil
}

func (a *attempt) terminate(ctx context.Context, act plan.Act, seen plan.Observed, runID string) error {
	t := a.t
	from := "an unknown owner"
	if seen.Owner != "" {
		from = fmt.Sprintf("%q (epoch %d)", seen.Owner, seen.Epoch)
	}
	reason := fmt.Sprintf("taken over by %q (epoch %d) from %s: %s", a.owner.Holder, a.owner.Epoch, from, act.Reason)
	err := t.l.p.Temporal.Terminate(ctx, t.l.name, runID, reason)
	if errors.Is(err, remote.ErrGone) {
		return err
	}
	t.l.p.Observer.Terminated(dispatchtype.Termination{
		Name: t.l.name, WorkflowID: t.l.name.DispatcherID(), RunID: runID, Kind: act.Label, Reason: reason,
		From: inbox.Owner{Epoch: seen.Epoch, Holder: seen.Owner}, To: a.owner, By: t.l.p.ServerID, At: time.Now(),
	}, err)
	if err != nil {
		return err
	}
	a.outcome, a.ended, a.cause = dispatchtype.Takeover, runID, act
	return errReplacing
}

// done records that this process owns the dispatcher.
func (a *attempt) done(act plan.Act, runID string, workers []dispatchtype.RegisteredWorker) {
	t := a.t
	now := time.Now()
	t.l.p.Observer.NotForeign(t.l.name)
	t.l.own(&Ownership{Name: t.l.name, Owner: a.owner, RunID: runID, Since: now, Workers: workers})
	from, gap := inbox.Owner{Epoch: a.from.Epoch, Holder: a.from.Owner}, time.Duration(0)
	if before := t.acquired.before; before != nil {
		if from.Holder == "" {
			from.Holder = before.Holder
		}
		if before.State == lease.Expired {
			gap = t.acquired.entry.AcquiredAt.Sub(before.RenewedAt) // the last sign of the previous holder
		}
	}
	reason := act.Reason
	if a.ended != "" {
		reason = fmt.Sprintf("the previous run was terminated by %q, %s", t.l.p.ServerID, a.cause.Ending())
	}
	took := now.Sub(t.began)
	t.l.p.Observer.Changed(dispatchtype.OwnerChange{
		Name: t.l.name, WorkflowID: t.l.name.DispatcherID(), RunID: runID, Outcome: a.outcome,
		From: from, To: a.owner, Ended: a.ended, Reason: reason, At: now, Duration: took,
	}, gap+took)
}

// keep owns the dispatcher until the term ends.
func (t *term) keep(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.hold.Done():
			return t.lost()
		case request := <-t.l.handover:
			t.l.log.InfoContext(ctx, "Handing the dispatcher over", "by", request.By, "reason", request.Reason)
			t.l.earliest = time.Now().Add(handoverPause)
			t.handOver(ctx)
			return nil
		case <-t.l.check:
			if err := t.recheck(ctx); err != nil {
				return err
			}
		}
	}
}

// resign resigns the lease, even if ctx has ended. Resigning twice changes nothing.
func (t *term) resign(ctx context.Context) {
	t.l.own(nil)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTimeout)
	defer cancel()
	if err := t.hold.Resign(bounded); err != nil {
		t.l.log.WarnContext(ctx, "Lease could not be resigned; it runs out by itself", "error", err)
	}
}

// handOver resigns the lease and does not acquire it for a while, so that another process can.
func (t *term) handOver(ctx context.Context) {
	t.resign(ctx)
	for ctx.Err() == nil && time.Now().Before(t.l.earliest) {
		t.l.wait(ctx, nil)
		// The hint may be that of this process's own resignation.
		if e, err := t.l.p.Leases.Get(ctx, t.l.key); err == nil && e.State == lease.Held {
			return
		}
	}
}

// lost reports that the lease ended without a resignation.
func (t *term) lost() error {
	err := t.hold.Err()
	t.mu.Lock()
	owner := t.owner
	t.mu.Unlock()
	t.l.p.Observer.Changed(dispatchtype.OwnerChange{
		Name: t.l.name, WorkflowID: t.l.name.DispatcherID(), Outcome: dispatchtype.Lost, From: owner,
		Reason: err.Error(), At: time.Now(),
	}, 0)
	return nil
}
