// Package match matches events with triggers and listeners: which workflows they start, which runs they wake, which
// sets they complete.
//
// It is pure: the same batch gives the same routings with the same IDs, in every process and at every repetition. A
// [Matcher] caches what it compiled, within bounds, and has no other state.
//
//	m := match.New(match.Options{})
//	e := m.Evaluate(batch)
//	found, err := events.FindListeners(ctx, project, e.Lookups())
//	routings := e.Routings(found) // one for each event, in order
//
// No content of a definition or an event causes an error. A filter that cannot be evaluated on an event does not match
// it; an event that cannot be read is rejected, and the others continue. A filter that does not terminate is cut off,
// and a batch with several such filters ends early, so that the caller makes progress.
//
// # Performance
//
// Runs of one workflow wait with the same filters and differ in the expected values of their correlation keys. Filters
// that are equal except for these values share one shape. Each shape is evaluated once per event, and the index of the
// store has the listeners by the values of the keys: a batch has the shapes of the runs that wait, and only the
// listeners that match are read. Shapes are indexed by the type of the event.
package match

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/event"
)

// Options bound what a matcher caches; zero fields have defaults that suit a process.
type Options struct {
	// Targets is the number of compiled triggers and listeners in the cache; 0 means 20,000.
	Targets uint64
	// Shapes is the number of compiled filters in the cache; 0 means 2,000.
	Shapes uint64
	// Sets is the number of open event sets of one workflow. Beyond it, the oldest set is dropped; 0 means 1,000.
	Sets int
}

const (
	defaultTargets = 20_000
	defaultShapes  = 2000
	defaultSets    = 1000
	// maxNotes is the number of near matches in the reason of one event, so that reasons stay readable.
	maxNotes = 3
	// maxFuel is the compute after which no further event of a batch is matched: less than a second.
	maxFuel = 20_000_000
	// maxDeliveries is the number of deliveries that ends a batch. Without it, events that many runs wait for would make a
	// batch that cannot be written within the timeout of a transaction, at each attempt.
	maxDeliveries = 2000
)

// Matcher matches batches. It is safe for concurrent use.
type Matcher struct {
	compiler *compiler
	sets     int
}

// New makes a matcher.
func New(o Options) *Matcher {
	return &Matcher{
		compiler: newCompiler(cmp.Or(o.Targets, defaultTargets), cmp.Or(o.Shapes, defaultShapes)),
		sets:     cmp.Or(o.Sets, defaultSets),
	}
}

// Evaluation is a batch whose events are evaluated, without the listeners that the index of the store has.
type Evaluation struct {
	batch  event.Batch
	table  *table
	events []evaluated
	sets   int
}

// Evaluate evaluates the events of a batch, in order: all of them, or the first ones, once they have used too much
// compute.
func (m *Matcher) Evaluate(b event.Batch) *Evaluation {
	e := &Evaluation{batch: b, table: m.compiler.table(b), sets: m.sets}
	fuel := int64(0)
	for i := range b.Events {
		if fuel > maxFuel {
			break
		}
		one := e.table.evaluate(&b.Events[i])
		fuel += one.fuel
		e.events = append(e.events, one)
	}
	return e
}

// Lookups returns what Routings requires of the index, in any order.
func (e *Evaluation) Lookups() []event.Lookup {
	wanted := map[event.Lookup]bool{}
	for _, one := range e.events {
		e.table.lookups(one, wanted)
	}
	return slices.Collect(maps.Keys(wanted))
}

