package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// quotaCommand returns the noun "quota": what a project may use, and how much of it is used.
func quotaCommand(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("quota", "Show and change the quota of a project",
		`Show and change the quota of a project: its limits of concurrent runs and of steps per period.

Runs beyond the first limit are queued and start in order, as others end. Runs that need more steps than the second allows wait until
the next period.`)
	noun.AddCommand(quotaShowCommand(s), quotaSetCommand(s), quotaResumeCommand(s))
	return noun
}

func quotaShowCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show a project's quota and how much of it is used",
		Example: `  signalbox quota show --project shop`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showQuota(cmd, s)
		},
	}
	s.BindClient(cmd)
	return cmd
}

func showQuota(cmd *cobra.Command, s *invocation.Invocation) error {
	request := &signalboxv1.GetQuotaRequest{Project: s.Project()}
	response, err := invocation.Call(cmd.Context(), s, s.Quotas().GetQuota, request, "show the quota of project %q",
		s.Project())
	if err != nil {
		return err
	}
	return s.Card(response, quotaFields(s, response))
}

func quotaFields(s *invocation.Invocation, m *signalboxv1.GetQuotaResponse) []output.Field {
	q := m.GetQuota()
	all := []output.Field{
		{Name: "project", Value: s.Project()},
		{Name: "runs", Value: quotaUsage(m.GetAdmittedRuns(), q.GetConcurrentRuns(), "at a time")},
	}
	if m.GetQueuedRuns() > 0 {
		all = append(all, output.Field{Name: "queued", Value: output.Count(m.GetQueuedRuns(), "run")})
	}
	if q.GetSteps() == 0 {
		return append(all, output.Field{Name: "steps", Value: "no limit"})
	}
	all = append(all,
		output.Field{Name: "steps", Value: quotaUsage(m.GetUsedSteps(), q.GetSteps(), "per "+quotaPeriod(q))},
		output.Field{Name: "resets", Value: output.Moment(m.GetResetTime())})
	if m.GetWaitingRuns() > 0 {
		all = append(all, output.Field{Name: "waiting", Value: output.Count(m.GetWaitingRuns(), "run")})
	}
	return all
}

func quotaUsage(used, limit int64, per string) string {
	if limit == 0 {
		return fmt.Sprintf("%d, no limit", used)
	}
	return fmt.Sprintf("%d of %d %s", used, limit, per)
}
