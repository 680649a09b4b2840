package event

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/firing"
)

// ScheduleFired is the type of the event that a workflow's timer publishes. Its source is [TimerSource], its ID the due
// time (RFC 3339 in whole seconds) and, where it follows a run, a slash and that run's ID. Its subject is the workflow.
const ScheduleFired = "io.signalbox.schedule.fired"

// TimerSource returns the source of the events of a workflow's timer; name is "namespace/name".
func TimerSource(project, name string) string {
	return "/projects/" + project + "/workflows/" + name + "/schedule"
}

// FollowedRun returns the ID of the run of a workflow after whose end its timer has fired with this event; false for
// any other event. The ID of such an event is the due time, a slash and the run's.
func (e Event) FollowedRun(project, workflow string) (id string, follows bool) {
	if e.Type != ScheduleFired || e.Source != TimerSource(project, workflow) {
		return "", false
	}
	_, id, follows = strings.Cut(e.ID, "/")
	return id, follows
}

// TimerSpec is the schedule of a timer. At most one field is set; without any, a run follows the end of the previous
// one at once.
type TimerSpec struct {
	// Cron is an expression in the time zone of Settings.
	Cron string `json:"cron,omitempty"`
	// Every is a period, counted from the publication.
	Every time.Duration `json:"every,omitempty"`
	// After is the delay between the end of one run and the start of the next.
	After time.Duration `json:"after,omitempty"`
	// Settings are those of Cron and Every, from the document.
	Settings TimerSettings `json:"settings,omitzero"`
}

// TimerSettings are settings of a timer with Cron or Every. A field that is empty or nil is not set.
type TimerSettings struct {
	// TimeZone is an IANA name.
	TimeZone string      `json:"timezone,omitempty"`
	Overlap  dsl.Overlap `json:"overlap,omitempty"`
	// Jitter is the longest random delay of a fire. CatchUp is the age up to which a missed fire is made up for.
	Jitter  *time.Duration `json:"jitter,omitempty"`
	CatchUp *time.Duration `json:"catchup,omitempty"`
}

// DefaultCatchUp is the age up to which a missed fire is made up for, without a setting.
const DefaultCatchUp = 10 * time.Minute

// Defaults returns the settings of a timer that has none.
func Defaults() TimerSettings {
	return TimerSettings{TimeZone: "UTC", Overlap: dsl.OverlapAllow, Jitter: new(time.Duration), CatchUp: new(DefaultCatchUp)}
}

// Over returns the settings with those of base where they are not set.
func (s TimerSettings) Over(base TimerSettings) TimerSettings {
	s.TimeZone, s.Overlap = cmp.Or(s.TimeZone, base.TimeZone), cmp.Or(s.Overlap, base.Overlap)
	s.Jitter, s.CatchUp = cmp.Or(s.Jitter, base.Jitter), cmp.Or(s.CatchUp, base.CatchUp)
	return s
}

// Follows reports whether the timer counts from the end of a run, and not by the clock alone.
func (s TimerSpec) Follows() bool { return s.Cron == "" && s.Every == 0 }

// Override are settings of a timer that operators have set, beside the document.
type Override struct {
	TimerSettings

	// PausedUntil is the time before which the timer does not fire; zero for none. PausedSince is when that was set.
	PausedUntil time.Time `json:"pausedUntil,omitzero"`
	PausedSince time.Time `json:"pausedSince,omitzero"`
}

// IsZero reports whether nothing is set.
func (o Override) IsZero() bool { return o == Override{} }

// Timer is the timer of a published workflow's newest version.
type Timer struct {
	Project, Workflow, Version string
	// Paused: the workflow is paused.
	Paused bool
	// Since is when the version was published, ChangedAt when the workflow last changed, by a pause for example.
	Since, ChangedAt time.Time
	Spec             TimerSpec
	// Override takes precedence over the settings of Spec.
	Override Override
	// MissedAt is the newest due time at which the timer did not fire; zero if it did.
	MissedAt time.Time
}

// PausedAt reports whether operators have paused the timer until a later moment than this one.
func (t Timer) PausedAt(now time.Time) bool { return t.Override.PausedUntil.After(now) }

// Current returns the timer without a pause that has ended: that is no part of the schedule any more, so that times within
// it can be backfilled.
func (t Timer) Current(now time.Time) Timer {
	if !t.PausedAt(now) {
		t.Override.PausedUntil, t.Override.PausedSince = time.Time{}, time.Time{}
	}
	return t
}

// Settings returns the settings that are in effect; all of them are set.
func (t Timer) Settings() TimerSettings {
	return t.Override.Over(t.Spec.Settings).Over(Defaults())
}

// Firing returns when the timer fires; only for one that does not follow runs.
func (t Timer) Firing() firing.Spec {
	s := firing.Spec{Cron: t.Spec.Cron, Every: t.Spec.Every, Since: t.Since, Start: t.Override.PausedUntil}
	if s.Cron != "" {
		s.Zone = t.Settings().TimeZone
	}
	return s
}

// TimerCursor is a position in the list of timers, in the order of project and workflow.
type TimerCursor struct{ Project, Workflow string }

// TimerStore lists timers, which are written with the publication of their workflows.
type TimerStore interface {
	// ListTimers returns up to limit timers beyond the cursor.
	ListTimers(ctx context.Context, after TimerCursor, limit int) ([]Timer, error)
	// GetTimer returns a workflow's timer, and whether it has one.
	GetTimer(ctx context.Context, project, workflow string) (Timer, bool, error)
	// SetMissed records the newest due time at which a workflow's timer did not fire; zero: it did.
	SetMissed(ctx context.Context, project, workflow string, at time.Time) error
	// Positions returns the positions of the events of a source with these IDs, by ID.
	Positions(ctx context.Context, project, source string, ids []string) (map[string]int64, error)
}

// Outcome states whether a timer fired at a due time, and if not, why.
type Outcome string

// The outcomes of due times.
const (
	// Fired: there is an event of this time.
	Fired Outcome = "fired"
	// Due: the event may still come.
	Due Outcome = "due"
	// Paused: the workflow was paused.
	Paused Outcome = "paused"
	// Skipped: a run that the schedule had started was open.
	Skipped Outcome = "skipped"
	// Missed: the time was too late to be caught up.
	Missed Outcome = "missed"
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{Fired, Due, Paused, Skipped, Missed} }

// DueTime is a time at which a timer was due.
type DueTime struct {
	At      time.Time
	Outcome Outcome
	// Reason says why the timer did not fire.
	Reason string
	// Position is that of the event; 0 if there is none.
	Position int64
}

// Fires is the past and the next firing times of a workflow's timer.
type Fires struct {
	// Next are the next times, in order; none while the workflow is paused, or waits for a run to end.
	Next []time.Time
	// Last is the time of the last firing; zero when there was none.
	Last time.Time
	// Fired counts the firings; Missed counts the times that were too late to catch up, and Skipped those at which a run of
	// an earlier one was open. All are 0 for a timer that counts from the end of a run, which never misses one.
	Fired, Missed, Skipped int64
}
