// Package filterset matches a set of filters, of which one or all must be matched by events. It decides which events it
// consumes and when it is complete.
package filterset

import (
	"slices"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
)

// State is the state of a set that does not follow from its document.
type State struct {
	// Expect are the required values of the correlation keys of each filter, by name.
	Expect []map[string]any
	// Vars are the variables that the expressions of each filter use, nil for none.
	Vars []map[string]any
	// Met reports for each filter whether it was matched.
	Met []bool
}

// Set is a set of filters. It is not safe for concurrent use. A nil set consumes nothing.
type Set struct {
	State
	mode     eventfilter.Mode
	filters  []*dsl.EventFilter
	matchers []*eventfilter.Matcher
}

// New returns a set. The state has an expectation and variables, nil for none, for each filter; without Met nothing was
// matched yet.
func New(c dsl.Consumption, state State) *Set {
	s := &Set{State: state, mode: c.Mode, filters: c.Filters}
	for i, filter := range c.Filters {
		s.matchers = append(s.matchers, filter.Matcher(state.Expect[i], state.Vars[i]))
	}
	if s.Met == nil {
		s.Met = make([]bool, len(c.Filters))
	}
	return s
}

// Consume reports whether the set consumes an event, and records that it did. keys are the correlation keys of earlier
// events, which all filters share: the first event with a key sets it. It also returns the fuel used.
func (s *Set) Consume(event, keys map[string]any) (taken bool, fuel int64) {
	if s == nil {
		return false, 0
	}
	if s.everything() {
		return true, 0
	}
	for i, matcher := range s.matchers {
		if s.mode == eventfilter.All && s.Met[i] {
			continue
		}
		match := matcher.Match(event)
		fuel += match.Fuel
		if !match.OK || !s.correlates(i, match.Keys, keys) {
			continue
		}
		s.Met[i] = true
		for _, key := range s.filters[i].Correlate {
			if _, fixed := keys[key.Name]; !fixed {
				keys[key.Name] = match.Keys[key.Name]
			}
		}
		return true, fuel
	}
	return false, fuel
}

func (s *Set) everything() bool { return s.mode == eventfilter.Any && len(s.filters) == 0 }

// correlates reports whether an event's keys equal those of earlier events. A key with an expectation of its own has
// been compared with that.
func (s *Set) correlates(i int, found, keys map[string]any) bool {
	for _, key := range s.filters[i].Correlate {
		fixed, known := keys[key.Name]
		if _, expected := s.Expect[i][key.Name]; known && !expected && !eventfilter.Equal(fixed, found[key.Name]) {
			return false
		}
	}
	return true
}

// All reports whether the set requires an event for each filter.
func (s *Set) All() bool { return s.mode == eventfilter.All }

// Complete reports whether the set, which has consumed an event, needs no more.
func (s *Set) Complete() bool { return !s.All() || !slices.Contains(s.Met, false) }

// Spec returns the subscription of a listener: every event that one of the sets may consume. until may be nil.
func Spec(main, until *Set) (eventfilter.Spec, error) {
	out := eventfilter.Spec{Mode: main.mode}
	sets := []*Set{main}
	if until != nil {
		out.Mode, sets = eventfilter.Any, append(sets, until)
	}
	if slices.ContainsFunc(sets, (*Set).everything) {
		return out, nil
	}
	for _, s := range sets {
		for i, filter := range s.filters {
			stored, err := filter.Filter(s.Expect[i], s.Vars[i])
			if err != nil {
				return out, err
			}
			out.Filters = append(out.Filters, stored)
		}
	}
	return out, nil
}
