// Package workflowcmd is the noun "workflow" of the command line: validate, test, save, publish, list, show, graph,
// grid, versions, diff, pause, unpause, set, times, backfill, stop, delete.
//
// "validate" and "test" work on files, with the packages below dsl, and need no server; the others talk to the
// WorkflowService only.
package workflowcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("workflow", "Validate, publish and manage workflow definitions", "")
	noun.AddCommand(initCommand(s), runCommand(s), validateCommand(s), lintCommand(s), formatCommand(s), testCommand(s),
		evalCommand(s), schemaCommand(s), saveCommand(s), publishCommand(s), listCommand(s), showCommand(s), graphCommand(s),
		gridCommand(s), versionsCommand(s), diffCommand(s), pauseCommand(s), unpauseCommand(s), setCommand(s), timesCommand(s),
		backfillCommand(s), stopCommand(s), deleteCommand(s))
	return noun
}

// printWorkflow prints one workflow's record.
func printWorkflow(s *invocation.Invocation, workflow *signalboxv1.Workflow) error {
	return s.Card(workflow, workflowFields(workflow))
}

func workflowFields(workflow *signalboxv1.Workflow) []output.Field {
	draft := ""
	switch {
	case !workflow.GetHasDraft():
	case workflow.GetLatestVersion() == "":
		draft = "no version is published yet"
	default:
		draft = "differs from the newest version"
	}
	return []output.Field{
		{Name: "workflow", Value: workflow.GetName()},
		{Name: "title", Value: workflow.GetTitle()},
		{Name: "summary", Value: workflow.GetSummary()},
		{Name: "state", Value: workflow.GetState()},
		{Name: "reason", Value: workflow.GetPauseReason()},
		{Name: "latest", Value: workflow.GetLatestVersion()},
		{Name: "draft", Value: draft},
		{Name: "created", Value: output.Moment(workflow.GetCreateTime())},
		{Name: "updated", Value: output.Moment(workflow.GetUpdateTime())},
	}
}

func pauseCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "pause NAME",
		Short:             "Refuse new runs of a workflow; open runs continue",
		Example:           `  signalbox workflow pause shop/order --reason "the supplier is down"`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.PauseWorkflowRequest{Project: s.Project(), Workflow: args[0], Reason: reason}
			response, err := invocation.Call(cmd.Context(), s, s.Workflows().PauseWorkflow, request, "pause workflow %q",
				args[0])
			if err != nil {
				return err
			}
			return printWorkflow(s, response.GetWorkflow())
		},
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, for the audit log and the callers that start the workflow")
	s.BindClient(cmd)
	return cmd
}

func unpauseCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "unpause NAME",
		Short:             "Allow new runs of a workflow again",
		Example:           `  signalbox workflow unpause shop/order`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.UnpauseWorkflowRequest{Project: s.Project(), Workflow: args[0]}
			response, err := invocation.Call(cmd.Context(), s, s.Workflows().UnpauseWorkflow, request, "unpause workflow %q",
				args[0])
			if err != nil {
				return err
			}
			return printWorkflow(s, response.GetWorkflow())
		},
	}
	s.BindClient(cmd)
	return cmd
}

func deleteCommand(s *invocation.Invocation) *cobra.Command {
	var confirm invocation.Confirmation
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a workflow; its finished runs stay readable",
		Long: `Delete a workflow with its draft, and hide its versions. Refused while runs of it are open. Finished runs stay
readable.`,
		Example:           `  signalbox workflow delete shop/order --yes`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm.Ask(s, fmt.Sprintf("Delete workflow %q of project %s? Its draft is lost.", args[0],
				s.Project())); err != nil {
				return err
			}
			_, err := invocation.Call(cmd.Context(), s, s.Workflows().DeleteWorkflow, &signalboxv1.DeleteWorkflowRequest{
				Project: s.Project(), Workflow: args[0],
			}, "delete workflow %q", args[0])
			if err != nil {
				return err
			}
			if s.Format().Structured() {
				return output.Value(s.Out, s.Format(), map[string]string{"deleted": args[0]})
			}
			s.Note("workflow %q is deleted", args[0])
			return nil
		},
	}
	confirm.Bind(cmd)
	s.BindClient(cmd)
	return cmd
}
