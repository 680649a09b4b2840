// Package eventfilter decides whether an event is one that a document asks for: the filters of a listen task and of an
// event-driven schedule, in a form that can be stored and matched far from the run that listens.
//
//	m, err := eventfilter.Compile(filter, jq.NewCompiler())
//	match := m.Match(event, fuel)
//	if match.OK { /* match.Keys are the values that tell which events belong together */ }
//
// An event is its CloudEvents JSON form as a plain value (jq.Normalize): the context attributes, extensions among them,
// and `data` or, for bytes, `data_base64`.
//
// # What matches
//
//   - `with` names attributes. Each must match: a literal by being equal (times by naming the same moment), an object
//     member by member (the event may have more), an array as a whole.
//   - An expression is evaluated on the attribute's own value: for `data`, `.` is the payload; for `type`, the type's
//     text. true matches, false and null do not; any other result matches where it equals the attribute.
//   - `correlate.*.from` is evaluated on the whole event. null, or an expression that fails, says that the event lacks
//     the key, and does not match.
//
// A filter never fails: an expression that cannot be evaluated on an event, or that is over its budget, does not match it.
// The verdict depends on filter and event alone, so the dispatcher and the run that it wakes agree.
//
// The package does not know how many filters must match, nor which values of keys were seen before: that is for whoever
// keeps sets of events.
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

// Fuel is the budget of one expression of a filter, the same for whoever matches.
const Fuel = 200_000

// Mode says how many of a spec's filters have to match.
type Mode string

// The modes.
const (
	One Mode = "one" // the single filter
	Any Mode = "any" // one of the filters; without filters, every event
	All Mode = "all" // each of the filters, by events that correlate
)

// Spec is what a trigger or a listener wants. Whatever depends on a run's data has been evaluated.
type Spec struct {
	Mode    Mode     `json:"mode"`
	Filters []Filter `json:"filters,omitempty"`
}

// Filter matches events.
type Filter struct {
	// With are the attributes that an event must have, by name ("data" is its payload).
	With map[string]Value `json:"with,omitempty"`
	// Correlate are the keys by which events belong together, by name.
	Correlate map[string]Key `json:"correlate,omitempty"`
}

// Value is what an attribute must be: a literal, an expression or an object of values. One of the three is set.
type Value struct {
	Literal json.RawMessage `json:"literal,omitempty"`
	// Expr is an expression in jq (without ${ }) on the attribute's value.
	Expr string `json:"expr,omitempty"`
	// Members are those that the attribute, an object, must have: at least one.
	Members map[string]Value `json:"members,omitempty"`
}

// Key is a correlation key.
type Key struct {
	// From is an expression on the event that gives the key's value.
	From string `json:"from"`
	// Expect is what the value must be; nil: whatever the first event brings, the others must bring too.
	Expect json.RawMessage `json:"expect,omitempty"`
}

// Types are the event types that a spec can match, sorted; nil when it can match any.
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
}

type attribute struct {
	name string
	want want
}

// want is a compiled Value.
type want struct {
	program *jq.Program
	members []attribute
	literal any
}

type key struct {
	name string
	from *jq.Program
}

// Compile compiles a filter. An error names the expression or literal that is wrong.
func Compile(f Filter, c *jq.Compiler) (*Matcher, error) {
	m := &Matcher{}
	var err error
	if m.with, err = attributes(f.With, c); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Correlate)) {
		k := f.Correlate[name]
		program, err := c.Compile(k.From, nil)
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

func attributes(values map[string]Value, c *jq.Compiler) ([]attribute, error) {
	var out []attribute
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		a := attribute{name: name}
		var err error
		switch {
		case v.Expr != "":
			a.want.program, err = c.Compile(v.Expr, nil)
		case v.Members != nil:
			a.want.members, err = attributes(v.Members, c)
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

// Expecting is the matcher with what its keys must be, by name; keys that are not named take any value.
func (m *Matcher) Expecting(expect map[string]any) *Matcher {
	return &Matcher{with: m.with, keys: m.keys, expect: expect}
}

// Match is the verdict on one event.
type Match struct {
	OK bool
	// Keys are the values of the correlation keys by name, nil where the filter has none or does not match.
	Keys map[string]any
	// Missed names what did not match: an attribute, or a correlation key as "correlate.NAME".
	Missed string
	// Problem says why an expression could not be evaluated, empty where each could.
	Problem string
	// Fuel is the compute that it took.
	Fuel int64
}

// Match matches an event, a plain value that must not be changed meanwhile.
func (m *Matcher) Match(event map[string]any) Match { return m.MatchAt(event, jq.ByWork) }

// MatchAt is Match at the prices of a run that began with others.
func (m *Matcher) MatchAt(event map[string]any, prices jq.Prices) Match {
	e := evaluation{prices: prices}
	for _, a := range m.with {
		if !a.want.accepts(attributeOf(event, a.name), a.name == "time", &e) {
			return e.missed(a.name)
		}
	}
	var keys map[string]any
	for _, k := range m.keys {
		value, err := e.run(k.from, event)
		expected, bound := m.expect[k.name]
		if err != nil || value == nil || bound && !Equal(expected, value) {
			return e.missed("correlate." + k.name)
		}
		if keys == nil {
			keys = map[string]any{}
		}
		keys[k.name] = value
	}
	return Match{OK: true, Keys: keys, Fuel: e.used}
}

// attributeOf is an attribute's value; the payload may be there as bytes.
func attributeOf(event map[string]any, name string) any {
	value, given := event[name]
	if !given && name == "data" {
		return event["data_base64"]
	}
	return value
}

func (w want) accepts(value any, moment bool, e *evaluation) bool {
	switch {
	case w.program != nil:
		result, err := e.run(w.program, value)
		if verdict, decided := result.(bool); err != nil || decided || result == nil {
			return verdict
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
	return Equal(w.literal, value) || moment && sameMoment(w.literal, value)
}

// evaluation is what matching one event took, and the first expression that failed.
type evaluation struct {
	prices  jq.Prices
	used    int64
	problem error
}

func (e *evaluation) run(p *jq.Program, input any) (any, error) {
	fuel := jq.NewFuel(Fuel)
	fuel.Prices = e.prices
	value, err := p.Run(input, nil, fuel)
	e.used += fuel.Used()
	if e.problem == nil {
		e.problem = err
	}
	return value, err
}

func (e *evaluation) missed(name string) Match {
	m := Match{Missed: name, Fuel: e.used}
	if e.problem != nil {
		m.Problem = fmt.Sprintf("cannot be evaluated for %q: %v", name, e.problem)
	}
	return m
}

func sameMoment(a, b any) bool {
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

// Equal tells whether two plain values are the same JSON value: 1 and 1.0 are.
func Equal(a, b any) bool {
	first, err := jq.EncodeJSON(a)
	if err != nil {
		return false
	}
	second, err := jq.EncodeJSON(b)
	return err == nil && bytes.Equal(first, second)
}
