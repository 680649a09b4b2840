package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

type auditFlags struct {
	action, subject, actor string
	period                 invocation.Period
	limit                  int
}

// bind adds the flags that choose among entries.
func (f *auditFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.action, "action", "", "only this `action`, for example run.start")
	cmd.Flags().StringVar(&f.subject, "subject", "", "only this `subject`: a run's ID, a workflow's or a project's name")
	cmd.Flags().StringVar(&f.actor, "actor", "", "only this `actor`")
	f.period.Bind(cmd, "only entries made")
}

func auditCommand(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("audit", "Read the audit log", "Every call that changes something is recorded in an "+
		"append-only log. --project - lists the entries of all projects and those without a project, which concern the "+
		"platform as a whole.")
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List audit entries, newest first",
		Example: `  signalbox audit list --action run.cancel --since 7d
  signalbox audit list --project - --action system.reset_breaker`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listAudit(cmd.Context(), s, flags)
		},
	}
	flags.bind(cmd)
	cmd.Flags().IntVarP(&flags.limit, "limit", "n", 50, "at most this many; 0 for all")
	s.BindClient(cmd)
	noun.AddCommand(cmd, auditExportCommand(s))
	return noun
}

func listAudit(ctx context.Context, s *invocation.Invocation, flags auditFlags) error {
	since, until, err := flags.period.Bounds(s)
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.AuditEntry]{
		Thing: "entry", None: noEntries(s.Project()),
		Row: func(entry *signalboxv1.AuditEntry) output.Row {
			return output.Cells(
				"+ID", fmt.Sprint(entry.GetId()), "TIME", output.Moment(entry.GetTime()), "ACTOR", entry.GetActor(),
				"+KIND", entry.GetActorKind(), "ACTION", entry.GetAction(), "SUBJECT", entry.GetSubject(),
				"REASON", entry.GetReason(), "+PROJECT", entry.GetProject(), "+DETAIL", entry.GetDetail().GetJson(),
			)
		},
	}.List(s, flags.limit, func(size int32, token string) ([]*signalboxv1.AuditEntry, string, error) {
		response, err := invocation.Call(ctx, s, s.Audit().ListAudit, &signalboxv1.ListAuditRequest{
			Project: s.Project(), PageSize: size, PageToken: token,
			Action: flags.action, Subject: flags.subject, Actor: flags.actor, Since: since, Until: until,
		}, "list the audit log")
		return response.GetEntries(), response.GetNextPageToken(), err
	})
}

// noEntries says that no entry of a project matches; "-" stands for all projects and none.
func noEntries(project string) string {
	if project == "-" {
		return "no audit entries match"
	}
	return "no audit entries match in project " + project
}
