package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// set is a decoded partial.
type set struct {
	key       string
	values    setKey
	positions []int64
}

// setKey is the content of a partial's key.
type setKey struct {
	// Opened is the position of the set's first event.
	Opened int64 `json:"opened"`
	// Filters is the hash of the filters that the set was made for.
	Filters string `json:"filters"`
	// Values are the values of the correlation keys so far.
	Values map[string]json.RawMessage `json:"values,omitempty"`
}

// collect adds an event to the oldest matching open set of a trigger, or opens a new set. When the trigger has its
// maximum of open sets, a new set replaces the oldest. A complete set starts the workflow. It returns why the event
// could not be added; empty if it was.
func (b *batch) collect(e *event.Event, h hit, r *event.Routing) string {
	trigger := h.target.trigger
	b.load(h.target, r)
	values := make([]map[string]json.RawMessage, len(h.filters))
	for i, f := range h.filters {
		values[i] = encoded(f.keys)
	}
	for _, s := range b.open[trigger.Workflow] {
		for i, f := range h.filters {
			if s.positions[f.index] == 0 && s.values.correlates(values[i]) {
				return b.join(e, s, f.index, values[i], h.target, r)
			}
		}
	}
	s := &set{
		values:    setKey{Opened: e.Position, Filters: h.target.hash},
		positions: make([]int64, len(h.target.spec.Filters)),
	}
	b.open[trigger.Workflow] = append(b.open[trigger.Workflow], s)
	note := b.join(e, s, h.filters[0].index, values[0], h.target, r)
	if note != "" {
		b.close(trigger.Workflow, s)
	}
	b.bound(trigger, r)
	return note
}

// bound drops the oldest sets of a trigger beyond the limit: sets that are never completed must not block new ones.
func (b *batch) bound(t *event.Trigger, r *event.Routing) {
	open := b.open[t.Workflow]
	surplus := max(len(open)-b.limit, 0)
	for _, s := range open[:surplus] {
		r.Partials = append(r.Partials, event.Partial{Project: t.Project, Workflow: t.Workflow, Key: s.key})
	}
	b.open[t.Workflow] = slices.Delete(open, 0, surplus)
}

// join adds an event to a set, as the match of the filter at index.
func (b *batch) join(e *event.Event, s *set, index int, values map[string]json.RawMessage, to *target,
	r *event.Routing) string {
	workflow := to.trigger.Workflow
	merged := s.values
	merged.Values = map[string]json.RawMessage{}
	maps.Copy(merged.Values, s.values.Values)
	maps.Copy(merged.Values, values)
	text, err := json.Marshal(merged)
	if err != nil || len(text) > event.MaxPartialKey {
		return fmt.Sprintf("its correlation keys are too long for workflow %q", workflow)
	}
	before := s.key
	s.values, s.key = merged, string(text)
	s.positions[index] = e.Position
	if before != "" && (before != s.key || s.complete()) {
		r.Partials = append(r.Partials, event.Partial{Project: to.trigger.Project, Workflow: workflow, Key: before})
	}
	if !s.complete() {
		r.Partials = append(r.Partials, event.Partial{
			Project: to.trigger.Project, Workflow: workflow, Key: s.key, Positions: slices.Clone(s.positions),
		})
		return ""
	}
	b.close(workflow, s)
	events := make([]*event.Event, len(s.positions))
	for i, position := range s.positions {
		events[i] = b.events[position]
	}
	r.Deliveries = append(r.Deliveries, b.start(to.trigger, events))
	return ""
}

func (b *batch) close(workflow string, s *set) {
	b.open[workflow] = slices.DeleteFunc(b.open[workflow], func(o *set) bool { return o == s })
}

// load decodes the sets of a trigger when they are first needed, oldest first. It removes sets that were made for other
// filters and sets with deleted events.
func (b *batch) load(to *target, r *event.Routing) {
	workflow := to.trigger.Workflow
	if _, done := b.open[workflow]; done {
		return
	}
	b.open[workflow] = []*set{}
	for _, p := range b.stored[workflow] {
		s := &set{key: p.Key, positions: slices.Clone(p.Positions)}
		known := func(position int64) bool { return position == 0 || b.events[position] != nil }
		if json.Unmarshal([]byte(p.Key), &s.values) != nil || s.values.Filters != to.hash ||
			len(p.Positions) != len(to.spec.Filters) ||
			!all(p.Positions, known) {
			r.Partials = append(r.Partials, event.Partial{Project: p.Project, Workflow: workflow, Key: p.Key})
			continue
		}
		b.open[workflow] = append(b.open[workflow], s)
	}
	slices.SortStableFunc(b.open[workflow], func(x, y *set) int { return cmp.Compare(x.values.Opened, y.values.Opened) })
}

func all(positions []int64, holds func(int64) bool) bool {
	return !slices.ContainsFunc(positions, func(p int64) bool { return !holds(p) })
}

func (s *set) complete() bool { return !slices.Contains(s.positions, 0) }

// correlates reports whether no value contradicts those of the set.
func (k setKey) correlates(values map[string]json.RawMessage) bool {
	for name, value := range values {
		if have, ok := k.Values[name]; ok && string(have) != string(value) {
			return false
		}
	}
	return true
}

// encoded returns the values as JSON; equal values have equal JSON.
func encoded(keys map[string]any) map[string]json.RawMessage {
	if len(keys) == 0 {
		return nil
	}
	out := make(map[string]json.RawMessage, len(keys))
	for name, value := range keys {
		text, err := jq.EncodeJSON(value)
		if err != nil {
			text = []byte("null")
		}
		out[name] = text
	}
	return out
}
