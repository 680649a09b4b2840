package runcmd

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func showCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one run with its input, output or error",
		Example: `  signalbox run show 0199a4f2
  signalbox run show 0199a4f2 --jq .output`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.GetRunRequest{Project: s.Project(), Id: args[0]}
			response, err := invocation.Call(cmd.Context(), s, s.Runs().GetRun, request, "show run %q", args[0])
			if err != nil {
				return err
			}
			return printRun(s, response.GetRun())
		},
	}
	s.BindRuns(cmd, 1)
	return cmd
}

// printRun prints one run.
func printRun(s *invocation.Invocation, run *signalboxv1.Run) error {
	return s.Card(run, runFields(s, run))
}

func runFields(s *invocation.Invocation, run *signalboxv1.Run) []output.Field {
	wide := s.Format() == output.Wide
	fields := []output.Field{
		{Name: "id", Value: run.GetId()},
		{Name: "workflow", Value: run.GetWorkflow()},
		{Name: "version", Value: run.GetVersion()},
		{Name: "status", Value: run.GetStatus()},
		{Name: "reason", Value: statusDetail(run)},
		{Name: "labels", Value: terminal.Line(invocation.LabelLine(run.GetLabels()))},
		{Name: "waits for", Value: waitLines(run, s.Now(), s.Command("run waits %s", run.GetId()))},
		{Name: "expires", Value: output.Moment(run.GetQueueExpireTime())},
		{Name: "steps", Value: steps(run)},
		{Name: "created", Value: created(run)},
		{Name: "started", Value: output.Moment(run.GetStartTime())},
		{Name: "ended", Value: output.Moment(run.GetEndTime())},
		{Name: "waited for start", Value: startDelay(run)},
		{Name: "duration", Value: took(run)},
	}
	if trigger := run.GetTrigger(); wide || trigger != "api" {
		fields = append(fields, output.Field{Name: "trigger", Value: trigger})
	}
	fields = append(fields, linkFields(run)...)
	temporal := run.GetTemporal()
	fields = append(fields,
		output.Field{Name: "request id", Value: run.GetRequestId()},
		output.Field{Name: "actor", Value: run.GetActor()},
		output.Field{Name: "temporal namespace", Value: temporal.GetNamespace()},
		output.Field{Name: "temporal workflow id", Value: temporal.GetWorkflowId()},
		output.Field{Name: "temporal run id", Value: temporal.GetRunId()})
	if wide {
		fields = append(fields,
			output.Field{Name: "temporal task queue", Value: temporal.GetTaskQueue()},
			output.Field{Name: "temporal ui", Value: temporal.GetUrl()},
			output.Field{Name: "project", Value: run.GetProject()},
			output.Field{Name: "document", Value: run.GetDocumentHash()},
			output.Field{Name: "controls", Value: strings.Join(run.GetControls(), ", ")},
			output.Field{Name: "not now", Value: unavailable(run.GetControlStates())},
		)
	}
	if stuck := run.GetStuck(); stuck != nil {
		fields = append(fields,
			output.Field{Name: "stuck", Value: stuckCode(stuck) + " since " + output.Moment(stuck.GetSince())},
			output.Field{Name: "", Value: terminal.Line(stuck.GetDetail())},
			output.Field{Name: "what to do", Value: terminal.Line(stuck.GetAdvice())})
	}
	if behind := run.GetBehind(); behind != nil {
		fields = append(fields,
			output.Field{Name: "behind",
				Value: "since " + output.Moment(behind.GetSince()) + ": " + terminal.Line(behind.GetReason())})
		if failure := behind.GetFailure(); failure != "" {
			fields = append(fields, output.Field{Name: "not repaired", Value: terminal.Line(failure)})
		}
	}
	for _, w := range run.GetWarnings() {
		fields = append(fields, output.Field{
			Name: "warning", Value: w.GetCode() + " since " + output.Moment(w.GetTime()) + ": " + terminal.Line(w.GetDetail())})
	}
	if runError := run.GetError(); runError != nil {
		fields = append(fields, output.Field{Name: "error", Value: errorLine(runError)},
			output.Field{Name: "error type", Value: runError.GetType()})
	}
	if f := run.GetFailedStep(); f != nil {
		value := fmt.Sprintf("%d %s", f.GetNumber(), f.GetPath())
		if f.GetAttempts() > 1 {
			value += fmt.Sprintf(", %d attempts", f.GetAttempts())
		}
		fields = append(fields, output.Field{Name: "failed step", Value: terminal.Line(value)})
	}
	return append(fields, output.JSONField("input", run.GetInput().GetJson()),
		output.JSONField("output", run.GetOutput().GetJson()))
}

