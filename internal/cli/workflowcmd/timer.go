package workflowcmd

import (
	"cmp"
	"fmt"
	"strings"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// timerFields show the schedule of a workflow and its next fires.
func timerFields(t *signalboxv1.WorkflowTimer) []output.Field {
	if t == nil {
		return nil
	}
	var when string
	switch {
	case t.GetCron() != "":
		when = fmt.Sprintf("cron %s (%s)", t.GetCron(), cmp.Or(t.GetTimeZone(), "UTC"))
	case t.GetEvery() != nil:
		when = fmt.Sprintf("every %s", t.GetEvery().AsDuration())
	default:
		when = fmt.Sprintf("%s after the end of a run", t.GetAfter().AsDuration())
	}
	fields := []output.Field{{Name: "starts", Value: when}}
	if t.GetOverlap() != "" {
		fields = append(fields, output.Field{Name: "overlap", Value: t.GetOverlap()},
			output.Field{Name: "jitter", Value: t.GetJitter().AsDuration().String()},
			output.Field{Name: "catch-up", Value: t.GetCatchUp().AsDuration().String()})
	}
	if set := ofOperators(t.GetSettings()); len(set) > 0 {
		fields = append(fields, output.Field{Name: "set", Value: strings.Join(set, ", ") + ", beside the document"})
	}
	if until := t.GetSettings().GetPausedUntil(); until != nil {
		fields = append(fields, output.Field{Name: "paused", Value: "until " + output.Moment(until)})
	}
	if because := t.GetUnknownBecause(); because != "" {
		return append(fields, output.Field{Name: "next", Value: "unknown: " + because})
	}
	next, later := "none", []string{}
	for i, at := range t.GetNextTimes() {
		if i == 0 {
			next = output.Moment(at)
			continue
		}
		later = append(later, output.Moment(at))
	}
	fields = append(fields, output.Field{Name: "next", Value: next},
		output.Field{Name: "then", Value: strings.Join(later, ", ")})
	if t.GetLastTime() != nil {
		fields = append(fields, output.Field{Name: "last", Value: output.Moment(t.GetLastTime())})
	}
	if t.GetAfter() != nil {
		return fields
	}
	return append(fields, output.Field{Name: "fired", Value: fmt.Sprintf("%d, %d missed, %d skipped for an open run",
		t.GetFired(), t.GetMissed(), t.GetSkipped())})
}

// ofOperators names the settings that operators have set, but for the pause.
func ofOperators(set *signalboxv1.ScheduleSettings) (names []string) {
	for _, setting := range []struct {
		name string
		is   bool
	}{
		{"time zone", set.GetTimeZone() != ""}, {"overlap", set.GetOverlap() != ""}, {"jitter", set.GetJitter() != nil},
		{"catch-up", set.GetCatchUp() != nil},
	} {
		if setting.is {
			names = append(names, setting.name)
		}
	}
	return names
}
