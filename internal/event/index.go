package event

// Shape is the common part of filters that differ only in the expected values of their correlation keys.
type Shape struct {
	// Type is the only event type that the filters match; empty where it is not fixed.
	Type string
	// Hash identifies the rest of the filter. [EveryEvent] is that of listeners without filters.
	Hash string
	// Filter has no expected values.
	Filter Filter
	// Expects are the names of the keys with an expected value, sorted.
	Expects []string
}

// EveryEvent is the hash of the shape of listeners that receive every event.
const EveryEvent = "every"

// Entry is a filter of a listener in the index of the store.
type Entry struct {
	// Type and Shape are those of the filter's [Shape]. A listener with an entry without shape is read for every event of
	// the type.
	Type, Shape string
	// Values are the expected values of the correlation keys: as text, and in the store as a digest.
	Values string
}

// Lookup selects listeners.
type Lookup struct {
	Entry

	// Summary: only the number of all listeners with the shape is needed, and the first of them.
	Summary bool
}

// Found are the results of lookups.
type Found struct {
	// Listeners are in order of ID, each once.
	Listeners []Listener
	Summaries []Summary
}

// Summary describes the listeners with one shape.
type Summary struct {
	Type, Shape string
	// Count is their number; First is the one with the lowest ID, without its filters.
	Count int
	First Listener
}
