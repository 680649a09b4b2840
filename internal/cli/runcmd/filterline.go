package runcmd

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/rpc/selection"
)

// FilterLine is a message that selects runs in the words of the flags. Last is the length of time that it reaches back, endedLast that
// in which the runs ended; empty if it names moments or no time.
func FilterLine(of proto.Message, last, endedLast string) string {
	f := selection.Of(of)
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("status", strings.Join(f.GetStatuses(), ","))
	add("workflow", f.GetWorkflow())
	add("version", f.GetVersion())
	add("last", last)
	add("since", output.Moment(f.GetSince()))
	add("until", output.Moment(f.GetUntil()))
	add("ended in the last", endedLast)
	add("ended since", output.Moment(f.GetEndedSince()))
	add("ended until", output.Moment(f.GetEndedUntil()))
	add("problem", strings.Join(f.GetProblems(), ","))
	add("trigger", f.GetTrigger())
	add("error", f.GetErrorType())
	add("failure group", f.GetFailureGroup())
	for _, label := range f.GetLabels() {
		add("label", label)
	}
	add("text", f.GetText())
	add("parent", f.GetParentRunId())
	add("replay of", f.GetReplayOf())
	add("batch", f.GetBatchId())
	add("started by batch", f.GetStartedByBatchId())
	if f.GetNotReplayed() {
		parts = append(parts, "not replayed")
	}
	if len(parts) == 0 {
		return "all runs"
	}
	return strings.Join(parts, ", ")
}
