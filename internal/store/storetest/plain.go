package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/sealed/sealedtest"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
)

// MaxLookback is the number of earlier events of one type that the listeners of [Plain] look through.
const MaxLookback = 200

// Plain is a store that accepts unsealed runs, for tests: no value in them is hidden.
type Plain struct {
	*store.Store

	rows     *sealed.Rows
	events   *Events
	verdicts *Verdicts
	batches  *Batches
}

type (
	// Events is the part of the store for events.
	Events struct {
		*events.Store

		plain *sealed.Events
	}
	// Verdicts is the part of the store for verdicts.
	Verdicts struct {
		*runrow.VerdictRows

		plain *sealed.Verdicts
	}
	// Batches is the part of the store for batches.
	Batches struct {
		*store.Batches

		plain *sealed.Batches
	}
)

var (
	_ Store           = (*Plain)(nil)
	_ event.Store     = (*Events)(nil)
	_ diagnose.Store  = (*Verdicts)(nil)
	_ batch.WorkStore = (*Batches)(nil)
)

// Open opens a store as [store.Open] does.
func Open(ctx context.Context, t testing.TB, o store.Options) (*Plain, error) {
	t.Helper()
	o.RecordEvery = time.Nanosecond // each activity
	s, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	v := sealedtest.NewSealer(t)
	return &Plain{
		Store: s, rows: v.Rows(s),
		events:   &Events{s.Events(), v.Events(s.Events(), match.New(match.Options{}).Search(MaxLookback))},
		verdicts: &Verdicts{s.Verdicts(), v.Verdicts(s.Verdicts())},
		batches:  &Batches{s.Batches(), v.Batches(s.Batches())},
	}, nil
}

// InsertRun implements [run.Store].
func (p *Plain) InsertRun(ctx context.Context, r run.Run, e audit.Entry) (run.Run, bool, error) {
	return p.rows.InsertRun(ctx, r, e)
}

// EnqueueRun implements [run.QueueStore].
func (p *Plain) EnqueueRun(ctx context.Context, r run.Run, limit int, e audit.Entry) (run.Run, bool, error) {
	return p.rows.EnqueueRun(ctx, r, limit, e)
}

// ApplyUpdates implements [run.Store].
func (p *Plain) ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error) {
	return p.rows.ApplyUpdates(ctx, updates)
}

// CorrectRun implements [run.ReconcileStore].
func (p *Plain) CorrectRun(ctx context.Context, u run.Update, e *audit.Entry) (bool, error) {
	return p.rows.CorrectRun(ctx, u, e)
}

// FollowExecution implements [run.ReconcileStore].
func (p *Plain) FollowExecution(ctx context.Context, u run.Update, from string, left []string,
	e audit.Entry) (bool, error) {
	return p.rows.FollowExecution(ctx, u, from, left, e)
}

// FinishMissing implements [run.Store].
func (p *Plain) FinishMissing(ctx context.Context, id string, status run.Status, runError *run.Error, at time.Time,
	e audit.Entry) (bool, error) {
	return p.rows.FinishMissing(ctx, id, status, runError, at, e)
}

// FinishQueued implements [run.QueueStore].
func (p *Plain) FinishQueued(ctx context.Context, r run.Run, e audit.Entry) (bool, error) {
	return p.rows.FinishQueued(ctx, r, e)
}

// RemoveUnstarted implements [run.Store].
func (p *Plain) RemoveUnstarted(ctx context.Context, id string, e audit.Entry) (bool, error) {
	return p.rows.RemoveUnstarted(ctx, id, e)
}

// PostponeRepair implements [run.RepairStore].
func (p *Plain) PostponeRepair(ctx context.Context, r run.Repair, after time.Duration, failure string) error {
	return p.rows.PostponeRepair(ctx, r, after, failure)
}

// Events returns the store's events.
func (p *Plain) Events() *Events { return p.events }

// Verdicts returns the store's verdicts.
func (p *Plain) Verdicts() *Verdicts { return p.verdicts }

// Batches returns the store's batches.
func (p *Plain) Batches() *Batches { return p.batches }

// Publish implements [event.Store].
func (e *Events) Publish(ctx context.Context, project string, list []event.Event) ([]event.Accepted, bool, error) {
	return e.plain.Publish(ctx, project, list)
}

// FindListeners implements [event.Rows].
func (e *Events) FindListeners(ctx context.Context, project string, lookups []event.Lookup) (event.Found, error) {
	return e.plain.FindListeners(ctx, project, lookups)
}

// Listen implements [event.Store].
func (e *Events) Listen(ctx context.Context, l event.Listener) (event.Listening, error) {
	return e.plain.Listen(ctx, l)
}

// CommitRouting implements [event.Store].
func (e *Events) CommitRouting(ctx context.Context, project string, owner inbox.Owner, routings []event.Routing) error {
	return e.plain.CommitRouting(ctx, project, owner, routings)
}

// RecordOutcomes implements [event.Store].
func (e *Events) RecordOutcomes(ctx context.Context, project string, owner inbox.Owner,
	outcomes []inbox.DeliveryOutcome) error {
	return e.plain.RecordOutcomes(ctx, project, owner, outcomes)
}

// RecordOwner implements [event.Store].
func (e *Events) RecordOwner(ctx context.Context, c dispatchtype.OwnerChange, notice event.Event,
	entry audit.Entry) error {
	return e.plain.RecordOwner(ctx, c, notice, entry)
}

// ChangeVerdicts implements [diagnose.Store].
func (v *Verdicts) ChangeVerdicts(ctx context.Context, project string, at time.Time,
	changes []diagnose.Change) (diagnose.Changed, error) {
	return v.plain.ChangeVerdicts(ctx, project, at, changes)
}

// NoteFailures implements [diagnose.Store].
func (v *Verdicts) NoteFailures(ctx context.Context, failures []diagnose.TaskFailure) error {
	return v.plain.NoteFailures(ctx, failures)
}

// WriteItems implements [batch.WorkStore].
func (b *Batches) WriteItems(ctx context.Context, id string, items []batch.Item, at time.Time) error {
	return b.plain.WriteItems(ctx, id, items, at)
}

// SetWaitReason implements [batch.WorkStore].
func (b *Batches) SetWaitReason(ctx context.Context, id, runID, why string) (kept string, err error) {
	return b.plain.SetWaitReason(ctx, id, runID, why)
}
