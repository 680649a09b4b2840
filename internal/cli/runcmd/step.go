package runcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func stepCommand(s *invocation.Invocation) *cobra.Command {
	var unredacted bool
	cmd := &cobra.Command{
		Use:               "step ID NUMBER",
		Short:             "Show one step of a run with its input, output, error and attempts",
		Example:           `  signalbox run step 0199a4f2 1`,
		Args:              invocation.Args(2, 2, "ID NUMBER"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := stepNumber(args[1])
			if err != nil {
				return err
			}
			return showStep(cmd.Context(), s, &signalboxv1.GetStepRequest{
				Project: s.Project(), Id: args[0], Number: number, Unredacted: unredacted,
			})
		},
	}
	cmd.Flags().BoolVar(&unredacted, "unredacted", false,
		"show sensitive values; requires an administrator, and is audited")
	s.BindRuns(cmd, 1)
	return cmd
}

func showStep(ctx context.Context, s *invocation.Invocation, request *signalboxv1.GetStepRequest) error {
	response, err := invocation.Call(ctx, s, s.Runs().GetStep, request, "show step %d of run %q", request.GetNumber(),
		request.GetId())
	if err != nil {
		return err
	}
	step := response.GetStep()
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), step)
	}
	runError := ""
	if step.GetError() != nil {
		runError = errorLine(step.GetError())
	}
	err = output.Card(s.Out, s.Style(), []output.Field{
		{Name: "step", Value: fmt.Sprint(step.GetNumber())},
		{Name: "task", Value: step.GetTask()},
		{Name: "kind", Value: step.GetKind()},
		{Name: "path", Value: step.GetPath()},
		{Name: "status", Value: stepOutcome(step)},
		{Name: "started", Value: output.Moment(step.GetStartTime())},
		{Name: "ended", Value: output.Moment(step.GetEndTime())},
		{Name: "duration", Value: output.Between(step.GetStartTime(), step.GetEndTime())},
		{Name: "attempts", Value: tries(step)},
		{Name: "detail", Value: stepDetail(step, s.Now())},
		{Name: "error", Value: runError},
		output.JSONField("input", step.GetInput().GetJson()),
		{Name: "", Value: showWhole(s, request, "input", step.GetInputShortened())},
		output.JSONField("output", step.GetOutput().GetJson()),
		{Name: "", Value: showWhole(s, request, "output", step.GetOutputShortened())},
	})
	if err != nil {
		return err
	}
	return printAttempts(s, []*signalboxv1.Step{step})
}

// shortened returns a line about a value that is not shown whole; empty for others.
func shortened(what string, s *signalboxv1.Shortened) string {
	if s == nil {
		return ""
	}
	return what + " shortened, " + output.Bytes(s.GetSize()) + " in all"
}

func stepNumber(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 {
		return 0, exit.Usagef("step %q: give the number of a step, from 1", text)
	}
	return number, nil
}

// showWhole is shortened with the command that prints the value.
func showWhole(s *invocation.Invocation, request *signalboxv1.GetStepRequest, what string,
	of *signalboxv1.Shortened) string {
	if of == nil {
		return ""
	}
	return shortened(what, of) + "; print it with " +
		strconv.Quote(s.Command("run value %s %d %s", request.GetId(), request.GetNumber(), what))
}

func summaryCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "summary ID",
		Short: "Show totals of a run's steps by task",
		Long: `Show totals of all steps of a run by task: how many there are by status, their attempts and durations. Of a long run the
steps that "run steps" does not list are included; the number of attempts is unknown then.`,
		Example:           `  signalbox run summary 0199a4f2`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return showTotals(cmd.Context(), s, args[0])
		},
	}
	s.BindRuns(cmd, 1)
	return cmd
}

func showTotals(ctx context.Context, s *invocation.Invocation, id string) error {
	response, err := invocation.Call(ctx, s, s.Runs().SummarizeSteps,
		&signalboxv1.SummarizeStepsRequest{Project: s.Project(), Id: id},
		"summarize the steps of run %q", id)
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.TaskTotals]{
		Thing: "task", None: "no step has been entered yet",
		Row: func(t *signalboxv1.TaskTotals) output.Row {
			var steps []string
			for _, status := range slices.Sorted(maps.Keys(t.GetStatuses())) {
				steps = append(steps, fmt.Sprintf("%d %s", t.GetStatuses()[status], status))
			}
			attempts, failed := unknown, ""
			if t.Attempts != nil {
				attempts = fmt.Sprint(t.GetAttempts())
			}
			if t.GetFirstFailed() > 0 {
				failed = fmt.Sprint(t.GetFirstFailed())
			}
			return output.Cells(
				"TASK", t.GetTask(), "KIND", t.GetKind(), "STEPS", strings.Join(steps, ", "), "ATTEMPTS", attempts,
				"TOTAL", length(t.GetTotal()), "LONGEST", length(t.GetLongest()), "FIRST FAILED", failed,
				"POINTER", t.GetPointer(), "+STARTED", output.Moment(t.GetFirstStartTime()),
				"+ENDED", output.Moment(t.GetLastEndTime()),
			)
		},
	}.Print(s, response.GetTasks(), false)
}
