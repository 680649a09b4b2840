package event

import (
	"encoding/json"
	"slices"
	"strings"
)

// Trigger is what a published workflow wants to be started by: its schedule.on. There is one per workflow, that
// of the newest version.
type Trigger struct {
	Project, Workflow, Version, DocumentHash string
	// Paused: the workflow is; events that match are kept as unmatched, with that reason.
	Paused bool
	// Since is the position at which the workflow began to want events. A newer version keeps it, so that what was accepted before
	// its publication and is not matched yet is not lost between the two.
	Since int64
	Spec  Spec
}

// Listener is a run that waits for events in one listen task.
type Listener struct {
	// ID is derived from the run and the entry into the task.
	ID, Project, RunID string
	Since              int64
	Spec               Spec
}

// Mode says how many of a spec's filters have to match.
type Mode string

// The modes.
const (
	One Mode = "one" // the single filter
	Any Mode = "any" // one of the filters; without filters, every event
	All Mode = "all" // each of the filters, by events that correlate
)

// Spec is what a trigger or a listener wants, in a form that can be stored. What depends on nothing but a run's data has been
// evaluated; what is to be evaluated with each event has the run's data in Vars.
type Spec struct {
	// Mode is empty where nothing but the clock is wanted, see Timed.
	Mode    Mode     `json:"mode,omitempty"`
	Filters []Filter `json:"filters,omitempty"`
	// Timed is the source of the timer's events that start the workflow as well, whatever Filters say; empty without a timer.
	Timed string `json:"timed,omitempty"`
	// Vars are the values of the variables that the expressions use, by name without "$". A trigger has none.
	Vars map[string]json.RawMessage `json:"vars,omitempty"`
}

// Filter matches events.
type Filter struct {
	// With are the attributes that an event must have, by name; "data" is its payload.
	With map[string]Value `json:"with,omitempty"`
	// Correlate are the keys by which events belong together, by name.
	Correlate map[string]Key `json:"correlate,omitempty"`
}

// Value says what an attribute must be.
type Value struct {
	// Literal is what it must equal. A text also matches as a regular expression (RE2) for the whole of the attribute, when it
	// has characters that are special there, other than the dot. An object in data matches one that has all of its members.
	Literal json.RawMessage `json:"literal,omitempty"`
	// Expr, where it is not empty, is an expression in jq, without ${ }. Its "." is the attribute's value, null where the event
	// has none. It matches when it gives true, or a value that is no boolean and equals the attribute.
	Expr string `json:"expr,omitempty"`
}

// Key is a correlation key.
type Key struct {
	// From is an expression in jq, without ${ }, that gives the key's value. Its "." is the whole event in the JSON form of CloudEvents. An
	// event for which it gives null does not correlate.
	From string `json:"from"`
	// Expect is what the value must be; nil: whatever the first event brings, the others must bring too.
	Expect json.RawMessage `json:"expect,omitempty"`
}

// Types are the event types that a spec can match, nil when it can match any.
func (s Spec) Types() []string {
	types := make([]string, 0, len(s.Filters)+1)
	if s.Timed != "" {
		types = append(types, ScheduleFired)
	}
	if s.Mode != "" && len(s.Filters) == 0 {
		return nil
	}
	for _, f := range s.Filters {
		name, ok := f.exactType()
		if !ok {
			return nil
		}
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return types
}

// exactType is the only type that a filter can match, if there is only one.
func (f Filter) exactType() (string, bool) {
	v, ok := f.With["type"]
	var name string
	if !ok || v.Expr != "" || json.Unmarshal(v.Literal, &name) != nil || Pattern(name) {
		return "", false
	}
	return name, true
}

// Pattern tells whether a literal text is tried as a regular expression too.
func Pattern(literal string) bool { return strings.ContainsAny(literal, `\^$*+?()[]{}|`) }
