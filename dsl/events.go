package dsl

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Schedule starts runs of a workflow without a request. Exactly one of Every, Cron, After and On is set.
type Schedule struct {
	Every *Duration // between the starts of runs; fixed, at least a second
	// Cron has five fields (minute, hour, day, month, weekday) or is a name such as @daily, in the time zone of Settings.
	Cron  string
	After *Duration // between the end of a run and the start of the next one; fixed
	// On are the events that start a run. Its input is the array of those events, in order of acceptance, in the form
	// Read.
	On   *eventfilter.Spec
	Read eventfilter.Form // Envelope by default
	// Settings are those of Every and Cron.
	Settings ScheduleSettings
}

// Listen waits for events. Its output is the array of the events it consumed, in order, or of the outputs of Each for
// them.
type Listen struct {
	To   Consumption
	Read eventfilter.Form // Data by default
	Each *Iterator        // nil where there is none
}

// Consumption defines which events are consumed and when the consumption is complete: with One after an event that
// matches the filter, with All when each filter was matched by an event, with Any after an event that matches one of
// the filters (any event if there are none) or, if one of the two is set, when Until holds after an event or
// UntilEvents have been consumed.
type Consumption struct {
	Mode        eventfilter.Mode
	Filters     []*EventFilter
	Until       *Expr
	UntilEvents *Consumption
}

// EventFilter is one filter of a listen task. With and From see the event, and variables as they are when the task
// begins; Expect is evaluated then.
type EventFilter struct {
	With      map[string]eventfilter.Value
	Correlate []Correlation // by name
	Pos       Pos
	matcher   *eventfilter.Matcher
	uses      variableUses
}

// Correlation is a key by which events belong together. A nil Expect takes the value of the first event.
type Correlation struct {
	Name   string
	From   string // jq, without ${ }
	Expect *Template
}

// Iterator is the list of tasks that a listen task runs for each event, one after another.
type Iterator struct {
	Item, At string // names of the variables, without "$"; "item" and "index" by default
	Tasks    []*Task
	Output   *Output
	Export   *Export
}

// Emit publishes an event.
type Emit struct {
	with map[string]*Template
}

// Kind implements Body.
func (*Listen) Kind() Kind { return KindListen }

// Kind implements Body.
func (*Emit) Kind() Kind { return KindEmit }

// Vars returns the parts of variables that the expressions of the filter use; nil if they use none.
func (f *EventFilter) Vars(vars map[string]any) map[string]any { return f.uses.of(vars) }

// Matcher returns the compiled filter with the values that its correlation keys must have, and those of its variables.
func (f *EventFilter) Matcher(expect, vars map[string]any) *eventfilter.Matcher {
	return f.matcher.Expecting(expect, vars)
}

// Filter returns the filter in its stored form.
func (f *EventFilter) Filter(expect, vars map[string]any) (eventfilter.Filter, error) {
	out := eventfilter.Filter{With: f.With}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		text, err := jq.EncodeJSON(vars[name])
		if err != nil {
			return eventfilter.Filter{}, fmt.Errorf("encode the variable %q: %w", name, err)
		}
		if out.Vars == nil {
			out.Vars = map[string]json.RawMessage{}
		}
		out.Vars[name] = text
	}
	for _, c := range f.Correlate {
		key := eventfilter.Key{From: c.From}
		if value, given := expect[c.Name]; given {
			text, err := jq.EncodeJSON(value)
			if err != nil {
				return eventfilter.Filter{}, fmt.Errorf("encode what the correlation key %q expects: %w", c.Name, err)
			}
			key.Expect = text
		}
		if out.Correlate == nil {
			out.Correlate = map[string]eventfilter.Key{}
		}
		out.Correlate[c.Name] = key
	}
	return out, nil
}

// Event evaluates the attributes of the event. Attributes that are not given, or null, are absent. A literal source or
// dataschema is a URI template over input, like the endpoint of a call. A value that CloudEvents does not allow is an
// error.
func (e *Emit) Event(input any, vars map[string]any, fuel *jq.Fuel) (map[string]any, error) {
	out := make(map[string]any, len(e.with))
	for _, name := range slices.Sorted(maps.Keys(e.with)) {
		value, err := e.with[name].Eval(input, vars, fuel)
		if err != nil {
			return nil, err
		}
		text, isText := value.(string)
		if _, literal := e.with[name].Static(); literal && isText && isURIAttribute(name) {
			if value, err = ExpandURI(text, input); err != nil {
				return nil, err
			}
		}
		if value != nil || name == "data" {
			out[name] = value
		}
	}
	return out, checkEvent(out)
}

// checkEvent refuses values that expressions can return and that CloudEvents does not allow.
func checkEvent(event map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(event)) {
		value := event[name]
		text, isText := value.(string)
		switch name {
		case "data":
			continue
		case "id", "source", "type", "subject", "datacontenttype", "dataschema", "time":
			if !isText || text == "" {
				return fmt.Errorf("the %s of an event must be a string that is not empty, got %s", name, jq.TypeName(value))
			}
			if _, err := time.Parse(time.RFC3339, text); name == "time" && err != nil {
				return fmt.Errorf("the time of an event must be a date and time such as 2026-01-31T08:00:00Z, got %.80q", text)
			}
		default:
			switch value.(type) {
			case []any, map[string]any:
				return fmt.Errorf("the %s of an event must be a string, a number or a boolean, got %s", name, jq.TypeName(value))
			}
		}
	}
	if _, typed := event["type"]; !typed {
		return fmt.Errorf("the type of an event must be a string that is not empty, got null")
	}
	return nil
}

// isURIAttribute reports whether an attribute of events is a URI.
func isURIAttribute(name string) bool { return name == "source" || name == "dataschema" }
