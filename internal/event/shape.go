package event

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
)

const (
	// shapeVersion is part of each hash. A stored hash that the filter of its listener does not have is not used.
	shapeVersion = "1"
	// shapeHashSize is the number of bytes of a hash.
	shapeHashSize = 16
)

// ShapeOf divides a filter into what many listeners share and what each of them expects. Runs of one workflow wait with
// the same filters and differ in the expected values of their correlation keys: the shape of such a filter is evaluated
// once per event, and an index has the listeners by the values, which [ShapeValues] encodes.
//
// Hashes and values are stored. A change of the result for an existing filter requires another version of the shape.
//
// With an error, the expected values are not valid, and the shape is still that of the filter.
func ShapeOf(f Filter) (s Shape, values string, err error) {
	s.Filter = Filter{With: f.With, Vars: f.Vars}
	expected := map[string]json.RawMessage{}
	for name, k := range f.Correlate {
		if s.Filter.Correlate == nil {
			s.Filter.Correlate = map[string]Key{}
		}
		s.Filter.Correlate[name] = Key{From: k.From}
		if k.Expect != nil {
			expected[name] = k.Expect
		}
	}
	s.Expects = slices.Sorted(maps.Keys(expected))
	if types := (eventfilter.Spec{Filters: []Filter{f}}).Types(); len(types) == 1 {
		s.Type = types[0]
	}
	text, err := json.Marshal(struct {
		Version string   `json:"version"`
		Filter  Filter   `json:"filter"`
		Expects []string `json:"expects"`
	}{shapeVersion, s.Filter, s.Expects})
	if err != nil {
		return s, "", fmt.Errorf("encode a filter: %w", err)
	}
	sum := sha256.Sum256(text)
	s.Hash = base64.RawURLEncoding.EncodeToString(sum[:shapeHashSize])
	list := make([]any, len(s.Expects))
	for i, name := range s.Expects {
		if list[i], err = jq.DecodeJSON(expected[name]); err != nil {
			return s, "", fmt.Errorf("what the correlation key %q expects: %w", name, err)
		}
	}
	return s, ShapeValues(list), nil
}

// ShapeValues encodes the values of the keys of a shape, in the order of their names, so that two lists give equal text
// if and only if they are equal. No keys give an empty text.
func ShapeValues(values []any) string {
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

// EntriesOf returns the entries of a listener in the index, one for each filter.
func EntriesOf(s Spec) []Entry {
	if s.Mode == Any && len(s.Filters) == 0 {
		return []Entry{{Shape: EveryEvent}}
	}
	entries := make([]Entry, len(s.Filters))
	for i, f := range s.Filters {
		of, values, err := ShapeOf(f)
		entries[i] = Entry{Type: of.Type, Shape: of.Hash, Values: values}
		if err != nil {
			entries[i] = Entry{Type: of.Type}
		}
	}
	return entries
}
