// Package eventfilter evaluates the event filters of a document, those of listen tasks and of event-driven schedules,
// in a form that can be stored and matched far from the run that listens.
//
//	m, err := eventfilter.Compile(filter, jq.NewCompiler())
//	match := m.Match(event, fuel)
//	if match.OK { /* match.Keys are the correlation keys of the event */ }
//
// An event is its CloudEvents JSON form as a plain value (jq.Normalize): the context attributes, extensions among them,
// and `data` or, for bytes, `data_base64`.
//
// # What matches
//
//   - `with` names attributes. Each must match: a literal by being equal (times by denoting the same instant), an
//     object
//     member by member (the event may have more), an array as a whole.
//   - An expression is evaluated on the attribute's own value: for `data`, `.` is the payload; for `type`, the type's
//     text. true matches, false and null do not; any other result matches where it equals the attribute.
//   - `correlate.*.from` is evaluated on the whole event. null, or an expression that fails, means that the event lacks
//     the key, so that the filter does not match.
//
// A filter never fails: an expression that cannot be evaluated on an event, or that exceeds its budget, does not match.
// The result depends on the filter and the event alone, so that the dispatcher and the run that it wakes agree.
//
// The package matches single filters. How many of them must match, and which key values earlier events had, is decided
// by the packages that collect events.
package eventfilter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Fuel is the budget of one expression of a filter. It is the same in all processes.
const Fuel = 200_000

// Mode is the number of a spec's filters that must match.
type Mode string

// The modes.
const (
	One Mode = "one" // the single filter
	Any Mode = "any" // one of the filters; without filters, every event
	All Mode = "all" // each of the filters, by events that correlate
)

// Spec is the subscription of a trigger or a listener. All parts that depend on a run's data have been evaluated.
type Spec struct {
	Mode    Mode     `json:"mode"`
	Filters []Filter `json:"filters,omitempty"`
}

// Filter matches events.
type Filter struct {
	// With are the attributes that an event must have, by name ("data" is its payload).
	With map[string]Value `json:"with,omitempty"`
	// Correlate are the keys by which events are correlated, by name.
	Correlate map[string]Key `json:"correlate,omitempty"`
	// Vars are the variables that the expressions use, without "$": the values that the run had when it began to listen.
	Vars map[string]json.RawMessage `json:"vars,omitempty"`
}

// Value is the condition on an attribute: a literal, an expression or an object of values. Exactly one of the three is
// set.
type Value struct {
	Literal json.RawMessage `json:"literal,omitempty"`
	// Expr is an expression in jq (without ${ }) on the attribute's value.
	Expr string `json:"expr,omitempty"`
	// Members are the members that the attribute, an object, must have: at least one.
	Members map[string]Value `json:"members,omitempty"`
}

// Key is a correlation key.
type Key struct {
	// From is an expression on the event that evaluates to the key's value.
	From string `json:"from"`
	// Expect is the required value. If it is nil, the first event determines the value that the others must have.
	Expect json.RawMessage `json:"expect,omitempty"`
}

// Types returns the event types that a spec can match, sorted; nil if it can match any.
func (s Spec) Types() []string {
	if len(s.Filters) == 0 {
		return nil
	}
	var types []string
	for _, f := range s.Filters {
		var name string
		if json.Unmarshal(f.With["type"].Literal, &name) != nil {
			return nil
		}
		types = append(types, name)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// Matcher is a compiled filter. It is immutable and safe for concurrent use.
type Matcher struct {
	with   []attribute
	keys   []key
	expect map[string]any
	vars   map[string]any
}

type attribute struct {
	name string
	want condition
}

// condition is a compiled Value.
type condition struct {
	program *jq.Program
	members []attribute
	literal any
}

type key struct {
	name string
	from *jq.Program
}

// Compile compiles a filter. An error contains the invalid expression or literal.
func Compile(f Filter, c *jq.Compiler) (*Matcher, error) {
	m := &Matcher{vars: make(map[string]any, len(f.Vars))}
	names := slices.Sorted(maps.Keys(f.Vars))
	var err error
	for _, name := range names {
		if m.vars[name], err = jq.DecodeJSON(f.Vars[name]); err != nil {
			return nil, fmt.Errorf("read the variable %q: %w", name, err)
		}
	}
	if m.with, err = attributes(f.With, c, names); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Correlate)) {
		k := f.Correlate[name]
		program, err := c.Compile(k.From, names)
		if err != nil {
			return nil, fmt.Errorf("compile the correlation key %q: %w", name, err)
		}
		m.keys = append(m.keys, key{name, program})
		if k.Expect == nil {
			continue
		}
		value, err := jq.DecodeJSON(k.Expect)
		if err != nil {
			return nil, fmt.Errorf("read what the correlation key %q expects: %w", name, err)
		}
		if m.expect == nil {
			m.expect = map[string]any{}
		}
		m.expect[name] = value
	}
	return m, nil
}

