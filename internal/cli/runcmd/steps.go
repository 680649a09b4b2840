package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

func stepsCommand(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "steps ID",
		Short: "List a run's steps in the order they were entered",
		Long: `List a run's steps in the order they were entered. A loop enters its tasks once per turn; the path has the turn's number.
JSON and YAML hold each step's input, output, error and attempts as well. Of a long run the first 5000 steps, the last
4000, the first 1000 failures and those that are open are listed; one line replaces the others, and a table after the
list has their counts by task. In JSON and YAML an object with these counts replaces them.

The last table has the requests of calls that were sent more than once, or whose outcome is unknown, and with -o wide those of all
calls: an attempt each, with its start, time, outcome and the HTTP status of the answer.

DETAIL says what an open step waits for, since when, when it is due and until when at most; and of a try that failed, why its catch
did not handle the error.`,
		Args:              session.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return listSteps(cmd.Context(), s, args[0])
		},
	}
	s.BindClient(cmd)
	return cmd
}

func listSteps(ctx context.Context, s *session.Session, id string) error {
	var summary *signalboxv1.StepSummary
	found, _, err := session.Pages(0, func(size int32, token string) ([]*signalboxv1.Step, string, error) {
		response, err := session.Call(ctx, s, s.Runs().ListSteps, &signalboxv1.ListStepsRequest{
			Project: s.Project(), Id: id, PageSize: size, PageToken: token,
		}, "list the steps of run %q", id)
		summary = response.GetSummary() // that of the last page is as new as the last steps
		return response.GetSteps(), response.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	before, _ := slices.BinarySearchFunc(found, summary.GetFrom(), func(step *signalboxv1.Step, n int64) int { return cmp.Compare(step.GetNumber(), n) })
	var items []proto.Message
	for i, step := range found {
		if summary != nil && i == before {
			items = append(items, summary)
		}
		items = append(items, step)
	}
	err = session.Listing[proto.Message]{
		Thing: "step", None: "no step has been entered yet",
		Columns: output.Columns("STEP", "TASK", "KIND", "STATUS", "ATTEMPTS", "DURATION", "PATH", "DETAIL", "+STARTED", "+ERROR"),
		Row:     func(item proto.Message) []string { return stepRow(item, s.Now()) },
	}.Print(s, items, false)
	if err != nil || s.Format().Structured() {
		return err
	}
	if summary != nil {
		s.Note("%s; their counts by task:", summaryLine(summary))
		if err := printTasks(s, summary); err != nil {
			return err
		}
	}
	return printAttempts(s, found)
}

// stepRow is the row of a step, or of the summary in place of the steps that are not listed.
func stepRow(item proto.Message, now time.Time) []string {
	step, ok := item.(*signalboxv1.Step)
	if !ok {
		summary, _ := item.(*signalboxv1.StepSummary)
		return []string{"…", fmt.Sprintf("steps %d to %d: %d not listed", summary.GetFrom(), summary.GetTo(), summary.GetSteps()), "", "", "", "", "", "", "", ""}
	}
	problem := ""
	if step.GetError() != nil {
		problem = problemLine(step.GetError())
	}
	return []string{
		fmt.Sprint(step.GetNumber()), step.GetTask(), step.GetKind(), step.GetStatus(),
		tries(step), stepTook(step), step.GetPath(), stepDetail(step, now), output.Moment(step.GetStartTime()),
		problem,
	}
}
