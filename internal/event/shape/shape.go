// Package shape divides event filters into what many listeners share and what each of them expects. Runs of one
// workflow wait with the same filters and differ in the expected values of their correlation keys: the shape of such a
// filter is evaluated once per event, and an index has the listeners by the values.
//
//	s, values, err := shape.Of(filter)
//	entries := shape.Entries(event.Spec{Mode: event.Any, Filters: filters})
//
// Hashes and values are stored. A change of the result for an existing filter requires another [version].
package shape

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
)

const (
	// version is part of each hash. A stored hash that the filter of its listener does not have is not used.
	version = "1"
	// hashSize is the number of bytes of a hash.
	hashSize = 16
)

// Of returns the shape of a filter and its expected values, as [Values] encodes them. With an error, the expected
// values are not valid, and the shape is still that of the filter.
func Of(f event.Filter) (s event.Shape, values string, err error) {
	s.Filter = event.Filter{With: f.With, Vars: f.Vars}
	expected := map[string]json.RawMessage{}
	for name, k := range f.Correlate {
		if s.Filter.Correlate == nil {
			s.Filter.Correlate = map[string]event.Key{}
		}
		s.Filter.Correlate[name] = event.Key{From: k.From}
		if k.Expect != nil {
			expected[name] = k.Expect
		}
	}
	s.Expects = slices.Sorted(maps.Keys(expected))
	if types := (eventfilter.Spec{Filters: []event.Filter{f}}).Types(); len(types) == 1 {
		s.Type = types[0]
	}
	text, err := json.Marshal(struct {
		Version string       `json:"version"`
		Filter  event.Filter `json:"filter"`
		Expects []string     `json:"expects"`
	}{version, s.Filter, s.Expects})
	if err != nil {
		return s, "", fmt.Errorf("encode a filter: %w", err)
	}
	sum := sha256.Sum256(text)
	s.Hash = base64.RawURLEncoding.EncodeToString(sum[:hashSize])
	list := make([]any, len(s.Expects))
	for i, name := range s.Expects {
		if list[i], err = jq.DecodeJSON(expected[name]); err != nil {
			return s, "", fmt.Errorf("what the correlation key %q expects: %w", name, err)
		}
	}
	return s, Values(list), nil
}

// Values encodes the values of the keys of a shape, in the order of their names, so that two lists give equal text if
// and only if they are equal. No keys give an empty text.
func Values(values []any) string {
	var b strings.Builder
	for _, v := range values {
		text, err := jq.EncodeJSON(v)
		if err != nil {
			text = []byte("!") // not valid JSON, so it equals nothing
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}

// Entries returns the entries of a listener in the index, one for each filter.
func Entries(s event.Spec) []event.Entry {
	if s.Mode == event.Any && len(s.Filters) == 0 {
		return []event.Entry{{Shape: event.EveryEvent}}
	}
	entries := make([]event.Entry, len(s.Filters))
	for i, f := range s.Filters {
		of, values, err := Of(f)
		entries[i] = event.Entry{Type: of.Type, Shape: of.Hash, Values: values}
		if err != nil {
			entries[i] = event.Entry{Type: of.Type}
		}
	}
	return entries
}