func attributes(values map[string]Value, c *jq.Compiler, vars []string) ([]attribute, error) {
	var out []attribute
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		a := attribute{name: name}
		var err error
		switch {
		case v.Expr != "":
			a.want.program, err = c.Compile(v.Expr, vars)
		case v.Members != nil:
			a.want.members, err = attributes(v.Members, c, vars)
		case v.Literal != nil:
			a.want.literal, err = jq.DecodeJSON(v.Literal)
		}
		if err != nil {
			return nil, fmt.Errorf("compile what %q must be: %w", name, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// Expecting returns the matcher with required values for its keys, by name; keys without one accept any value. vars are
// the values of its variables.
func (m *Matcher) Expecting(expect, vars map[string]any) *Matcher {
	return &Matcher{with: m.with, keys: m.keys, expect: expect, vars: vars}
}

// Match is the result of matching one event.
type Match struct {
	OK bool
	// Keys are the values of the correlation keys by name, nil if the filter has none or does not match.
	Keys map[string]any
	// Missed is the attribute that did not match, or the correlation key as "correlate." and its name.
	Missed string
	// Failure is the reason why an expression could not be evaluated, empty if all could.
	Failure string
	// Fuel is the compute that was used.
	Fuel int64
}

// Match matches an event, a plain value that must not change meanwhile.
func (m *Matcher) Match(event map[string]any) Match {
	e := evaluation{vars: m.vars}
	for _, a := range m.with {
		if !a.meets(event, &e) {
			return e.noMatch(a.name)
		}
	}
	var keys map[string]any
	for _, k := range m.keys {
		value, ok := m.key(k, event, &e)
		if !ok {
			return e.noMatch(keyCondition + k.name)
		}
		if keys == nil {
			keys = map[string]any{}
		}
		keys[k.name] = value
	}
	return Match{OK: true, Keys: keys, Fuel: e.used}
}

// meets reports whether an event has the attribute as the filter requires it.
func (a attribute) meets(event map[string]any, e *evaluation) bool {
	return a.want.accepts(attributeOf(event, a.name), a.name == "time", e)
}

// key returns an event's value of a correlation key, and whether it is the required one, or any where none is.
func (m *Matcher) key(k key, event map[string]any, e *evaluation) (any, bool) {
	value, err := e.run(k.from, event)
	expected, bound := m.expect[k.name]
	return value, err == nil && value != nil && (!bound || Equal(expected, value))
}

// attributeOf returns an attribute's value; the payload may be stored as bytes.
func attributeOf(event map[string]any, name string) any {
	value, given := event[name]
	if !given && name == "data" {
		return event["data_base64"]
	}
	return value
}

func (w condition) accepts(value any, instant bool, e *evaluation) bool {
	switch {
	case w.program != nil:
		result, err := e.run(w.program, value)
		if matched, isBool := result.(bool); err != nil || isBool || result == nil {
			return matched
		}
		return Equal(result, value)
	case w.members != nil:
		object, ok := value.(map[string]any)
		if !ok {
			return false
		}
		for _, a := range w.members {
			if !a.want.accepts(object[a.name], false, e) {
				return false
			}
		}
		return true
	}
	return Equal(w.literal, value) || instant && sameInstant(w.literal, value)
}

// evaluation records the fuel used on one event, and the first expression that failed.
type evaluation struct {
	vars    map[string]any
	used    int64
	failure error
}

func (e *evaluation) run(p *jq.Program, input any) (any, error) {
	fuel := jq.NewFuel(Fuel)
	value, err := p.Run(input, e.vars, fuel)
	e.used += fuel.Used()
	if e.failure == nil {
		e.failure = err
	}
	return value, err
}

func (e *evaluation) noMatch(name string) Match {
	m := Match{Missed: name, Fuel: e.used}
	if e.failure != nil {
		m.Failure = fmt.Sprintf("cannot be evaluated for %q: %v", name, e.failure)
	}
	return m
}

func sameInstant(a, b any) bool {
	first, ok := a.(string)
	second, both := b.(string)
	if !ok || !both {
		return false
	}
	at, err := time.Parse(time.RFC3339, first)
	if err != nil {
		return false
	}
	other, err := time.Parse(time.RFC3339, second)
	return err == nil && at.Equal(other)
}

// Equal reports whether two plain values are the same JSON value: 1 and 1.0 are.
func Equal(a, b any) bool {
	first, err := jq.EncodeJSON(a)
	if err != nil {
		return false
	}
	second, err := jq.EncodeJSON(b)
	return err == nil && bytes.Equal(first, second)
}
