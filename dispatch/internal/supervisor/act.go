package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// guardPrefix makes the holder of a lease that a supervisor acquires to terminate a dispatcher. The holder differs from
// the server ID: the process's heartbeat would make the dispatcher look owned if the supervisor died halfway. The
// prefix is no longer than that of heartbeats, with which server IDs are validated to fit.
const guardPrefix = "super:"

// act takes the actions of the second plan that the first plan had too. The error joins the failed ones.
func (s *Supervisor) act(ctx context.Context, confirmed plan.Plan, r *result) error {
	var failed []error
	done := func(item *dispatchtype.ReportItem, applied bool, err error) {
		item.Applied = applied
		if err != nil {
			item.Error = err.Error()
			failed = append(failed, err)
		}
	}
	allowed, err := s.allowed(ctx, len(confirmed.Terminate))
	if err != nil {
		failed = append(failed, err)
	}
	for i := range confirmed.Terminate {
		v := &confirmed.Terminate[i]
		item := r.find(dispatchtype.ActionTerminate, v.Name, v.RunID)
		switch {
		case item == nil:
		case i >= allowed:
			item.Action = dispatchtype.ActionPostpone
		case s.o.Pace.Wait(ctx) == nil:
			applied, err := s.end(ctx, v, currentOf(confirmed, v.Name))
			done(item, applied, err)
		}
	}
	for _, d := range confirmed.Delete {
		if item := r.find(dispatchtype.ActionDeleteEntry, d.Name, ""); item != nil && ctx.Err() == nil {
			applied, err := s.remove(ctx, d.Name, d.Key, d.Token, d.Revision)
			if applied {
				s.o.Record.Cleaned(d.Name, 0)
			}
			done(item, applied, err)
		}
	}
	return errors.Join(failed...)
}

// currentOf returns the owner, by its memo, of the dispatcher that has replaced one with an older ID.
func currentOf(p plan.Plan, name inbox.Name) inbox.Owner {
	for i := range p.Verdicts {
		if v := &p.Verdicts[i]; v.Name == name && v.Belongs == wire.Mine && v.Class == dispatchtype.ClassHealthy {
			return ownerOf(v)
		}
	}
	return inbox.Owner{}
}

// end terminates a dispatcher and deletes its entry. It reports whether it did; false without an error means that
// another process was faster.
func (s *Supervisor) end(ctx context.Context, v *plan.Verdict, current inbox.Owner) (bool, error) {
	var guard *lease.Entry
	if v.Kind != plan.OlderScheme && v.Belongs != wire.OlderScheme {
		var err error
		if guard, err = s.guard(ctx, v); err != nil || guard == nil {
			return false, err
		}
	}
	t := termination(v, s.o.ServerID, current)
	switch err := s.o.Temporal.Terminate(ctx, v.WorkflowID, v.RunID, t.Reason); {
	case errors.Is(err, remote.ErrGone):
		// The run completed or continued as new: the next cycle sees which.
		if guard == nil {
			return false, nil
		}
		_, err := s.remove(ctx, v.Name, guard.Key, guard.Token, guard.Revision)
		return false, err
	case err != nil:
		s.o.Record.Terminated(t, err)
		s.o.Record.CleanupFailed(v.Name)
		return false, err
	}
	s.o.Record.Terminated(t, nil)
	s.o.Record.Cleaned(v.Name, v.SilentFor)
	if guard == nil {
		return true, nil
	}
	_, err := s.remove(ctx, v.Name, guard.Key, guard.Token, guard.Revision)
	return true, err
}

// guard acquires the lease in place of the entry that was read; nil if the entry has changed.
func (s *Supervisor) guard(ctx context.Context, v *plan.Verdict) (*lease.Entry, error) {
	holder := guardPrefix + s.o.ServerID
	value, err := json.Marshal(wire.Claim{ServerID: holder})
	if err != nil {
		return nil, err
	}
	ask, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	got, before, err := s.o.Leases.Acquire(ask, wire.OwnerKey(v.Name), holder, value, s.o.Guard)
	switch {
	case errors.Is(err, lease.ErrHeld):
		return nil, nil
	case err != nil:
		s.o.Record.CleanupFailed(v.Name)
		return nil, fmt.Errorf("take the lease of dispatcher %q: %w", v.WorkflowID, err)
	case same(before, v.Entry):
		return &got, nil
	}
	return nil, s.release(ctx, v.Name, &got)
}

func same(a, b *lease.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Token == b.Token && a.Revision == b.Revision
}

// release resigns a lease that is not needed.
func (s *Supervisor) release(ctx context.Context, name inbox.Name, guard *lease.Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := s.o.Leases.Resign(ctx, guard.Key, guard.Token)
	if err == nil || errors.Is(err, lease.ErrLost) {
		return nil
	}
	s.o.Record.CleanupFailed(name)
	return fmt.Errorf("resign entry %q: %w", guard.Key, err)
}

// remove deletes an entry if it has not changed, and reports whether it did.
func (s *Supervisor) remove(ctx context.Context, name inbox.Name, key, token string, revision int64) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := s.o.Leases.Delete(ctx, key, token, revision)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, lease.ErrChanged), errors.Is(err, lease.ErrNotFound):
		return false, nil
	}
	s.o.Record.CleanupFailed(name)
	return false, fmt.Errorf("delete entry %q: %w", key, err)
}

// termination returns the journal's entry, with the reason and both owners.
func termination(v *plan.Verdict, by string, current inbox.Owner) dispatchtype.Termination {
	from := ownerOf(v)
	t := dispatchtype.Termination{
		Name: v.Name, WorkflowID: v.WorkflowID, RunID: v.RunID, Kind: string(v.Kind), From: from, By: by, At: time.Now(),
	}
	previous := "of an unknown owner"
	if from.Holder != "" {
		previous = fmt.Sprintf("of %q (epoch %d)", from.Holder, from.Epoch)
	}
	next := "it has no owner now"
	if current.Holder != "" {
		t.To = current
		next = fmt.Sprintf("now %q (epoch %d) owns another", current.Holder, current.Epoch)
	}
	t.Reason = fmt.Sprintf("terminated by the supervisor of %q; %s; %s: %s", by, previous, next, v.Reason)
	return t
}
