package cli

import (
	"math"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// mostResumed is the maximum number of runs in one command.
const mostResumed = 1000

func quotaResumeCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "resume [RUN…]",
		Short: "Continue runs that wait for steps although the quota is used up",
		Long: `Continue runs that wait for steps although the quota is used up: the given runs, or all that wait. Each is granted as many additional
steps as the whole limit, in this period. Without this command, runs continue when the next period begins or the limit is raised.`,
		Example: `  signalbox quota resume --reason "the month's closing"
  signalbox quota resume 0199a4f2`,
		Args:              invocation.Args(0, mostResumed, "[RUN…]"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			response, err := invocation.Call(cmd.Context(), s, s.Quotas().ResumeQuota, &signalboxv1.ResumeQuotaRequest{
				Project: s.Project(), RunIds: args, Reason: reason,
			}, "resume runs of project %q", s.Project())
			if err != nil {
				return err
			}
			return s.Card(response, []output.Field{{Name: "resumed", Value: output.Count(response.GetResumed(), "run")}})
		},
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, for the audit log")
	s.BindRuns(cmd, math.MaxInt)
	return cmd
}
