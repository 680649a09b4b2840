package runcmd

import (
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// summaryLine says in one line which steps are not listed.
func summaryLine(s *signalboxv1.StepSummary) string {
	return fmt.Sprintf("steps %d to %d are summarized: %d of them are not listed", s.GetFrom(), s.GetTo(), s.GetSteps())
}

// printTasks prints the counts of the steps that are not listed.
func printTasks(s *invocation.Invocation, summary *signalboxv1.StepSummary) error {
	var rows []output.Row
	for _, t := range summary.GetTasks() {
		rows = append(rows, output.Cells(
			"TASK", t.GetTask(), "KIND", t.GetKind(), "STEPS", fmt.Sprint(t.GetCount()),
			"COMPLETED", fmt.Sprint(t.GetCompleted()), "FAILED", fmt.Sprint(t.GetFailed()),
			"SKIPPED", fmt.Sprint(t.GetSkipped()), "CANCELED", fmt.Sprint(t.GetCanceled()),
			"SHORTEST", length(t.GetShortest()), "LONGEST", length(t.GetLongest()), "TOTAL", length(t.GetTotal()),
			"+POINTER", t.GetPointer(),
		))
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// length is a duration, if it is known.
func length(d *durationpb.Duration) string {
	if d == nil {
		return unknown
	}
	return output.Took(d.AsDuration())
}

// replaced reports whether a summary stands for a step that was listed before.
func replaced(s *signalboxv1.StepSummary, step *signalboxv1.Step) bool {
	return step.GetNumber() >= s.GetFrom() && step.GetNumber() <= s.GetTo() && step.GetEndTime() != nil &&
		step.GetError() == nil
}
