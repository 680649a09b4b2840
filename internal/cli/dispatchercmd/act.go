package dispatchercmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func handoverCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "handover PROJECT",
		Short: "Hand over a project's dispatcher to another worker",
		Long: `Request the owner of a project's dispatcher to resign, so that another worker adopts it. The dispatcher continues to run
meanwhile, and no event is lost or delayed. It happens within a renewal of the lease, by default 5 seconds: "signalbox dispatcher show" has the new
owner. If no other worker is available, the same worker becomes the owner again.`,
		Example:           `  signalbox dispatcher handover shop --reason "node 3 is drained"`,
		Args:              invocation.Args(1, 1, "PROJECT"),
		ValidArgsFunction: s.CompleteProjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.HandOverDispatcherRequest{Project: args[0], Reason: reason}
			response, err := invocation.Call(cmd.Context(), s, s.Dispatchers().HandOverDispatcher, request,
				"hand over the dispatcher of project %q", args[0])
			if err != nil {
				return err
			}
			if !s.Format().Structured() {
				s.Note("its owner is requested to resign; \"%s\" shows the new owner", s.Command("dispatcher show %s", args[0]))
			}
			return s.Card(response, []output.Field{{Name: "owner", Value: ownerLine(response.GetOwner())}})
		},
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, for the audit log")
	s.BindServer(cmd)
	return cmd
}

func reconcileCommand(s *invocation.Invocation) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare leases, workers and dispatchers now, and end stale dispatchers",
		Long: `Compare leases, heartbeats and the dispatchers in Temporal now, as every worker does each minute, and end stale
dispatchers: those of crashed owners, those without an owner, and those of older programs. A dispatcher whose state is unknown does
not change. Each finding is one line; with --dry-run nothing is changed.`,
		Example: `  signalbox dispatcher reconcile --dry-run`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reconcile(cmd.Context(), s, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	s.BindServer(cmd)
	return cmd
}

func reconcile(ctx context.Context, s *invocation.Invocation, dryRun bool) error {
	request := &signalboxv1.ReconcileDispatchersRequest{DryRun: dryRun}
	report, err := invocation.Call(ctx, s, s.Dispatchers().ReconcileDispatchers, request, "reconcile the dispatchers")
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), report)
	}
	checked := fmt.Sprintf("%s checked in %s: %d healthy, %d stale, %d unknown",
		output.Count(report.GetDispatchers(), "dispatcher"),
		output.Took(report.GetTook().AsDuration()), report.GetHealthy(), report.GetStale(), report.GetUnknown())
	if len(report.GetItems()) == 0 {
		s.Note("nothing to do: %s", checked)
		return nil
	}
	rows := make([]output.Row, len(report.GetItems()))
	for i, item := range report.GetItems() {
		rows[i] = output.Cells(
			"ACTION", item.GetAction(), "KIND", item.GetKind(), "PROJECT", item.GetProject(),
			"WORKFLOW", item.GetWorkflowId(), "DONE", done(item, dryRun), "+EXECUTION", item.GetRunId(),
			"+OWNER", ownerLine(item.GetOwner()), "REASON", item.GetReason(),
		)
	}
	s.Note("%s", checked)
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// done reports whether something was done.
func done(item *signalboxv1.PlanItem, dryRun bool) string {
	switch {
	case item.GetApplied():
		return "yes"
	case item.GetError() != "":
		return "failed: " + item.GetError()
	case item.GetAction() == "alert":
		return "for you"
	case item.GetAction() == "postpone":
		return "next time"
	case dryRun:
		return "no, dry run"
	default:
		return "no longer needed"
	}
}
