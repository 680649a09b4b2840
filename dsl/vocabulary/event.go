package vocabulary

import "slices"

func eventTypes() []Type {
	types := []Type{
		{Name: "emit", Form: Structure, Keys: []Key{{"event", "emitted event", true, "The event."}}},
		{Name: "emitted event", Form: Structure, Keys: []Key{{"with", "event", true, "The attributes of the event."}}},
		{Name: "event", Form: Map, Item: typeAny, Keys: attributes(true)},
		{Name: "event pattern", Form: Map, Item: typeAny, Least: 1, Keys: attributes(false)},
		{Name: "listen", Form: Structure, Keys: []Key{
			{"to", typeStrategy, true, "Which events: exactly one of `one`, `any` and `all`."},
			{"read", typeRead, false, "What of an event is in the output: `data` (default), `envelope` or `raw`."},
		}},
		{Name: typeRead, Form: Text, Words: []string{"data", "envelope", "raw"}},
		{Name: "foreach", Form: Structure, Keys: []Key{
			{"item", typeVariable, false, "Name of the variable of the event. Default: `item`."},
			{"at", typeVariable, false, "Name of the variable of the index. Default: `index`."},
			{"do", typeTasks, false, "The tasks for each event."},
			{"output", typeOutput, false, "Maps the output of the tasks of each event."},
			{"export", typeExport, false, "Sets `$context` after each event."},
		}},
		{Name: "event filters", Form: List, Item: typeFilter},
		{Name: "some event filters", Form: List, Item: typeFilter, Least: 1},
		{Name: typeFilter, Form: Structure, Keys: []Key{
			{"with", "event pattern", true, "Attributes that the event must have: values, or conditions in `${ }`."},
			{"correlate", "correlations", false, "Keys by which events belong to a run."},
		}},
		{Name: "correlations", Form: Map, Item: "correlation"},
		{Name: "correlation", Form: Structure, Keys: []Key{
			{"from", typeExpression, true, "Expression on the event that gives its key."},
			{"expect", typeText, false, "The value that the key must have. Default: that of the first event."},
		}},
		{Name: "until", Form: Choice, Options: []string{typeExpression, "trigger"}},
	}
	strategy := []Key{
		{"one", typeFilter, false, "One event that matches this filter."},
		{"any", "event filters", false, "Events that match any of these filters; `[]` takes every event."},
		{"all", "some event filters", false, "An event for each of these filters."},
	}
	until := Key{"until", "until", false, "Ends `any`: a condition on the event, or events."}
	one := []string{"one", "any", "all"}
	return append(types,
		Type{Name: "trigger", Form: Structure, OneOf: one, Keys: strategy},
		Type{Name: typeStrategy, Form: Structure, OneOf: one, Keys: append(slices.Clone(strategy), until)})
}

// attributes returns the attributes of events that have a meaning of their own; others are extensions.
func attributes(emitted bool) []Key {
	return []Key{
		{"type", typeText, emitted, "Type of the event, such as `com.example.order.paid`."},
		{"source", typeText, false, "URI of what published the event."},
		{"subject", typeText, false, "Subject of the event within its source."},
		{"data", typeAny, false, "Data of the event."},
		{"id", typeText, false, "ID of the event, unique within its source."},
		{"time", typeText, false, "Time of the event."},
		{"datacontenttype", typeText, false, "Content type of the data."},
		{"dataschema", typeText, false, "URI of the schema of the data."},
	}
}
