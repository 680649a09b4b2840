package workflowcmd

import (
	"fmt"

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
		when = fmt.Sprintf("cron %s (UTC)", t.GetCron())
	case t.GetEvery() != nil:
		when = fmt.Sprintf("every %s", t.GetEvery().AsDuration())
	default:
		when = fmt.Sprintf("%s after the end of a run", t.GetAfter().AsDuration())
	}
	fields := []output.Field{{Name: "starts", Value: when}}
	if because := t.GetUnknownBecause(); because != "" {
		return append(fields, output.Field{Name: "next", Value: "unknown: " + because})
	}
	next := "none"
	if times := t.GetNextTimes(); len(times) > 0 {
		next = output.Moment(times[0])
	}
	fields = append(fields, output.Field{Name: "next", Value: next})
	if t.GetLastTime() != nil {
		fields = append(fields, output.Field{Name: "last", Value: output.Moment(t.GetLastTime())})
	}
	if t.GetAfter() != nil {
		return fields
	}
	return append(fields, output.Field{Name: "fired", Value: fmt.Sprintf("%d, %d missed", t.GetFired(), t.GetMissed())})
}
