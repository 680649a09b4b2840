package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/lease"
)

var (
	// ErrNotOpen is returned where no dispatcher is open. Its owner starts it again, and it then finds what there is to do.
	ErrNotOpen = errors.New("no dispatcher is open")
	// ErrNotOwned is returned where nobody owns the dispatcher, so nobody can hand it over.
	ErrNotOwned = errors.New("the dispatcher has no owner")
)

const (
	// handoverTTL is for how long a request to hand over counts.
	handoverTTL = 30 * time.Second
	ringTimeout = 10 * time.Second
)

// Ring rings the doorbell of a parked dispatcher. Those who ring at the same time share one ring, which is enough: whatever was
// accepted before it is found. It starts nothing. [ErrNotOpen].
func (d *Dispatchers) Ring(ctx context.Context, name Name) error {
	ring := d.rings.DoChan(name.DispatcherID(), func() (any, error) {
		// Who rang first does so for all: its leaving may not end the others' ring.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), ringTimeout)
		defer cancel()
		err := d.temporal.Ring(shared, name)
		if errors.Is(err, remote.ErrGone) {
			d.lookAfter(shared, name)
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

// RequestHandover asks the owner of a dispatcher to give it to another process, in the name of whoever wants that. It returns when
// the owner can read it; where there is no other process, the same one owns it again after a few seconds. [ErrNotOwned].
func (d *Dispatchers) RequestHandover(ctx context.Context, name Name, by, reason string) error {
	if err := contract.Validate(name); err != nil {
		return fmt.Errorf("request handover: %w", err)
	}
	owned, err := d.o.Leases.Get(ctx, contract.OwnerKey(name))
	if errors.Is(err, lease.ErrNotFound) || err == nil && owned.State != lease.Held {
		return fmt.Errorf("request handover of %q: %w", name.DispatcherID(), ErrNotOwned)
	}
	if err != nil {
		return fmt.Errorf("request handover of %q: %w", name.DispatcherID(), err)
	}
	value, err := json.Marshal(contract.Request{By: by, Reason: reason})
	if err != nil {
		return err
	}
	terms := lease.Terms{TTL: handoverTTL, Retention: handoverTTL}
	_, _, err = d.o.Leases.Acquire(ctx, contract.HandoverKey(name), d.o.ServerID, value, terms)
	if err != nil && !errors.Is(err, lease.ErrHeld) { // one was made already, and not heeded yet
		return fmt.Errorf("request handover of %q: %w", name.DispatcherID(), err)
	}
	return nil
}
