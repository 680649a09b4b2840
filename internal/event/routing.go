package event

// Partial is an open set of events of a trigger: some of its filters have a matching event, others not yet.
type Partial struct {
	Project, Workflow string
	// Key identifies it among the partials of its workflow, at most [MaxPartialKey] bytes. Only package match reads it: it
	// holds the values of the correlation keys that its events share, and a hash of the filters that it was made for.
	Key string
	// Positions are the events by the index of the filter that they match; 0 for a filter without an event.
	Positions []int64
}

// MaxPartialKey is the longest [Partial.Key], in bytes.
const MaxPartialKey = 8 << 10

// Routing is the result of matching one event.
type Routing struct {
	Position   int64
	Status     Status
	Reason     string
	Deliveries []Delivery
	// Partials replace those with the same key; one without positions is removed.
	Partials []Partial
}

// Batch is the input of matching: events in order, and the targets that they may match.
type Batch struct {
	Events   []Event
	Triggers []Trigger
	// Shapes are those of the listeners that match a type of the events, and of those that match any type.
	Shapes []Shape
	// Listeners are those among them that the index does not have by their values, in order of ID.
	Listeners []Listener
	Partials  []Partial // of the triggers
	// Earlier are the events that the partials name: only their positions, IDs and sources, because there may be many.
	Earlier []Event
}
