package event

// Partial is a trigger's open set of events: some of its filters are met, others not yet.
type Partial struct {
	Project, Workflow string
	// Key names it among the partials of its workflow, at most [MaxPartialKey] bytes. Only matching reads it: it holds the
	// values of the correlation keys that its events share, and what it was made for.
	Key string
	// Positions are the events by the index of the filter that they met; 0 where none did yet.
	Positions []int64
}

// MaxPartialKey is the longest [Partial.Key], in bytes.
const MaxPartialKey = 8 << 10

// Routing is what matching made of one event.
type Routing struct {
	Position   int64
	Status     Status
	Reason     string
	Deliveries []Delivery
	// Partials are written as they are; one with no positions is removed.
	Partials []Partial
}

// Batch is what is to be matched: events in order, and what they may be for.
type Batch struct {
	Events    []Event
	Triggers  []Trigger
	Listeners []Listener // those whose types occur among the events, and those that take any type
	Partials  []Partial  // of the triggers
	// Earlier are the events that the partials name: their positions, IDs and sources, since there may be many.
	Earlier []Event
}
