package event

import (
	"context"
	"time"
)

// ScheduleFired is the type of the event that the clock gives for a workflow with a timer. Its source is [TimerSource], its ID the time at which it was due
// (RFC 3339 in whole seconds) and, where it follows a run, a slash and that run's ID. Its subject is the workflow.
const ScheduleFired = "io.signalbox.schedule.fired"

// TimerSource is the source of the events of a workflow's timer; name is "namespace/name".
func TimerSource(project, name string) string {
	return "/projects/" + project + "/workflows/" + name + "/schedule"
}

// TimerSpec is when a workflow is to be started by the clock: one of its fields is set, or none, which is no pause after the end of a run.
type TimerSpec struct {
	// Cron is an expression in UTC.
	Cron string `json:"cron,omitempty"`
	// Every is a period, counted from the publication.
	Every time.Duration `json:"every,omitempty"`
	// After is the pause between the end of one run and the start of the next.
	After time.Duration `json:"after,omitempty"`
}

// Follows tells whether what counts is the end of a run, and not the clock alone.
func (s TimerSpec) Follows() bool { return s.Cron == "" && s.Every == 0 }

// Timer is what a published workflow's newest version wants of the clock.
type Timer struct {
	Project, Workflow, Version string
	// Paused: the workflow is.
	Paused bool
	// Since is when the version was published.
	Since time.Time
	Spec  TimerSpec
}

// TimerCursor is a place in the list of timers, in the order of project and workflow.
type TimerCursor struct{ Project, Workflow string }

// TimerStore lists timers, which are written with the publication of their workflows.
type TimerStore interface {
	// ListTimers returns up to limit timers beyond the cursor.
	ListTimers(ctx context.Context, after TimerCursor, limit int) ([]Timer, error)
	// GetTimer returns a workflow's timer, and whether it has one.
	GetTimer(ctx context.Context, project, workflow string) (Timer, bool, error)
}

// Fires is what the clock did for a workflow, and what it will do.
type Fires struct {
	// Next are the next times, the first one first; none while the workflow is paused, or waits for a run to end.
	Next []time.Time
	// Last is the last time at which it fired; zero when it never did.
	Last time.Time
	// Fired counts how often it did, Missed the times that were passed over because they were too late to be made up for. Both are
	// 0 for a timer that counts from the end of a run: it never misses one.
	Fired, Missed int64
}
