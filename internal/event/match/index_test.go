package match_test

import (
	"cmp"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
)

// evaluated routes a batch whose listeners were all read.
func evaluated(m *match.Matcher, b event.Batch) []event.Routing {
	return m.Evaluate(b).Routings(event.Found{})
}

// indexed routes a batch whose listeners are in an index: only those that are looked up are read.
func indexed(m *match.Matcher, b event.Batch) []event.Routing {
	all := slices.SortedFunc(slices.Values(b.Listeners), func(a, b event.Listener) int { return cmp.Compare(a.ID, b.ID) })
	types := map[string]bool{"": true}
	for _, e := range b.Events {
		types[e.Type] = true
	}
	b.Listeners = nil
	seen := map[event.Entry]bool{}
	for _, l := range all {
		entries := event.EntriesOf(l.Spec)
		for i, e := range entries {
			switch of := (event.Entry{Type: e.Type, Shape: e.Shape}); {
			case !types[e.Type] || seen[of]:
			case e.Shape == "":
				if n := len(b.Listeners); n == 0 || b.Listeners[n-1].ID != l.ID {
					b.Listeners = append(b.Listeners, l)
				}
			case e.Shape == event.EveryEvent:
				seen[of] = true
				b.Shapes = append(b.Shapes, event.Shape{Hash: e.Shape})
			default:
				seen[of] = true
				s, _, _ := event.ShapeOf(l.Spec.Filters[i])
				b.Shapes = append(b.Shapes, s)
			}
		}
	}
	evaluation := m.Evaluate(b)
	return evaluation.Routings(find(all, evaluation.Lookups()))
}

// find is the index.
func find(all []event.Listener, lookups []event.Lookup) (found event.Found) {
	for _, w := range lookups {
		if w.Summary {
			found.Summaries = append(found.Summaries, event.Summary{Type: w.Type, Shape: w.Shape})
		}
	}
	for _, l := range all {
		entries := event.EntriesOf(l.Spec)
		if slices.ContainsFunc(lookups, func(w event.Lookup) bool {
			return !w.Summary && slices.Contains(entries, w.Entry)
		}) {
			found.Listeners = append(found.Listeners, l)
		}
		for i := range found.Summaries {
			s := &found.Summaries[i]
			for _, e := range entries {
				if e.Type == s.Type && e.Shape == s.Shape {
					if s.Count++; s.Count == 1 {
						s.First = event.Listener{ID: l.ID, RunID: l.RunID}
					}
				}
			}
		}
	}
	return found
}
