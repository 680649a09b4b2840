package eventfilter_test

import (
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// A filter matches events by their attributes, and extracts the keys by which they are correlated.
func Example() {
	m, err := eventfilter.Compile(eventfilter.Filter{
		With: map[string]eventfilter.Value{
			"type": {Literal: json.RawMessage(`"order.paid"`)},
			"data": {Expr: ".cents > 100"},
		},
		Correlate: map[string]eventfilter.Key{"order": {From: ".data.id"}},
	}, jq.NewCompiler())
	if err != nil {
		fmt.Println(err)
		return
	}
	paid := map[string]any{"type": "order.paid", "data": map[string]any{"id": "o-1", "cents": 250}}
	match := m.Match(paid)
	fmt.Println(match.OK, match.Keys)

	other := m.Expecting(map[string]any{"order": "o-2"}, nil).Match(paid)
	fmt.Println(other.OK, other.Missed)
	// Output:
	// true map[order:o-1]
	// false correlate.order
}

// A spec can match only events of certain types, so that events of other types need no match.
func ExampleSpec_Types() {
	literal := func(text string) eventfilter.Filter {
		return eventfilter.Filter{With: map[string]eventfilter.Value{"type": {Literal: json.RawMessage(text)}}}
	}
	s := eventfilter.Spec{Mode: eventfilter.Any, Filters: []eventfilter.Filter{literal(`"paid"`), literal(`"canceled"`)}}
	fmt.Println(s.Types())
	// Output: [canceled paid]
}

// A workflow reads an event in one of three forms.
func ExampleForm_Read() {
	event := map[string]any{"type": "order.paid", "data": map[string]any{"id": "o-1"}}
	fmt.Println(eventfilter.Data.Read(event))
	fmt.Println(eventfilter.Raw.Read(event))
	// Output:
	// map[id:o-1]
	// eyJpZCI6Im8tMSJ9
}
