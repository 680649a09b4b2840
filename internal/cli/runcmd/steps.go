package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func stepsCommand(s *invocation.Invocation) *cobra.Command {
	request := &signalboxv1.ListStepsRequest{}
	var basic, newest, caught bool
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
did not handle the error. It has the sizes of inputs and outputs over 16 KiB, which are shortened. STATUS has "failed, caught" for a
step that failed inside of a try that has completed.`,
		Example: `  signalbox run steps 0199a4f2
  signalbox run steps 0199a4f2 --status failed -o wide`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Project, request.Id = s.Project(), args[0]
			if basic {
				request.View = "basic"
			}
			if newest {
				request.Order = "newest"
			}
			if cmd.Flags().Changed("caught") {
				request.Caught = &caught
			}
			return listSteps(cmd.Context(), s, request)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Pointer, "pointer", "", "only steps of the task with this JSON `pointer`")
	flags.StringVar(&request.ParentPath, "parent", "",
		"only steps that the step with this `path` contains directly; / for the document's own list")
	flags.StringSliceVarP(&request.Statuses, "status", "s", nil,
		"only these `statuses`, separated by commas: "+strings.Join(stepStatuses(), ", "))
	flags.StringVar(&request.Text, "text", "",
		"only steps with this `text` in the name of the task, the error, the input or the output")
	flags.BoolVar(&basic, "basic", false, "without inputs, outputs and attempts, for runs of many steps")
	flags.BoolVar(&caught, "caught", false,
		"only failed steps whose error a try caught; --caught=false for those that none caught")
	flags.BoolVar(&newest, "newest", false, "the newest step first")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("status",
		cobra.FixedCompletions(stepStatuses(), cobra.ShellCompDirectiveNoFileComp))
	s.BindRuns(cmd, 1)
	return cmd
}

// stepStatuses are the words of a step's life.
func stepStatuses() []string {
	return []string{statusRunning, statusWaiting, statusCompleted, statusFailed, "skipped", statusCanceled}
}

// filtered reports whether a request selects some of the steps, so that a summary of those that are not listed does not
// fit the list.
func filtered(r *signalboxv1.ListStepsRequest) bool {
	return r.GetPointer() != "" || r.GetParentPath() != "" || len(r.GetStatuses()) > 0 || r.GetText() != "" ||
		r.GetOrder() != "" || r.Caught != nil
}

func listSteps(ctx context.Context, s *invocation.Invocation, request *signalboxv1.ListStepsRequest) error {
	var summary *signalboxv1.StepSummary
	found, _, err := invocation.Pages(0, func(size int32, token string) ([]*signalboxv1.Step, string, error) {
		request.PageSize, request.PageToken = size, token
		response, err := invocation.Call(ctx, s, s.Runs().ListSteps, request, "list the steps of run %q", request.GetId())
		if !filtered(request) {
			summary = response.GetSummary() // that of the last page is as new as the last steps
		}
		return response.GetSteps(), response.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	none := "no step has been entered yet"
	if filtered(request) {
		none = "no steps match"
	}
	before, _ := slices.BinarySearchFunc(found, summary.GetFrom(), func(step *signalboxv1.Step, n int64) int {
		return cmp.Compare(step.GetNumber(), n)
	})
	var items []proto.Message
	for i, step := range found {
		if summary != nil && i == before {
			items = append(items, summary)
		}
		items = append(items, step)
	}
	err = invocation.Listing[proto.Message]{
		Thing: "step", None: none,
		Row: func(item proto.Message) output.Row { return stepRow(item, s.Now()) },
	}.Print(s, items, false)
	if err != nil || s.Format().Structured() {
		return err
	}
	if summary != nil {
		if err := s.Heading(summaryLine(summary) + "; their counts by task"); err != nil {
			return err
		}
		if err := printTasks(s, summary); err != nil {
			return err
		}
	}
	return printAttempts(s, found)
}

// stepOutcome returns the status of a step, and whether the error of a failed one was caught.
func stepOutcome(step *signalboxv1.Step) string {
	if step.GetCaught() {
		return step.GetStatus() + ", caught"
	}
	return step.GetStatus()
}

// listedDetail is the detail of a step with the sizes of its values that are shortened.
func listedDetail(step *signalboxv1.Step, now time.Time) string {
	parts := []string{stepDetail(step, now), shortened("input", step.GetInputShortened()),
		shortened("output", step.GetOutputShortened())}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// stepRow is the row of a step, or of the summary in place of the steps that are not listed.
func stepRow(item proto.Message, now time.Time) output.Row {
	step, ok := item.(*signalboxv1.Step)
	if !ok {
		summary, _ := item.(*signalboxv1.StepSummary)
		row := stepRow(&signalboxv1.Step{}, now)
		for i := range row {
			row[i].Value = ""
		}
		row[0].Value, row[1].Value = "…",
			fmt.Sprintf("steps %d to %d: %d not listed", summary.GetFrom(), summary.GetTo(), summary.GetSteps())
		return row
	}
	runError := ""
	if step.GetError() != nil {
		runError = errorLine(step.GetError())
	}
	return output.Cells(
		"STEP", fmt.Sprint(step.GetNumber()), "TASK", step.GetTask(), "KIND", step.GetKind(), "STATUS", stepOutcome(step),
		"ATTEMPTS", tries(step),
		"DURATION", output.Between(step.GetStartTime(), step.GetEndTime()), "PATH", step.GetPath(), "ERROR", runError,
		"DETAIL", listedDetail(step, now),
		"+STARTED", output.Moment(step.GetStartTime()),
	)
}
