// Package gather keeps a set of filters that is to be met by one event, or each by one: which event it takes, and when it has
// enough.
package gather

import (
	"slices"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// State is what a set knows besides its document.
type State struct {
	// Expect is what the correlation keys of each filter must be, by name.
	Expect []map[string]any
	// Met tells which filters were met.
	Met []bool
}

// Set is a set of filters. It is not safe for concurrent use. A nil set takes nothing.
type Set struct {
	State
	mode     eventfilter.Mode
	filters  []*dsl.EventFilter
	matchers []*eventfilter.Matcher
}

// New makes a set. The state has an expectation, nil for none, for each filter; without Met nothing was met yet.
func New(c dsl.Consumption, state State) *Set {
	s := &Set{State: state, mode: c.Mode, filters: c.Filters}
	for i, filter := range c.Filters {
		s.matchers = append(s.matchers, filter.Matcher(state.Expect[i]))
	}
	if s.Met == nil {
		s.Met = make([]bool, len(c.Filters))
	}
	return s
}

// Takes tells whether an event is one that the set still wants, and notes that it has it. keys are the correlation keys of the
// events before, which all filters share: the first event that brings a key fixes it. It also gives the compute it took.
func (s *Set) Takes(event, keys map[string]any, prices jq.Prices) (taken bool, fuel int64) {
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
		match := matcher.MatchAt(event, prices)
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

// correlates tells whether an event's keys are those of the events before it. A key with an expectation of its own has
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

// Enough tells whether the set, which has taken an event, wants no more.
func (s *Set) Enough() bool { return s.mode != eventfilter.All || !slices.Contains(s.Met, false) }

// Spec is what a listener is to be told of: every event that one of the sets, of which until may be nil, may take.
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
			stored, err := filter.Filter(s.Expect[i])
			if err != nil {
				return out, err
			}
			out.Filters = append(out.Filters, stored)
		}
	}
	return out, nil
}
