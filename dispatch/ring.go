package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

var (
	// ErrNotOpen is returned where no dispatcher is open. The owner starts it again, and the new run finds the pending
	// work.
	ErrNotOpen = errors.New("no dispatcher is open")
	// ErrNotOwned is returned where the dispatcher has no owner that could hand it over.
	ErrNotOwned = dispatchtype.ErrNotOwned
)

const (
	// handoverTTL is how long a handover request is valid.
	handoverTTL = 30 * time.Second
	ringTimeout = 10 * time.Second
)

// Ring wakes a parked dispatcher by its doorbell signal. Concurrent callers share one signal, which suffices: the
// dispatcher then finds every event accepted before. Ring starts no dispatcher. It returns [ErrNotOpen] where none is
// open.
func (d *Dispatchers) Ring(ctx context.Context, name Name) error {
	ring := d.rings.DoChan(name.DispatcherID(), func() (any, error) {
		// The first caller signals for all: its cancellation must not end the others' request.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), ringTimeout)
		defer cancel()
		err := d.temporal.Ring(shared, name)
		if errors.Is(err, remote.ErrGone) {
			d.notifyOwner(shared, name)
			err = ErrNotOpen
		}
		return nil, err
	})
	select {
	case rung := <-ring:
		if rung.Err != nil {
			return fmt.Errorf("ring dispatcher %q: %w", name.DispatcherID(), rung.Err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ring dispatcher %q: %w", name.DispatcherID(), context.Cause(ctx))
	}
}

// RequestHandover asks the owner of a dispatcher to resign, and records the requester and the reason. It returns once
// the request is stored. Where no other process serves the dispatcher, the same one acquires it again after a few
// seconds. It returns [ErrNotOwned] where there is no owner.
func (d *Dispatchers) RequestHandover(ctx context.Context, name Name, by, reason string) error {
	if err := wire.Validate(name); err != nil {
		return fmt.Errorf("request handover: %w", err)
	}
	owned, err := d.o.Leases.Get(ctx, wire.OwnerKey(name))
	if errors.Is(err, lease.ErrNotFound) || err == nil && owned.State != lease.Held {
		return fmt.Errorf("request handover of %q: %w", name.DispatcherID(), ErrNotOwned)
	}
	if err != nil {
		return fmt.Errorf("request handover of %q: %w", name.DispatcherID(), err)
	}
	value, err := json.Marshal(wire.Request{By: by, Reason: reason})
	if err != nil {
		return err
	}
	terms := lease.Lifetime{TTL: handoverTTL, Retention: handoverTTL}
	_, _, err = d.o.Leases.Acquire(ctx, wire.HandoverKey(name), d.o.ServerID, value, terms)
	if err != nil && !errors.Is(err, lease.ErrHeld) { // an earlier request is still pending
		return fmt.Errorf("request handover of %q: %w", name.DispatcherID(), err)
	}
	return nil
}
