package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// Event is what one filter of a listen task asks for, in the words of the document.
type Event struct {
	// Type is the event's; empty for any. With are the other attributes, as a JSON object; nil where there are none.
	Type string
	With json.RawMessage
	// Keys are the correlation keys, by name.
	Keys []Key
	// Ends marks an event that ends the task without being one of those that it collects.
	Ends bool
}

// Key is a correlation key of an event.
type Key struct {
	// Name is the key's, From the expression that gives an event's value.
	Name, From string
	// Expect is what the value must be, as JSON. It is nil where the first event fixes the value, and where Unknown is set.
	Expect  json.RawMessage
	Unknown bool
}

// Bounds of a line: how many events are in it, and how many characters of a value.
const (
	mostEvents = 5
	mostText   = 200
)

// events adds the events that a listen task waits for.
func (w *waiting) events(one *Wait, task *dsl.Task) {
	b, ok := bodyOf[*dsl.Listen](task)
	if !ok {
		one.What = "event, which is unknown"
		return
	}
	var until []*dsl.EventFilter
	if b.To.UntilEvents != nil {
		until = b.To.UntilEvents.Filters
	}
	expected := w.expected(one.Path, len(b.To.Filters)+len(until))
	to := member(member(task.Definition, "listen"), "to")
	one.Mode = string(b.To.Mode)
	for i, f := range b.To.Filters {
		one.Events = append(one.Events, filterOf(f, definition(to, b.To.Mode, i), expected(i)))
	}
	one.What = listed(b.To.Mode, one.Events)
	switch {
	case b.To.UntilEvents != nil:
		var ends []Event
		for i, f := range until {
			e := filterOf(f, definition(member(to, "until"), b.To.UntilEvents.Mode, i), expected(len(b.To.Filters)+i))
			e.Ends = true
			ends = append(ends, e)
		}
		one.What += "; ends with " + listed(b.To.UntilEvents.Mode, ends)
		one.Events = append(one.Events, ends...)
	case b.To.Until != nil && b.To.Until.Source != "false":
		one.What += "; ends when " + short(b.To.Until.Source)
	}
}

// expected returns what gives the stored filter of each filter of a task by index; nil where it is not known. A listener for every
// event has no filters.
func (w *waiting) expected(path string, filters int) func(i int) *event.Filter {
	key := w.Key(w.Run.ID, path)
	i := slices.IndexFunc(w.Rows.Listeners, func(l event.Listener) bool { return l.ID == key })
	if i < 0 || len(w.Rows.Listeners[i].Spec.Filters) != filters {
		return func(int) *event.Filter { return nil }
	}
	stored := w.Rows.Listeners[i].Spec.Filters
	return func(i int) *event.Filter { return &stored[i] }
}

// definition is the i-th filter of a strategy in the document.
func definition(to any, mode eventfilter.Mode, i int) any {
	given := member(to, string(mode))
	if list, ok := given.([]any); ok && i < len(list) {
		given = list[i]
	}
	return member(given, "with")
}

// filterOf is what a filter asks for; stored is nil where its expectations are not known.
func filterOf(f *dsl.EventFilter, with any, stored *event.Filter) Event {
	var e Event
	others := map[string]any{}
	attributes, _ := with.(map[string]any)
	for name, value := range attributes {
		if text, ok := value.(string); ok && name == "type" {
			e.Type = text
			continue
		}
		others[name] = value
	}
	if len(others) > 0 {
		e.With, _ = jq.EncodeJSON(others) // it was JSON before
	}
	for _, c := range f.Correlate {
		k := Key{Name: c.Name, From: c.From}
		if c.Expect != nil {
			if stored != nil {
				k.Expect = stored.Correlate[c.Name].Expect
			}
			k.Unknown = k.Expect == nil
		}
		e.Keys = append(e.Keys, k)
	}
	return e
}

// listed is a line of events.
func listed(mode eventfilter.Mode, events []Event) string {
	if len(events) == 0 {
		return "any event"
	}
	texts := make([]string, 0, mostEvents+1)
	for i, e := range events {
		if i == mostEvents {
			texts = append(texts, fmt.Sprintf("and %d more", len(events)-i))
			break
		}
		texts = append(texts, e.text())
	}
	switch {
	case len(events) == 1:
		return texts[0]
	case mode == eventfilter.All:
		return "each of: " + strings.Join(texts, "; ") + " (which of them have come is not recorded)"
	}
	return "one of: " + strings.Join(texts, "; ")
}

// text is a line such as: event com.example.paid (source "/shop") with orderId = 4711.
func (e Event) text() string {
	text := "event " + e.Type
	if e.Type == "" {
		text = "event of any type"
	}
	var others map[string]json.RawMessage
	if json.Unmarshal(e.With, &others) == nil && len(others) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(others)) {
			parts = append(parts, name+" "+short(string(others[name])))
		}
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if len(e.Keys) == 0 {
		return text
	}
	var parts []string
	for _, k := range e.Keys {
		value := "the value of the first event"
		switch {
		case k.Unknown:
			value = "unknown"
		case k.Expect != nil:
			value = short(string(k.Expect))
		}
		parts = append(parts, k.Name+" = "+value)
	}
	return text + " with " + strings.Join(parts, ", ")
}

// short cuts a text for a line.
func short(text string) string {
	if runes := []rune(text); len(runes) > mostText {
		return string(runes[:mostText]) + "…"
	}
	return text
}
