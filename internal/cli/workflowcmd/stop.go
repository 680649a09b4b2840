package workflowcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/batchcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

type stopFlags struct {
	invocation.Confirmation

	reason, requestID string
	expect            int64
	dryRun            bool
}

func stopCommand(s *invocation.Invocation) *cobra.Command {
	var flags stopFlags
	cmd := &cobra.Command{
		Use:   "stop NAME",
		Short: "Pause a workflow and cancel its open runs",
		Long: `Pause a workflow, so that no new run starts, and cancel its open runs as one batch. Both happen, or neither. --dry-run shows what
that would do. The batch continues after this command has ended; "batch show ID --items" lists the outcome of each run. "workflow unpause"
lets new runs start again.

It requires both roles publisher and operator.`,
		Example: `  signalbox workflow stop shop/order --dry-run
  signalbox workflow stop shop/order --reason "wrong prices" --expect 12`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := flags.request(cmd, s, args[0])
			if err != nil {
				return err
			}
			if err := flags.confirm(cmd.Context(), s, request); err != nil {
				return err
			}
			return stop(cmd.Context(), s, request)
		},
	}
	cmd.Flags().StringVarP(&flags.reason, "reason", "r", "",
		"why, for the audit log, the runs' history and the callers that start the workflow")
	cmd.Flags().StringVar(&flags.requestID, "request-id", "",
		"`ID` of this request, unique in the project; generated when empty")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false,
		"show what starts runs, the open runs and those that cannot be canceled, and change nothing")
	flags.Bind(cmd)
	cmd.Flags().Int64Var(&flags.expect, "expect", 0,
		"stop only if at most this many runs are open, as --dry-run counts them")
	s.BindClient(cmd)
	return cmd
}

func (f *stopFlags) request(cmd *cobra.Command, s *invocation.Invocation,
	name string) (*signalboxv1.StopWorkflowRequest, error) {
	request := &signalboxv1.StopWorkflowRequest{
		Project: s.Project(), Workflow: name, Reason: f.reason, RequestId: f.requestID, DryRun: f.dryRun,
	}
	expects := cmd.Flags().Changed("expect")
	switch {
	case f.reason == "" && !f.dryRun:
		return nil, exit.Usagef("%s: --reason is missing; it goes into the audit log with every run", cmd.CommandPath())
	case f.dryRun && expects:
		return nil, exit.Usagef("--expect: a dry run counts the runs; leave out --expect")
	case expects:
		request.ExpectedOpen = &f.expect
	}
	if request.GetRequestId() == "" {
		request.RequestId = uuid.NewString()
	}
	return request, nil
}

// confirm asks whether to stop the workflow, with what a dry run counts. No more runs than were shown are then
// canceled.
func (f *stopFlags) confirm(ctx context.Context, s *invocation.Invocation,
	request *signalboxv1.StopWorkflowRequest) error {
	if request.GetDryRun() || !f.Needed(s) {
		return nil
	}
	preview := &signalboxv1.StopWorkflowRequest{
		Project: request.GetProject(), Workflow: request.GetWorkflow(), RequestId: request.GetRequestId(), DryRun: true}
	response, err := invocation.Call(ctx, s, s.Workflows().StopWorkflow, preview, "count the open runs of workflow %q",
		request.GetWorkflow())
	if err != nil {
		return err
	}
	open := response.GetBatch().GetTotal()
	if request.ExpectedOpen == nil {
		request.ExpectedOpen = &open
	}
	return f.Ask(s, fmt.Sprintf("Pause workflow %q and cancel %s of %d open?", request.GetWorkflow(),
		output.Count(response.GetEligible(), "run"), open))
}

func stop(ctx context.Context, s *invocation.Invocation, request *signalboxv1.StopWorkflowRequest) error {
	response, err := invocation.Send(ctx, s, s.Workflows().StopWorkflow, request)
	if err != nil {
		hint := ""
		if invocation.UnknownOutcome(ctx, err) && !request.GetDryRun() {
			hint = "it is unknown whether the workflow was stopped: repeated with --request-id " + request.GetRequestId() +
				", the command stops it once"
		}
		return s.FailedHint(err, hint, "stop workflow %q", request.GetWorkflow())
	}
	if request.GetDryRun() {
		return printStopPreview(s, response)
	}
	if !response.GetCreated() {
		s.Note("this workflow was stopped before with the request ID %s", request.GetRequestId())
	}
	if s.Format() == output.Table {
		s.Note("show the progress of the cancellations: %s", s.Command("batch show %s", response.GetBatch().GetId()))
	}
	return s.Card(response, append(stopFields(response), output.Field{Name: "batch", Value: response.GetBatch().GetId()}))
}

// printStopPreview prints what a stop would do, and the runs that it would not cancel.
func printStopPreview(s *invocation.Invocation, response *signalboxv1.StopWorkflowResponse) error {
	pauses := "pause the workflow and cancel"
	if response.GetWorkflow().GetState() == "paused" {
		pauses = "leave the workflow paused and cancel"
	}
	s.Note("dry run: would %s %s of %d open", pauses, output.Count(response.GetEligible(), "run"),
		response.GetBatch().GetTotal())
	fields := append(stopFields(response), output.Field{Name: "starts", Value: response.GetStartedBy()})
	if timer := timerFields(response.GetTimer()); len(timer) > 1 {
		fields = append(fields, timer[1]) // the next time; what starts runs is there
	}
	if err := s.Card(response, fields); err != nil || s.Format().Structured() {
		return err
	}
	return batchcmd.PrintPreview(s, response.GetUnchanged(), response.GetPreview())
}

func stopFields(response *signalboxv1.StopWorkflowResponse) []output.Field {
	w := response.GetWorkflow()
	return []output.Field{
		{Name: "workflow", Value: w.GetName()},
		{Name: "state", Value: w.GetState()},
		{Name: "reason", Value: w.GetPauseReason()},
		{Name: "open", Value: openLine(response.GetOpen())},
	}
}

// openLine lists the numbers of open runs by status.
func openLine(open map[string]int64) string {
	var parts []string
	for _, status := range []string{"queued", "running", "waiting"} {
		if n := open[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if len(parts) == 0 {
		return "no runs"
	}
	return strings.Join(parts, ", ")
}
