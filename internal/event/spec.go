package event

import "github.com/signalbox-dev/signalbox/dsl/eventfilter"

// Trigger is what a published workflow wants to be started by: its schedule.on. There is one per workflow, that
// of the newest version.
type Trigger struct {
	Project, Workflow, Version, DocumentHash string
	// Paused: the workflow is; events that match are kept as unmatched, with that reason.
	Paused bool
	// Since is the position at which the workflow began to want events. A newer version keeps it, so that what was accepted before
	// its publication and is not matched yet is not lost between the two.
	Since int64
	Spec  Spec
}

// Listener is a run that waits for events in one listen task.
type Listener struct {
	// ID is derived from the run and the entry into the task.
	ID, Project, RunID string
	Since              int64
	Spec               Spec
}

// Mode says how many of a spec's filters have to match.
type Mode = eventfilter.Mode

// The modes.
const (
	One = eventfilter.One // the single filter
	Any = eventfilter.Any // one of the filters; without filters, every event
	All = eventfilter.All // each of the filters, by events that correlate
)

// What filters are made of is the language's, as the runs that listen match with it too.
type (
	// Filter matches events.
	Filter = eventfilter.Filter
	// Value is what an attribute must be.
	Value = eventfilter.Value
	// Key tells which events belong together.
	Key = eventfilter.Key
)

// Spec is what a trigger or a listener wants, in a form that can be stored: whatever depends on a run's data has been evaluated.
type Spec struct {
	// Mode is empty where nothing but the clock is wanted, see Timed.
	Mode    Mode     `json:"mode,omitempty"`
	Filters []Filter `json:"filters,omitempty"`
	// Timed is the source of the timer's events that start the workflow, see [TimerSource]; empty without a timer.
	Timed string `json:"timed,omitempty"`
}

// Types are the event types that a spec can match, nil when it can match any.
func (s Spec) Types() []string {
	types := []string{}
	if s.Timed != "" {
		types = append(types, ScheduleFired)
	}
	if s.Mode == "" {
		return types
	}
	wanted := eventfilter.Spec{Mode: s.Mode, Filters: s.Filters}.Types()
	if wanted == nil {
		return nil
	}
	return append(types, wanted...)
}
