package match

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// target is a trigger or a listener of a batch.
type target struct {
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

// ref is one filter of a target.
type ref struct {
	target *target
	filter int
}

// table maps an event to the targets that may match it.
type table struct {
	// shapes are indexed by the event type that they match; shapes for any type are under the empty one. In order of their first target.
	shapes map[string][]*shaped
	// every are the targets that match every event; timed are those that match the events of a timer, by its source.
	every []*target
	timed map[string][]*target
}

// shaped are the filters of one shape, by the expected values of the correlation keys.
type shaped struct {
	shape *shape
	refs  map[string][]ref
}

// table builds the table of a batch.
func (c *compiler) table(b event.Batch) *table {
	t := &table{shapes: map[string][]*shaped{}, timed: map[string][]*target{}}
	seen := map[*shape]*shaped{}
	for i := range b.Triggers {
		trigger := &b.Triggers[i]
		key := targetKey{trigger.Project, trigger.Workflow, trigger.DocumentHash, trigger.Spec.Timed}
		t.add(seen, c.compile(key, trigger.Spec), &target{order: i, trigger: trigger, spec: &trigger.Spec, since: trigger.Since})
	}
	for i := range b.Listeners {
		l := &b.Listeners[i]
		t.add(seen, c.compile(targetKey{project: l.Project, name: l.ID}, l.Spec),
			&target{order: len(b.Triggers) + i, listener: l, spec: &l.Spec, since: l.Since})
	}
	return t
}

func (t *table) add(seen map[*shape]*shaped, c *compiled, to *target) {
	to.hash = c.hash
	if to.spec.Timed != "" {
		t.timed[to.spec.Timed] = append(t.timed[to.spec.Timed], to)
	}
	if to.spec.Mode == event.Any && len(to.spec.Filters) == 0 {
		t.every = append(t.every, to)
	}
	for i, f := range c.filters {
		group, ok := seen[f.shape]
		if !ok {
			group = &shaped{shape: f.shape, refs: map[string][]ref{}}
			seen[f.shape] = group
			t.shapes[f.shape.typ] = append(t.shapes[f.shape.typ], group)
		}
		group.refs[f.expect] = append(group.refs[f.expect], ref{to, i})
	}
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
	// fuel is the compute used.
	fuel int64
}

// candidates returns the targets that match an event of any type, and the types of the shapes that may match the event. Only filters that name
// its type match an event that reports a failure.
func (t *table) candidates(e *event.Event) (every []*target, types []string) {
	if event.ReportsFailure(e.Type) {
		return nil, []string{e.Type}
	}
	return t.every, []string{e.Type, ""}
}

func (t *table) lookup(e *event.Event, plain map[string]any) result {
	var l result
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
	every, types := t.candidates(e)
	for _, to := range every {
		at(to)
	}
	if e.Type == event.ScheduleFired {
		for _, to := range t.timed[e.Source] {
			if h := at(to); h != nil {
				h.timed = true
			}
		}
	}
	for _, typ := range types {
		for _, group := range t.shapes[typ] {
			l.near = l.near || typ != ""
			if group.shape.broken != nil {
				l.notes = append(l.notes, group.note("cannot be evaluated: "+group.shape.broken.Error()))
				continue
			}
			match := group.shape.matcher.Match(plain)
			l.fuel += match.Fuel
			if !match.OK {
				if match.Problem != "" {
					l.notes = append(l.notes, group.note(problem(e, match)))
				}
				continue
			}
			for _, ref := range group.refs[group.shape.expected(match)] {
				if h := at(ref.target); h != nil {
					h.filters = append(h.filters, matched{ref.filter, match.Keys})
				}
			}
		}
	}
	for _, h := range hits {
		slices.SortFunc(h.filters, func(a, b matched) int { return cmp.Compare(a.index, b.index) })
		l.hits = append(l.hits, *h)
	}
	slices.SortFunc(l.hits, func(a, b hit) int { return cmp.Compare(a.target.order, b.target.order) })
	return l
}

// expected returns the values of the correlation keys that a filter must expect to match an event of this shape.
func (s *shape) expected(m eventfilter.Match) string {
	values := make([]any, len(s.expects))
	for i, name := range s.expects {
		values[i] = m.Keys[name]
	}
	return joined(values)
}

// problem returns the error of a filter on an event. It may quote the data.
func problem(e *event.Event, m eventfilter.Match) string {
	if e.Opened {
		return "cannot be evaluated; the cause is hidden, because the event has sensitive values"
	}
	return m.Problem
}

// note describes an error of a filter and names the first of the targets that share the filter.
func (g *shaped) note(problem string) string {
	var first *target
	count := 0
	for _, refs := range g.refs {
		for _, r := range refs {
			count++
			if first == nil || r.target.order < first.order {
				first = r.target
			}
		}
	}
	others := ""
	if count > 1 {
		others = fmt.Sprintf(" and %d more", count-1)
	}
	const longest = 200
	return fmt.Sprintf("the filter of %s%s %.*s", first.name(), others, longest, problem)
}