// Routings computes the routings of the evaluated events, in order: of all of them, or, once the batch has made too
// many deliveries, of the first ones. It routes at least one event. It is called once.
func (e *Evaluation) Routings(found event.Found) []event.Routing {
	b := e.batch
	read := make(map[string]bool, len(b.Listeners))
	for _, l := range b.Listeners {
		read[l.ID] = true
	}
	e.table.addFound(found, read)
	batch := &batch{
		table: e.table, limit: e.sets, events: make(map[int64]*event.Event, len(b.Events)+len(b.Earlier)),
		open: map[string][]*set{}, stored: map[string][]event.Partial{},
	}
	for _, list := range [][]event.Event{b.Earlier, b.Events} {
		for i := range list {
			batch.events[list[i].Position] = &list[i]
		}
	}
	for _, p := range b.Partials {
		batch.stored[p.Workflow] = append(batch.stored[p.Workflow], p)
	}
	routings := make([]event.Routing, 0, len(e.events))
	for _, one := range e.events {
		if batch.deliveries >= maxDeliveries {
			break
		}
		r := batch.route(one)
		batch.deliveries += len(r.Deliveries)
		routings = append(routings, r)
	}
	return routings
}

// batch is the state while the events of a batch are matched one after another.
type batch struct {
	table  *table
	limit  int
	events map[int64]*event.Event
	// stored are the partials as read from the store; open are the sets of the workflows that were loaded.
	stored map[string][]event.Partial
	open   map[string][]*set
	// deliveries counts the deliveries made so far.
	deliveries int
}

func (b *batch) route(of evaluated) event.Routing {
	e := of.event
	r := event.Routing{Position: e.Position}
	if of.unreadable != nil {
		r.Status, r.Reason = event.Rejected, "it cannot be read: "+of.unreadable.Error()
		return r
	}
	found := b.table.lookup(of)
	notes := found.notes
	for _, h := range found.hits {
		switch {
		case h.target.listener != nil:
			r.Deliveries = append(r.Deliveries, wake(e, h.target.listener))
		case e.AfterFailure():
			notes = append(notes, "it reports a failure that followed from another one, and starts no workflow")
		case h.target.trigger.Paused:
			notes = append(notes, fmt.Sprintf("workflow %q is paused", h.target.trigger.Workflow))
		case h.timed || h.target.spec.Mode != event.All:
			r.Deliveries = append(r.Deliveries, b.start(h.target.trigger, []*event.Event{e}))
		default:
			if note := b.collect(e, h, &r); note != "" {
				notes = append(notes, note)
			}
		}
	}
	switch {
	case len(r.Deliveries) > 0:
		r.Status = event.Routed
	case slices.ContainsFunc(r.Partials, func(p event.Partial) bool { return slices.Contains(p.Positions, e.Position) }):
		r.Status, r.Reason = event.Routed, "it waits for the other events of its set"
	default:
		r.Status, r.Reason = event.Unmatched, unmatched(e.Type, found, notes)
	}
	return r
}

// unmatched returns why no trigger or listener got an event. The text must depend only on the event's type and the near
// matches, because the store keeps one copy for many consecutive events.
func unmatched(typ string, found result, notes []string) string {
	if len(notes) > 0 {
		more := ""
		if n := len(notes) - maxNotes; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return strings.Join(notes[:min(len(notes), maxNotes)], "; ") + more
	}
	if found.near {
		return fmt.Sprintf("the triggers and listeners for type %q match other events of it", typ)
	}
	return fmt.Sprintf("no published workflow and no waiting run matches type %q", typ)
}

func wake(e *event.Event, l *event.Listener) event.Delivery {
	return event.Delivery{
		ID:      derive("wake", l.Project, l.ID, fmt.Sprint(e.Position)),
		Project: e.Project, Position: e.Position, Kind: event.Wake, RunID: l.RunID, Listener: l.ID,
		Positions: []int64{e.Position}, Status: event.DeliveryPending,
	}
}

// start returns the delivery of events to a workflow, in the order of the trigger's filters.
func (b *batch) start(t *event.Trigger, events []*event.Event) event.Delivery {
	parts := []string{t.Project, t.Workflow}
	positions := make([]int64, len(events))
	last := int64(0)
	for i, e := range events {
		parts = append(parts, e.Source, e.ID)
		positions[i] = e.Position
		last = max(last, e.Position)
	}
	return event.Delivery{
		ID: derive("start", parts...), Project: t.Project, Position: last, Kind: event.Start,
		Workflow: t.Workflow, Version: t.Version, RunID: derive("run", parts...),
		Positions: positions, Status: event.DeliveryPending,
	}
}
