// Package match decides what events are for: which workflows they start, which runs they wake, which sets they complete.
//
// It is pure: the same batch gives the same routings, with the same IDs, whoever computes them and however often. A [Matcher]
// keeps what it compiled, within bounds, and nothing else.
//
//	m := match.New(match.Options{})
//	routings := m.Match(batch) // one for each event, in order; see Match
//
// Nothing that a definition or an event contains ends in an error. A filter that cannot be evaluated on an event does not
// match it; an event that cannot be read is rejected, and the others go on. A filter that computes for ever is cut off, and a batch with
// several such ends early, so that whoever matches gets on.
//
// # How it stays fast
//
// Runs of one workflow wait with the same filters and differ in what they expect of correlation keys. Filters that are equal but for
// that are one shape; each shape is evaluated once per event, and a table leads from the values of the keys to the runs
// that expect them. Shapes are found by the type of the event.
package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
)

// Options bound what a matcher keeps; zero fields have defaults that suit a process.
type Options struct {
	// Targets is how many triggers and listeners are kept compiled; 0 means 20,000.
	Targets int
	// Shapes is how many filters are kept compiled; 0 means 2,000.
	Shapes int
	// Sets is how many sets of events one workflow may have open, before the oldest is let go; 0 means 1,000.
	Sets int
}

const (
	defaultTargets = 20_000
	defaultShapes  = 2000
	defaultSets    = 1000
	// maxNotes is how many near misses are told of one event, so that reasons stay readable.
	maxNotes = 3
	// maxFuel is the compute after which no further event of a batch is matched: less than a second.
	maxFuel = 20_000_000
	// maxDeliveries is how many deliveries end a batch: one that many runs wait for each event of could not be written in the time that
	// a transaction has, again and again.
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

// Match decides what becomes of the events of a batch, in order: of all, or, when that took too much compute or made too many
// deliveries, of the first ones; of one at least.
func (m *Matcher) Match(b event.Batch) []event.Routing {
	batch := &batch{
		table: m.compiler.table(b), limit: m.sets, events: make(map[int64]*event.Event, len(b.Events)+len(b.Earlier)),
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
	routings := make([]event.Routing, 0, len(b.Events))
	for i := range b.Events {
		if batch.fuel > maxFuel || batch.deliveries >= maxDeliveries {
			break
		}
		r := batch.route(&b.Events[i])
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
	// stored are the partials as they were read, open the sets of those workflows that were looked at.
	stored map[string][]event.Partial
	open   map[string][]*set
	// fuel is the compute that it took so far.
	fuel int64
	// deliveries counts those made so far.
	deliveries int
}

func (b *batch) route(e *event.Event) event.Routing {
	r := event.Routing{Position: e.Position}
	value, err := jq.DecodeJSON(cloudevents.JSON(*e))
	if err != nil {
		r.Status, r.Reason = event.Rejected, "it cannot be read: "+err.Error()
		return r
	}
	plain, _ := value.(map[string]any)
	found := b.table.look(e, plain)
	b.fuel += found.fuel
	notes := found.notes
	for _, h := range found.hits {
		switch {
		case h.target.listener != nil:
			r.Deliveries = append(r.Deliveries, wake(e, h.target.listener))
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

// unmatched says why nobody got an event. The text must not depend on more than its type and who came near, as it is kept
// once for many events in a row.
func unmatched(typ string, found look, notes []string) string {
	if len(notes) > 0 {
		more := ""
		if n := len(notes) - maxNotes; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return strings.Join(notes[:min(len(notes), maxNotes)], "; ") + more
	}
	if found.near {
		return fmt.Sprintf("those that want type %q want other events of it", typ)
	}
	return fmt.Sprintf("no published workflow and no waiting run wants type %q", typ)
}

func wake(e *event.Event, l *event.Listener) event.Delivery {
	return event.Delivery{
		ID:      derive("wake", l.Project, l.ID, fmt.Sprint(e.Position)),
		Project: e.Project, Position: e.Position, Kind: event.Wake, RunID: l.RunID, Listener: l.ID,
		Positions: []int64{e.Position}, Status: event.DeliveryPending,
	}
}

// start is the delivery of events, in the order of the trigger's filters, to a workflow.
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