// unavailable lists the controls that would not take effect, a line for each.
func unavailable(states []*signalboxv1.ControlState) string {
	var lines []string
	for _, state := range states {
		if state.GetEffect() != "yes" {
			lines = append(lines, state.GetControl()+": "+terminal.Line(state.GetDetail()))
		}
	}
	return strings.Join(lines, "\n")
}

// linkFields show which run or event started this run, and which runs it started.
func linkFields(run *signalboxv1.Run) []output.Field {
	const shown = 3
	list := func(ids []string) string {
		if len(ids) > shown {
			return strings.Join(ids[:shown], ", ") + fmt.Sprintf(" and %d more", len(ids)-shown)
		}
		return strings.Join(ids, ", ")
	}
	return []output.Field{
		{Name: "replay of", Value: run.GetReplayOf()},
		{Name: "replays", Value: list(run.GetReplays())},
		{Name: "parent", Value: run.GetParentRunId()},
		{Name: "children", Value: list(run.GetChildren())},
	}
}

// statusDetail says what a status is due to: why it is queued, what it waits for, that it is being canceled.
func statusDetail(run *signalboxv1.Run) string {
	var parts []string
	switch run.GetStatus() {
	case statusQueued:
		if reason := run.GetQueuedReason(); reason != "" {
			parts = append(parts, reason)
		}
		if place := run.GetQueuePosition(); place > 0 {
			parts = append(parts, fmt.Sprintf("position %d", place))
		}
	case statusWaiting:
		if kind := run.GetWaitingKind(); kind != "" {
			parts = append(parts, kind)
		}
		if quota := run.GetQuota(); quota != nil {
			parts = append(parts, fmt.Sprintf("%d of %d steps used, until %s", quota.GetUsed(), quota.GetLimit(),
				cmp.Or(output.Moment(quota.GetResetTime()), unknown)))
		}
	}
	if run.GetCancelRequested() {
		text := "cancel requested"
		if run.GetCancelReason() != "" {
			text += ": " + run.GetCancelReason()
		}
		parts = append(parts, text)
	}
	return terminal.Line(strings.Join(parts, ", "))
}

// created is when a run was created. What a dry run shows was not.
func created(run *signalboxv1.Run) string {
	if run.GetId() == "" {
		return ""
	}
	return cmp.Or(output.Moment(run.GetCreateTime()), unknown)
}

// stepCount is how many of the steps that a run has entered are done: "3/4".
func stepCount(run *signalboxv1.Run) string {
	if run.GetStepsTotal() == 0 {
		return "none"
	}
	if run.GetStepsDone() == run.GetStepsTotal() {
		return fmt.Sprint(run.GetStepsTotal())
	}
	return fmt.Sprintf("%d of %d", run.GetStepsDone(), run.GetStepsTotal())
}

func steps(run *signalboxv1.Run) string {
	if run.GetStepsTotal() == 0 {
		return "none entered yet"
	}
	text := fmt.Sprintf("%d of %d done", run.GetStepsDone(), run.GetStepsTotal())
	if summary := run.GetStepSummary(); summary != nil {
		text += "; " + summaryLine(summary)
	}
	return text
}

// took is the time from the start to the end of a run.
func took(run *signalboxv1.Run) string { return output.Between(run.GetStartTime(), run.GetEndTime()) }

// startDelay is the time that a run waited for its start, or until it ended without one.
func startDelay(run *signalboxv1.Run) string {
	return output.Between(run.GetCreateTime(), cmp.Or(run.GetStartTime(), run.GetEndTime()))
}

// stuckCode is a verdict's code, with the cause where it has one.
func stuckCode(stuck *signalboxv1.Stuck) string {
	if stuck.GetCause() == "" {
		return stuck.GetCode()
	}
	return stuck.GetCode() + " (" + stuck.GetCause() + ")"
}
