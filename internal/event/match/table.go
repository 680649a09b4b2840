package match

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
)

// target is a trigger or a listener of a batch.
type target struct {
	// order is that among the triggers; listeners follow them, in order of ID.
	order    int
	trigger  *event.Trigger
	listener *event.Listener
	spec     *event.Spec
	since    int64
	hash     string
}

// name returns the name of the target in a reason.
func (t *target) name() string {
	if t.trigger != nil {
		return fmt.Sprintf("workflow %q", t.trigger.Workflow)
	}
	return fmt.Sprintf("run %s", t.listener.RunID)
}

// listening returns the target of a listener.
func listening(l *event.Listener) *target {
	return &target{order: math.MaxInt, listener: l, spec: &l.Spec, since: l.Since}
}

// compare orders targets.
func (t *target) compare(with *target) int {
	if t.listener != nil && with.listener != nil {
		return cmp.Compare(t.listener.ID, with.listener.ID)
	}
	return cmp.Compare(t.order, with.order)
}

// ref is one filter of a target.
type ref struct {
	target *target
	filter int
}

// table maps an event to the targets that may match it.
type table struct {
	compiler *compiler
	groups   map[string]*group // by the hash of their shape
	// shapes are indexed by the event type that they match; shapes for any type are under the empty one.
	shapes map[string][]*group
	// every are the targets that match every event; timed are those that match the events of a timer, by its source.
	every []*target
	timed map[string][]*target
	// indexed: the index of the store has listeners that match every event.
	indexed bool
}

// group are the filters of one shape, by the expected values of the correlation keys.
type group struct {
	shape *compiledShape
	refs  map[string][]ref
	// indexed: the index of the store has listeners with this shape. found are those that were looked up, and summary
	// describes all of them, where it was needed.
	indexed bool
	found   map[string][]ref
	summary *event.Summary
}

// table builds the table of a batch, without the listeners of the index.
func (c *compiler) table(b event.Batch) *table {
	t := &table{compiler: c, groups: map[string]*group{}, shapes: map[string][]*group{}, timed: map[string][]*target{}}
	for i := range b.Triggers {
		trigger := &b.Triggers[i]
		key := targetKey{trigger.Project, trigger.Workflow, trigger.DocumentHash, trigger.Spec.Timed}
		to := &target{order: i, trigger: trigger, spec: &trigger.Spec, since: trigger.Since}
		compiled := t.add(key, to)
		to.hash = compiled.hash
		if to.spec.Timed != "" {
			t.timed[to.spec.Timed] = append(t.timed[to.spec.Timed], to)
		}
	}
	for i := range b.Listeners {
		l := &b.Listeners[i]
		t.add(listenerKey(l), listening(l))
	}
	for _, s := range b.Shapes {
		if s.Hash == event.EveryEvent {
			t.indexed = true
			continue
		}
		t.group(c.shape(s)).indexed = true
	}
	return t
}

func listenerKey(l *event.Listener) targetKey { return targetKey{project: l.Project, name: l.ID} }

func (t *table) add(key targetKey, to *target) *compiled {
	c := t.compiler.compile(key, *to.spec)
	if to.spec.Mode == event.Any && len(to.spec.Filters) == 0 {
		t.every = append(t.every, to)
	}
	for i, f := range c.filters {
		refs := t.group(f.shape).refs
		refs[f.expect] = append(refs[f.expect], ref{to, i})
	}
	return c
}

// addFound adds what was looked up in the index.
func (t *table) addFound(found event.Found, unless map[string]bool) {
	for i := range found.Listeners {
		l := &found.Listeners[i]
		if unless[l.ID] {
			continue
		}
		to := listening(l)
		if to.spec.Mode == event.Any && len(to.spec.Filters) == 0 {
			t.every = append(t.every, to)
		}
		for n, f := range t.compiler.compile(listenerKey(l), l.Spec).filters {
			g := t.group(f.shape)
			g.found[f.expect] = append(g.found[f.expect], ref{to, n})
		}
	}
	for i := range found.Summaries {
		s := &found.Summaries[i]
		if g := t.groups[s.Shape]; g != nil {
			g.summary = s
		}
	}
}

func (t *table) group(s *compiledShape) *group {
	g, there := t.groups[s.Hash]
	if !there {
		g = &group{shape: s, refs: map[string][]ref{}, found: map[string][]ref{}}
		t.groups[s.Hash] = g
		t.shapes[s.Type] = append(t.shapes[s.Type], g)
	}
	return g
}

// hit is a target that matches an event.
type hit struct {
	target *target
	timed  bool
	// filters are the matching filters, in order, with the values of their correlation keys.
	filters []matched
}

type matched struct {
	index int
	keys  map[string]any
}

// result is what the table returns for one event.
type result struct {
	// hits in order of their targets: triggers, then listeners.
	hits []hit
	// near: a target expects events of this type. notes are the errors of those targets' filters.
	near  bool
	notes []string
}

// types returns the types of the shapes that may match an event. Only filters that name its type match an event that
// reports a failure.
func types(e *event.Event) []string {
	if event.ReportsFailure(e.Type) {
		return []string{e.Type}
	}
	return []string{e.Type, ""}
}

// evaluated is an event with the results of the shapes for its type.
type evaluated struct {
	event *event.Event
	// unreadable is the error of an event that cannot be read.
	unreadable error
	groups     []outcome
	fuel       int64
}

