// Package sealingkey records which keys have sealed values of the platform, and what still needs each of them.
//
// Every process that seals runs a [Recorder]. It refuses to start without a key that something needs, and with another
// key than the one that sealed values under the same ID; then it keeps the record of the active key current.
//
//	recorder := sealingkey.NewRecorder(store, ring)
//	err := recorder.Start(ctx)
//	keys, err := sealingkey.List(ctx, store, ring)
//
// An open run needs each key that was active while it was open: its values in Temporal were sealed with it. What has
// ended is not counted: its originals are shown as marks without their key, and nothing else depends on it. Times are
// those of the database's clock.
package sealingkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// recordEvery is the interval at which the record of the active key is renewed.
	recordEvery = 10 * time.Second
	// Late is how much older the record of a key may be than the last value that it sealed.
	Late = 2 * recordEvery
)

// Key is a key that has sealed values.
type Key struct {
	ID string
	// Fingerprint identifies the key itself.
	Fingerprint string
	// FirstAt and LastAt are the first and the last time at which a process had it as its active key.
	FirstAt, LastAt time.Time
}

// Use counts what a key is still needed for.
type Use struct {
	// Runs are open runs that may have values sealed with it.
	Runs int64
	// Events are sensitive events that wait to be matched or delivered.
	Events int64
	// Sets are incomplete sets of events of triggers that collect several.
	Sets int64
	// Starts are workflows whose next start after a run may have been scheduled with it.
	Starts int64
	// Webhooks are webhooks whose address and headers it sealed.
	Webhooks int64
}

// Needed reports whether anything needs the key.
func (u Use) Needed() bool { return u != Use{} }

// String lists what needs the key: "3 open runs, 1 webhook".
func (u Use) String() string {
	var parts []string
	for _, part := range []struct {
		n         int64
		one, many string
	}{
		{u.Runs, "open run", "open runs"},
		{u.Events, "waiting event", "waiting events"},
		{u.Sets, "incomplete set of events", "incomplete sets of events"},
		{u.Starts, "scheduled start", "scheduled starts"},
		{u.Webhooks, "webhook", "webhooks"},
	} {
		switch part.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+part.one)
		default:
			parts = append(parts, fmt.Sprint(part.n, " ", part.many))
		}
	}
	return strings.Join(parts, ", ")
}

// Uses has what needs each key, by ID.
type Uses map[string]Use

// Add adds to what needs a key.
func (u Uses) Add(id string, more Use) {
	use := u[id]
	u[id] = Use{use.Runs + more.Runs, use.Events + more.Events, use.Sets + more.Sets, use.Starts + more.Starts,
		use.Webhooks + more.Webhooks}
}

// Store stores the records of the keys.
type Store interface {
	// RecordSealingKey adds the key, or sets the time of its last use to the database's time. The fingerprint of a known
	// key does not change.
	RecordSealingKey(ctx context.Context, id, fingerprint string) error
	// SealingKeys returns all keys that were recorded.
	SealingKeys(ctx context.Context) ([]Key, error)
	// SealingKeyUses returns what needs each key, also keys that were never recorded.
	SealingKeyUses(ctx context.Context) (Uses, error)
}

// Keys are the keys that this process has.
type Keys interface {
	Active() string
	// Seals reports whether values are sealed.
	Seals() bool
	// Fingerprint returns the fingerprint of a key, and false for one that the process does not have.
	Fingerprint(id string) (text string, known bool)
}

// State is a key with what it is needed for.
type State struct {
	Key
	Use

	// Active reports whether this process seals with it, Configured whether this process has it.
	Active, Configured bool
}

