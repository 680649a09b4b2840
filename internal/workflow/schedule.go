package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// startedBy returns the schedule of a document: the JSON of [event.Spec] and, for a timer, that of [event.TimerSpec]. A
// timer publishes events too, and the spec matches them.
func startedBy(project string, doc *dsl.Document) (trigger, timer json.RawMessage, err error) {
	s := doc.Schedule
	if s == nil {
		return nil, nil, nil
	}
	var spec event.Spec
	if s.On != nil {
		spec.Mode, spec.Filters = s.On.Mode, s.On.Filters
	} else {
		spec.Timed = event.TimerSource(project, doc.Namespace+"/"+doc.Name)
		clock := event.TimerSpec{Cron: s.Cron}
		if s.Every != nil {
			clock.Every, _ = s.Every.Fixed()
		}
		if s.After != nil {
			clock.After, _ = s.After.Fixed()
		}
		clock.Settings = event.TimerSettings{TimeZone: s.Settings.TimeZone, Overlap: s.Settings.Overlap,
			Jitter: length(s.Settings.Jitter), CatchUp: length(s.Settings.CatchUp)}
		if timer, err = json.Marshal(clock); err != nil {
			return nil, nil, fmt.Errorf("writing the timer of %s/%s: %w", doc.Namespace, doc.Name, err)
		}
	}
	if trigger, err = json.Marshal(spec); err != nil {
		return nil, nil, fmt.Errorf("writing the trigger of %s/%s: %w", doc.Namespace, doc.Name, err)
	}
	return trigger, timer, nil
}

// SetSchedule replaces what operators have set of the schedule of a workflow, whose timer is t, and returns the timer
// with that. The zero value leaves the schedule to the document.
func (s *Service) SetSchedule(ctx context.Context, t event.Timer, o event.Override) (event.Timer, error) {
	if err := checkOverride(t, o); err != nil {
		return t, err
	}
	now := s.now()
	switch {
	case o.PausedUntil.IsZero():
		o.PausedSince = time.Time{}
	case t.PausedAt(now):
		o.PausedSince = t.Override.PausedSince
	default:
		o.PausedSince = now
	}
	t.Override = o
	return t, s.store.SetOverride(ctx, t.Project, t.Workflow, o,
		audit.NewEntry(ctx, now, audit.WorkflowSetSchedule, t.Project, t.Workflow, ""))
}

// checkOverride refuses settings that a document may not have either.
func checkOverride(t event.Timer, o event.Override) error {
	refuse := func(name, field, given, why string) error {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s %.80q %s", name, given, why).
			WithField(field, "%s", why)
	}
	if zone := o.TimeZone; zone != "" {
		known, suggestion := dsl.IsTimeZone(zone)
		switch {
		case t.Spec.Cron == "":
			return refuse("time_zone", "timeZone", zone, "concerns only a schedule with cron: an interval has no time of day")
		case !known:
			return refuse("time_zone", "timeZone", zone, "is not a name of the IANA database: "+suggestion)
		}
	}
	if o.Overlap != "" && !slices.Contains(dsl.Overlaps(), o.Overlap) {
		return refuse("overlap", "overlap", string(o.Overlap), fmt.Sprintf("must be one of %q", dsl.Overlaps()))
	}
	for _, d := range []struct {
		name, field string
		given       *time.Duration
		least, most time.Duration
	}{
		{"jitter", "jitter", o.Jitter, 0, dsl.MaxJitter},
		{"catch_up", "catchUp", o.CatchUp, dsl.MinCatchUp, dsl.MaxCatchUp},
	} {
		if d.given != nil && (*d.given < d.least || *d.given > d.most) {
			return refuse(d.name, d.field, d.given.String(), fmt.Sprintf("must be from %s to %s", d.least, d.most))
		}
	}
	return nil
}

// length returns the length of a fixed duration; nil for none.
func length(d *dsl.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	fixed, _ := d.Fixed()
	return &fixed
}
