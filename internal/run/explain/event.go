package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// Event is what one filter of a listen task requires, as the document has it.
type Event struct {
	// Type is the event's; empty for any. With are the other attributes, as a JSON object; nil where there are none.
	Type string
	With json.RawMessage
	// Keys are the correlation keys, by name.
	Keys []Key
	// Ends marks an event that ends the task and is not one of those that it collects.
	Ends bool
	// Came marks, of several events that are all required, one that the run has taken. CameAt is when; zero where that is
	// unknown.
	Came   bool
	CameAt time.Time
}

// Key is a correlation key of an event.
type Key struct {
	// Name is the key's, From the expression that gives an event's value.
	Name, From string
	// Expect is what the value must be, as JSON. It is nil where the first event fixes the value, and where Unknown is
	// set.
	Expect  json.RawMessage
	Unknown bool
}

// Limits of a line: the number of events in it, and the number of characters of a value.
const (
	maxEvents = 5
	maxText   = 200
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
	came := func(e *Event, filter int) {
		t := w.steps[one.Path]
		if t.Wait == nil {
			return
		}
		for _, taken := range t.Wait.Taken {
			if taken.Filter == filter {
				e.Came, e.CameAt = true, taken.At
			}
		}
	}
	expected := w.expected(one.Path, len(b.To.Filters)+len(until))
	to := member(member(task.Definition, "listen"), "to")
	one.Mode = string(b.To.Mode)
	for i, f := range b.To.Filters {
		e := filterOf(f, definition(to, b.To.Mode, i), expected(i))
		came(&e, i)
		one.Events = append(one.Events, e)
	}
	one.What = listed(b.To.Mode, one.Events)
	switch {
	case b.To.UntilEvents != nil:
		var ends []Event
		for i, f := range until {
			e := filterOf(f, definition(member(to, "until"), b.To.UntilEvents.Mode, i), expected(len(b.To.Filters)+i))
			e.Ends = true
			came(&e, len(b.To.Filters)+i)
			ends = append(ends, e)
		}
		one.What += "; ends with " + listed(b.To.UntilEvents.Mode, ends)
		one.Events = append(one.Events, ends...)
	case b.To.Until != nil && b.To.Until.Source != "false":
		one.What += "; ends when " + short(b.To.Until.Source)
	}
}

// expected returns a function from the index of a filter of the task to the stored filter; nil where it is unknown. A
// listener for every event has no filters.
func (w *waiting) expected(path string, filters int) func(i int) *event.Filter {
	key := w.Key(w.Run.ID, path)
	i := slices.IndexFunc(w.Rows.Listeners, func(l event.Listener) bool { return l.ID == key })
	if i < 0 || len(w.Rows.Listeners[i].Spec.Filters) != filters {
		return func(int) *event.Filter { return nil }
	}
	stored := w.Rows.Listeners[i].Spec.Filters
	return func(i int) *event.Filter { return &stored[i] }
}

// definition returns the i-th filter of a strategy in the document.
func definition(to any, mode eventfilter.Mode, i int) any {
	given := member(to, string(mode))
	if list, ok := given.([]any); ok && i < len(list) {
		given = list[i]
	}
	return member(given, "with")
}

// filterOf returns what a filter requires. stored is nil where the expected values are unknown.
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

// listed returns a line of events.
func listed(mode eventfilter.Mode, events []Event) string {
	switch {
	case len(events) == 0:
		return "any event"
	case len(events) == 1:
		return events[0].text()
	case mode != eventfilter.All:
		return "one of: " + joined(events, false)
	}
	return "each of: " + joined(events, true)
}

// joined returns the first events, with the progress of each where it is recorded, and the number of the others.
func joined(events []Event, recorded bool) string {
	shown := min(len(events), maxEvents)
	texts := make([]string, 0, shown+1)
	for _, e := range events[:shown] {
		text := e.text()
		if recorded {
			text += " (" + e.progress() + ")"
		}
		texts = append(texts, text)
	}
	if rest := events[shown:]; len(rest) > 0 {
		text := fmt.Sprintf("and %d more", len(rest))
		if recorded {
			awaited := 0
			for _, e := range rest {
				if !e.Came {
					awaited++
				}
			}
			text += fmt.Sprintf(", %d of them awaited", awaited)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// progress returns whether and when the event came.
func (e Event) progress() string {
	switch {
	case !e.Came:
		return "awaited"
	case e.CameAt.IsZero():
		return "has come"
	}
	return "came at " + e.CameAt.UTC().Format(time.RFC3339)
}

// text returns a line such as: event com.example.paid (source "/shop") with orderId = 4711.
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

// short truncates a text to maxText characters.
func short(text string) string { return truncated(text, maxText) }

// truncated truncates a text to a number of characters.
func truncated(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