// outcome is the result of one shape on one event.
type outcome struct {
	group *group
	match eventfilter.Match
	// values are those that a filter must expect to match the event.
	values string
}

// ok reports whether the event matches the filters that expect the values.
func (o outcome) ok() bool { return o.group.shape.broken == nil && o.match.OK }

// failed reports whether the filter could not be evaluated.
func (o outcome) failed() bool { return o.group.shape.broken != nil || o.match.Failure != "" }

// evaluate evaluates the shapes that may match an event.
func (t *table) evaluate(e *event.Event) evaluated {
	out := evaluated{event: e}
	value, err := jq.DecodeJSON(cloudevents.JSON(*e))
	if err != nil {
		out.unreadable = err
		return out
	}
	plain, _ := value.(map[string]any)
	for _, typ := range types(e) {
		for _, g := range t.shapes[typ] {
			o := outcome{group: g}
			if g.shape.broken == nil {
				o.match = g.shape.matcher.Match(plain)
				o.values = g.shape.expected(o.match)
				out.fuel += o.match.Fuel
			}
			out.groups = append(out.groups, o)
		}
	}
	return out
}

// lookups adds what the index must return for an event.
func (t *table) lookups(e evaluated, to map[event.Lookup]bool) {
	if e.unreadable != nil {
		return
	}
	if t.indexed && !event.ReportsFailure(e.event.Type) {
		to[event.Lookup{Entry: event.Entry{Shape: event.EveryEvent}}] = true
	}
	for _, o := range e.groups {
		entry := event.Entry{Type: o.group.shape.Type, Shape: o.group.shape.Hash}
		switch {
		case !o.group.indexed:
		case o.failed():
			to[event.Lookup{Entry: entry, Summary: true}] = true
		case o.ok():
			entry.Values = o.values
			to[event.Lookup{Entry: entry}] = true
		}
	}
}

// lookup returns the targets that match an event.
func (t *table) lookup(of evaluated) result {
	var l result
	e := of.event
	hits := map[*target]*hit{}
	at := func(to *target) *hit {
		if e.Position <= to.since {
			return nil // the event was accepted before the target
		}
		h, ok := hits[to]
		if !ok {
			h = &hit{target: to}
			hits[to] = h
		}
		return h
	}
	if !event.ReportsFailure(e.Type) {
		for _, to := range t.every {
			at(to)
		}
	}
	if e.Type == event.ScheduleFired {
		for _, to := range t.timed[e.Source] {
			if h := at(to); h != nil {
				h.timed = true
			}
		}
	}
	for _, o := range of.groups {
		l.near = l.near || o.group.shape.Type != ""
		if !o.ok() {
			continue
		}
		for _, refs := range [][]ref{o.group.refs[o.values], o.group.found[o.values]} {
			for _, ref := range refs {
				if h := at(ref.target); h != nil {
					h.filters = append(h.filters, matched{ref.filter, o.match.Keys})
				}
			}
		}
	}
	for _, h := range hits {
		slices.SortFunc(h.filters, func(a, b matched) int { return cmp.Compare(a.index, b.index) })
		l.hits = append(l.hits, *h)
	}
	slices.SortFunc(l.hits, func(a, b hit) int { return a.target.compare(b.target) })
	l.notes = notes(of)
	return l
}

// expected returns the values that a filter of this shape must expect to match an event.
func (s *compiledShape) expected(m eventfilter.Match) string {
	values := make([]any, len(s.Expects))
	for i, name := range s.Expects {
		values[i] = m.Keys[name]
	}
	return event.ShapeValues(values)
}

// notes describes the filters that could not be evaluated: those for the type of the event first, each in the order of
// the first target that has it.
func notes(of evaluated) []string {
	var failed []outcome
	for _, o := range of.groups {
		if first, _ := o.group.targets(); o.failed() && first != nil {
			failed = append(failed, o)
		}
	}
	slices.SortStableFunc(failed, func(a, b outcome) int {
		if typed := a.group.shape.Type != ""; typed != (b.group.shape.Type != "") {
			if typed {
				return -1
			}
			return 1
		}
		first, _ := a.group.targets()
		second, _ := b.group.targets()
		return first.compare(second)
	})
	list := make([]string, len(failed))
	for i, o := range failed {
		list[i] = o.group.note(failure(of.event, o))
	}
	return list
}

// failure returns the error of a filter on an event. It may quote the data.
func failure(e *event.Event, o outcome) string {
	if broken := o.group.shape.broken; broken != nil {
		return "cannot be evaluated: " + broken.Error()
	}
	if e.Opened {
		return "cannot be evaluated; the cause is hidden, because the event has sensitive values"
	}
	return o.match.Failure
}

// targets returns the first of the targets that share a filter, and their number.
func (g *group) targets() (first *target, count int) {
	for _, refs := range g.refs {
		for _, r := range refs {
			count++
			if first == nil || r.target.compare(first) < 0 {
				first = r.target
			}
		}
	}
	if g.summary != nil && g.summary.Count > 0 {
		count += g.summary.Count
		if to := listening(&g.summary.First); first == nil || to.compare(first) < 0 {
			first = to
		}
	}
	return first, count
}

// note describes an error of a filter and names the first of the targets that share the filter.
func (g *group) note(failure string) string {
	first, count := g.targets()
	others := ""
	if count > 1 {
		others = fmt.Sprintf(" and %d more", count-1)
	}
	const longest = 200
	return fmt.Sprintf("the filter of %s%s %.*s", first.name(), others, longest, failure)
}
