package event

import "github.com/signalbox-dev/signalbox/dsl/eventfilter"

// Trigger is the schedule.on of a published workflow: which events start it. There is one per workflow, that of the
// newest version.
type Trigger struct {
	Project, Workflow, Version, DocumentHash string
	// Paused: the workflow is paused; matching events become unmatched, with that reason.
	Paused bool
	// Since is the position after which events start the workflow. A newer version keeps it, so that events that were
	// accepted before its publication and are not matched yet are not lost.
	Since int64
	Spec  Spec
}

// Listener is a run that waits for events in one listen task.
type Listener struct {
	// ID is derived from the run and the entry into the task.
	ID, Project, RunID string
	Since              int64
	Spec               Spec
	// FromStart: it also takes the events that were accepted since its run started, except those that the run has taken
	// already. After is a position after which these begin, if it is above that of the run's start; Taken are events that
	// the run has taken since it committed its last listener. Single: one event ends the task. The listener is not stored
	// with these.
	FromStart, Single bool
	After             int64
	Taken             []int64
	// Entries are those of its filters in the index. Package sealed sets them, because they depend on its keys.
	Entries []Entry
}

// Mode is how many of a spec's filters have to match.
type Mode = eventfilter.Mode

// The modes.
const (
	One = eventfilter.One // the single filter
	Any = eventfilter.Any // one of the filters; without filters, every event
	All = eventfilter.All // each of the filters, by events that correlate
)

// These types belong to the workflow language, because listening runs match with them too.
type (
	// Filter matches events.
	Filter = eventfilter.Filter
	// Value is the condition on an attribute.
	Value = eventfilter.Value
	// Key correlates events.
	Key = eventfilter.Key
)

// Spec is the condition of a trigger or a listener, in a form that can be stored: everything that depends on a run's
// data is evaluated.
type Spec struct {
	// Mode is empty where only a timer starts the workflow, see Timed.
	Mode    Mode     `json:"mode,omitempty"`
	Filters []Filter `json:"filters,omitempty"`
	// Timed is the source of the timer's events that start the workflow, see [TimerSource]; empty without a timer.
	Timed string `json:"timed,omitempty"`
}

// Types returns the event types that a spec can match, nil when it can match any.
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
