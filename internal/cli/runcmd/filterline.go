package runcmd

import (
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// filter is what the filters of batches and of views have.
type filter interface {
	GetStatuses() []string
	GetWorkflow() string
	GetVersion() string
	GetSince() *timestamppb.Timestamp
	GetUntil() *timestamppb.Timestamp
	GetProblems() []string
	GetTrigger() string
	GetFailureGroup() string
	GetLabels() []string
	GetText() string
	GetParentRunId() string
	GetReplayOf() string
	GetBatchId() string
	GetStartedByBatchId() string
	GetNotReplayed() bool
}

// FilterLine is a filter of runs in the words of the flags. last is the length of time that it reaches back; empty if it names moments or
// no time.
func FilterLine(f filter, last string) string {
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
	add("problem", strings.Join(f.GetProblems(), ","))
	add("trigger", f.GetTrigger())
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