// List returns all keys that have sealed values, the last used first.
func List(ctx context.Context, store Store, keys Keys) ([]State, error) {
	recorded, err := store.SealingKeys(ctx)
	if err != nil {
		return nil, err
	}
	uses, err := store.SealingKeyUses(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]State, 0, len(recorded))
	for _, k := range recorded {
		configured := has(keys, k.ID)
		list = append(list, State{
			Key: k, Use: uses[k.ID], Configured: configured, Active: configured && keys.Seals() && k.ID == keys.Active()})
		delete(uses, k.ID)
	}
	for id, use := range uses {
		list = append(list, State{Key: Key{ID: id}, Use: use, Configured: has(keys, id)})
	}
	slices.SortFunc(list, func(a, b State) int { return cmp.Or(b.LastAt.Compare(a.LastAt), strings.Compare(a.ID, b.ID)) })
	return list, nil
}

// RefusedError is why a process with these keys must not start.
type RefusedError struct{ Violations []string }

// Error lists all violations.
func (e *RefusedError) Error() string { return "encryption.keys: " + strings.Join(e.Violations, "; ") }

// Check returns a [RefusedError] where a key differs from the one that sealed values under its ID, or a key that
// something needs is missing.
func Check(ctx context.Context, store Store, keys Keys) error {
	recorded, err := store.SealingKeys(ctx)
	if err != nil {
		return err
	}
	refused := &RefusedError{Violations: different(recorded, keys)}
	if slices.ContainsFunc(recorded, func(k Key) bool { return !has(keys, k.ID) }) {
		uses, err := store.SealingKeyUses(ctx)
		if err != nil {
			return err
		}
		for _, k := range recorded {
			if use := uses[k.ID]; !has(keys, k.ID) && use.Needed() {
				refused.Violations = append(refused.Violations,
					fmt.Sprintf("the key %q is missing, which %s still need; put it back, and remove it when "+
						"`signalbox system keys` shows that nothing needs it", k.ID, use))
			}
		}
	}
	if len(refused.Violations) > 0 {
		return refused
	}
	return nil
}

func has(keys Keys, id string) bool {
	_, known := keys.Fingerprint(id)
	return known
}

// different returns the violations of keys that are not those that sealed values under their IDs.
func different(recorded []Key, keys Keys) (violations []string) {
	for _, k := range recorded {
		if own, known := keys.Fingerprint(k.ID); known && own != k.Fingerprint {
			violations = append(violations,
				fmt.Sprintf("the key %q is not the one that sealed values here: its fingerprint is %s, that of the other one %s; "+
					"configure that one, or give this one an ID of its own", k.ID, own, k.Fingerprint))
		}
	}
	return violations
}

// Recorder keeps the record of the active key current.
type Recorder struct {
	*loop.Loop

	store   Store
	keys    Keys
	failing bool
}

// NewRecorder returns the recorder of this process.
func NewRecorder(store Store, keys Keys) *Recorder {
	r := &Recorder{store: store, keys: keys}
	r.Loop = loop.New(r.renew)
	return r
}

// Start checks the keys, and records the active one before anything is sealed with it.
func (r *Recorder) Start(ctx context.Context) error {
	if err := Check(ctx, r.store, r.keys); err != nil {
		return err
	}
	if err := r.record(ctx); err != nil {
		return err
	}
	recorded, err := r.store.SealingKeys(ctx)
	if err != nil {
		return err
	}
	// Another process may have recorded another key under this ID in the meantime.
	if violations := different(recorded, r.keys); len(violations) > 0 {
		return &RefusedError{Violations: violations}
	}
	return r.Loop.Start(ctx)
}

// Stop records the active key for the last time.
func (r *Recorder) Stop(ctx context.Context) error {
	return errors.Join(r.Loop.Stop(ctx), r.record(ctx))
}

func (r *Recorder) record(ctx context.Context) error {
	if !r.keys.Seals() {
		return nil
	}
	fingerprint, _ := r.keys.Fingerprint(r.keys.Active())
	return r.store.RecordSealingKey(ctx, r.keys.Active(), fingerprint)
}

func (r *Recorder) renew(ctx, _ context.Context) time.Duration {
	err := r.record(ctx)
	if err != nil && ctx.Err() == nil && !r.failing {
		logger.FromContext(ctx).WarnContext(ctx, "The record of the active sealing key could not be renewed; trying again",
			"error", err)
	}
	r.failing = err != nil
	return recordEvery
}
