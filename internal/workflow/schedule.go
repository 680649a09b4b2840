package workflow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
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

// length returns the length of a fixed duration; nil for none.
func length(d *dsl.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	fixed, _ := d.Fixed()
	return &fixed
}
