package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/decide"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// maxTries is how often it is decided anew before the lease is left to others; the pauses add up to some fifteen seconds.
	maxTries  = 12
	tryPause  = 50 * time.Millisecond
	tryPauses = 2 * time.Second
)

// errReplacing: the old one was terminated, the new one is to be started.
var errReplacing = errors.New("the one before was terminated")

// foreignError is why a dispatcher cannot be owned whose ID is taken by something else.
type foreignError struct{ terms.Foreign }

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("own dispatcher %q: its ID is taken by run %q of workflow type %q, which is none of ours", e.WorkflowID, e.RunID, e.Type)
}

// tenure is the time from winning a lease to its end.
type tenure struct {
	l     *Loop
	won   *victory
	hold  *lease.Hold
	began time.Time

	silence silence

	mu    sync.Mutex
	owner inbox.Owner // zero until the inbox handed out the epoch
}

// value is what the lease's entry says.
func (t *tenure) value() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := json.Marshal(contract.Claim{ServerID: t.l.p.ServerID, Epoch: t.owner.Epoch})
	if err != nil {
		return nil // keeps what is there
	}
	return value
}

// previous tells what became of the owner before.
func previous(p *Process, won *victory) decide.Previous {
	before := won.before
	switch {
	case before == nil:
		return decide.Unknown
	case before.State == lease.Resigned:
		return decide.Resigned
	case before.Holder == p.ServerID || p.StoreFailed(before.Age()):
		// It could not renew: this process, which lives, or somebody while nobody could.
		return decide.Unknown
	}
	return decide.Crashed
}

// take makes this process the owner of an open dispatcher. It decides again after each act that did not have its effect.
func (t *tenure) take(ctx context.Context, before decide.Previous) error {
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
	a := &attempt{t: t, before: before, outcome: terms.Handover, unanswered: map[string]bool{}}
	var last error
	for try := range maxTries {
		if ctx.Err() != nil && a.owner.Epoch == 0 {
			break // nothing was begun
		}
		// A termination that was made leaves nothing to wait for.
		if last != nil && !errors.Is(last, errReplacing) && !pace.Sleep(acting, pace.Jitter(min(tryPause<<try, tryPauses))) {
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
		return nil // what ended it says the rest
	}
	return fmt.Errorf("own dispatcher %q: gave up after %d tries: %w", t.l.name.DispatcherID(), maxTries, last)
}

// whileHeld returns a context that ends with the lease.
func (t *tenure) whileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
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

// acting returns a context that ends with the lease, and some time after ctx: whoever is told to stop in the middle brings what it
// began to its end. An epoch that was handed out and never used makes the next owner terminate a healthy dispatcher.
func (t *tenure) acting(ctx context.Context) (context.Context, context.CancelFunc) {
	acting, cancel := t.whileHeld(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		pace.Sleep(acting, finishTimeout)
		cancel()
	})
	return acting, func() { stop(); cancel() }
}

// attempt is what was learnt while taking a dispatcher.
type attempt struct {
	t          *tenure
	before     decide.Previous
	owner      inbox.Owner
	outcome    terms.Outcome
	ended      string     // the run that was terminated
	cause      decide.Act // why it was
	from       decide.Seen
	unanswered map[string]bool // by run ID
	// sent tells that an adoption under this epoch may yet arrive, fence who may claim as far as was seen.
	sent  bool
	fence inbox.Owner
}

// once looks, decides and acts. It returns whether the matter is settled; with an error, that it is settled against this process.
func (a *attempt) once(ctx context.Context) (bool, error) {
	t := a.t
	seen, open, err := a.see(ctx)
	if err != nil {
		return false, err
	}
	if decide.What(a.before, seen, a.owner).Kind == decide.Refuse {
		// Before an epoch is asked for: nothing would be done under it, and the next attempt would ask for another.
		return true, &foreignError{terms.Foreign{
			Name: t.l.name, WorkflowID: open.WorkflowID, RunID: open.RunID, Type: open.Type, By: t.l.p.ServerID, At: time.Now(),
		}}
	}
	if a.owner.Epoch == 0 {
		if err := a.enter(ctx, seen.Epoch); err != nil {
			// To be given epochs without the lease would only get in the way of who has it.
			return errors.Is(err, lease.ErrLost), err
		}
		a.from = seen
	}
	if !t.hold.Valid() {
		return false, t.hold.Err()
	}
	act := decide.What(a.before, seen, a.owner)
	switch act.Kind {
	case decide.ColdStart:
		runID, err := t.l.p.Temporal.Start(ctx, t.l.name, a.owner, t.l.p.Workers(t.l.name))
		if a.outcome == terms.Handover {
			a.outcome = terms.ColdStart
		}
		if err != nil {
			return false, err
		}
		a.done(act, runID, t.l.p.Workers(t.l.name))
		return true, nil
	case decide.Adopt:
		state, err := t.l.p.Temporal.Adopt(ctx, t.l.name, open.RunID, a.owner)
		a.unanswered[open.RunID] = errors.Is(err, remote.ErrUnanswered)
		if err != nil {
			a.sent = !errors.Is(err, remote.ErrFenced) && !errors.Is(err, remote.ErrGone)
			return false, err
		}
		a.done(act, open.RunID, state.Workers)
		return true, nil
	case decide.TakeOver:
		if a.sent {
			// If the adoption arrives after all, the run looks as if this epoch were done with it, and the next owner would adopt
			// it just before this termination hits it. Under another epoch it does not.
			a.sent, a.owner = false, inbox.Owner{}
			return a.once(ctx)
		}
		// What is to be started is decided by another look.
		return false, a.terminate(ctx, act, seen, open.RunID)
	case decide.Keep:
		a.done(act, open.RunID, t.l.p.Workers(t.l.name))
		return true, nil
	default: // step down
		// To win again at once would find the same.
		return true, fmt.Errorf("own dispatcher %q with epoch %d: %s", t.l.name.DispatcherID(), a.owner.Epoch, act.Reason)
	}
}

// see looks at both sides. Without knowing what is open, nothing is done.
func (a *attempt) see(ctx context.Context) (decide.Seen, contract.Execution, error) {
	t := a.t
	open, err := t.l.p.Temporal.Describe(ctx, t.l.name)
	if err != nil {
		return decide.Seen{}, contract.Execution{}, err
	}
	if open == nil {
		return decide.Seen{}, contract.Execution{}, nil
	}
	seen := decide.Seen{Open: true, Belongs: contract.Belongs(t.l.name, *open, nil), Unanswered: a.unanswered[open.RunID]}
	if seen.Belongs != contract.Mine {
		return seen, *open, nil
	}
	seen.Owner, seen.Epoch = open.Memo.Owner, open.Memo.Epoch
	ask, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	progress, err := t.l.p.Inbox.Progress(ask, t.l.name)
	if err != nil {
		return decide.Seen{}, contract.Execution{}, fmt.Errorf("read progress of dispatcher %q: %w", open.WorkflowID, err)
	}
	for _, p := range progress {
		a.fence = p.Owner
		seen.Silent = !p.Parked && p.Due && p.SinceProgress > t.l.p.Timing.StaleAfter
	}
	if seen.Silent && t.silence.mute && t.silence.runID == open.RunID {
		seen.Unanswered = true
	}
	return seen, *open, nil
}

// enter gets the epoch, and makes sure of the lease under it. From then on, nothing is claimed for the owner before. Who acts
// without having renewed after that may act on the dispatcher of who has the lease by now.
func (a *attempt) enter(ctx context.Context, above int64) error {
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
	if _, err := t.l.p.Leases.Renew(ask, t.l.key, t.won.entry.Token, t.value(), t.l.p.Timing.Owner()); err != nil {
		return fmt.Errorf("renew the lease of dispatcher %q with its epoch: %w", t.l.name.DispatcherID(), err)
	}
	a.owner = owner
	return nil
}

func (a *attempt) terminate(ctx context.Context, act decide.Act, seen decide.Seen, runID string) error {
	t := a.t
	from := "nobody known"
	if seen.Owner != "" {
		from = fmt.Sprintf("%q (epoch %d)", seen.Owner, seen.Epoch)
	}
	reason := fmt.Sprintf("taken over by %q (epoch %d) from %s: %s", a.owner.Holder, a.owner.Epoch, from, act.Reason)
	err := t.l.p.Temporal.Terminate(ctx, t.l.name, runID, reason)
	if errors.Is(err, remote.ErrGone) {
		return err
	}
	t.l.p.Observer.Terminated(terms.Termination{
		Name: t.l.name, WorkflowID: t.l.name.DispatcherID(), RunID: runID, Kind: act.Label, Reason: reason,
		From: seen.Owner, FromEpoch: seen.Epoch, To: a.owner.Holder, ToEpoch: a.owner.Epoch, By: t.l.p.ServerID, At: time.Now(),
	}, err)
	if err != nil {
		return err
	}
	a.outcome, a.ended, a.cause = terms.Takeover, runID, act
	return errReplacing
}

// done notes that this process owns the dispatcher.
func (a *attempt) done(act decide.Act, runID string, workers []contract.Worker) {
	t := a.t
	now := time.Now()
	t.l.p.Observer.NotForeign(t.l.name)
	t.l.own(&Ownership{Name: t.l.name, Owner: a.owner, RunID: runID, Since: now, Workers: workers})
	from, gap := a.from.Owner, time.Duration(0)
	if before := t.won.before; before != nil {
		if from == "" {
			from = before.Holder
		}
		if before.State == lease.Expired {
			gap = t.won.entry.AcquiredAt.Sub(before.RenewedAt) // the last that is known of who had it
		}
	}
	reason := act.Reason
	if a.ended != "" {
		reason = fmt.Sprintf("the one before was ended by %q, %s", t.l.p.ServerID, a.cause.Ending())
	}
	took := now.Sub(t.began)
	t.l.p.Observer.Changed(terms.OwnerChange{
		Name: t.l.name, WorkflowID: t.l.name.DispatcherID(), RunID: runID, Outcome: a.outcome,
		From: from, FromEpoch: a.from.Epoch, To: a.owner.Holder, ToEpoch: a.owner.Epoch, Ended: a.ended, Reason: reason, At: now, Took: took,
	}, gap+took)
}

// keep returns when the tenure ends.
func (t *tenure) keep(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.hold.Done():
			return t.lost()
		case request := <-t.l.asked:
			t.l.log.InfoContext(ctx, "Handing the dispatcher over", "by", request.By, "reason", request.Reason)
			t.l.rest = time.Now().Add(handoverPause)
			t.handOver(ctx)
			return nil
		case <-t.l.look:
			if err := t.lookAgain(ctx); err != nil {
				return err
			}
		}
	}
}

// resign gives the lease up, also when ctx has ended; once more changes nothing.
func (t *tenure) resign(ctx context.Context) {
	t.l.own(nil)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTimeout)
	defer cancel()
	if err := t.hold.Resign(bounded); err != nil {
		t.l.log.WarnContext(ctx, "Lease could not be resigned; it runs out by itself", "error", err)
	}
}

// handOver gives the lease up and leaves it to others for a while.
func (t *tenure) handOver(ctx context.Context) {
	t.resign(ctx)
	for ctx.Err() == nil && time.Now().Before(t.l.rest) {
		t.l.wait(ctx, nil)
		// The hint may be that of the own resignation.
		if e, err := t.l.p.Leases.Get(ctx, t.l.key); err == nil && e.State == lease.Held {
			return
		}
	}
}

// lost tells that the lease ended without having been given up.
func (t *tenure) lost() error {
	err := t.hold.Err()
	t.mu.Lock()
	owner := t.owner
	t.mu.Unlock()
	t.l.p.Observer.Changed(terms.OwnerChange{
		Name: t.l.name, WorkflowID: t.l.name.DispatcherID(), Outcome: terms.Lost, From: owner.Holder, FromEpoch: owner.Epoch,
		Reason: err.Error(), At: time.Now(),
	}, 0)
	return nil
}
