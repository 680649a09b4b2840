package runcmd

import (
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

type listFlags struct {
	statuses, problems                                          []string
	workflow, version, since, until, request, by, trigger, text string
	limit                                                       int
}

func listCommand(s *session.Session) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Example: `  signalbox run list --status running,waiting
  signalbox run list --problem any
  signalbox run list --workflow shop/order --since 24h --status failed -o json | jq -r '.[].id'`,
		Args: session.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(cmd.Context(), s, flags)
		},
	}
	cmd.Flags().StringSliceVar(&flags.statuses, "status", nil, "only these `statuses`, separated by commas")
	cmd.Flags().StringSliceVar(&flags.problems, "problem", nil, "only runs that are stuck with one of these `codes`, separated by commas; any for all of them")
	cmd.Flags().StringVar(&flags.trigger, "trigger", "", "only runs that this `trigger` started: "+strings.Join(triggers(), ", "))
	cmd.Flags().StringVar(&flags.text, "text", "", "only runs whose ID or request ID begins with this `text`")
	cmd.Flags().StringVar(&flags.workflow, "workflow", "", "only runs of this workflow, by `name`")
	cmd.Flags().StringVar(&flags.version, "version", "", "only runs of this `version`")
	cmd.Flags().StringVar(&flags.since, "since", "", "only runs created in the last `time` (\"2h\", \"7d\") or since a moment (2026-01-31T12:00:00Z)")
	cmd.Flags().StringVar(&flags.until, "until", "", "only runs created before this `time`")
	cmd.Flags().StringVar(&flags.request, "request-id", "", "only the run with this request `ID`")
	cmd.Flags().StringVar(&flags.by, "order", "newest", "`order`: newest or oldest first")
	cmd.Flags().IntVar(&flags.limit, "limit", 50, "at most this many; 0 for all")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(Statuses(), cobra.ShellCompDirectiveNoFileComp))                  // the flag is there
	_ = cmd.RegisterFlagCompletionFunc("order", cobra.FixedCompletions([]string{"newest", "oldest"}, cobra.ShellCompDirectiveNoFileComp)) // as above
	_ = cmd.RegisterFlagCompletionFunc("problem", cobra.FixedCompletions(problems(), cobra.ShellCompDirectiveNoFileComp))                 // as above
	_ = cmd.RegisterFlagCompletionFunc("trigger", cobra.FixedCompletions(triggers(), cobra.ShellCompDirectiveNoFileComp))                 // as above
	s.BindClient(cmd)
	return cmd
}

func list(ctx context.Context, s *session.Session, flags listFlags) error {
	request, err := listRequest(s, flags)
	if err != nil {
		return err
	}
	runs, more, err := session.Pages(flags.limit, func(size int32, token string) ([]*signalboxv1.Run, string, error) {
		ctx, cancel := s.Deadline(ctx)
		defer cancel()
		request.PageSize, request.PageToken = size, token
		response, err := s.Runs().ListRuns(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, "", s.Failed(err, "list runs")
		}
		return response.Msg.GetRuns(), response.Msg.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	return session.Listing[*signalboxv1.Run]{
		Things:  "runs",
		Columns: output.Columns("ID", "WORKFLOW", "VERSION", "STATUS", "BECAUSE", "STUCK", "STEPS", "TOOK", "AGE", "+CREATED", "+EXPIRES", "+REQUEST ID", "+ACTOR", "+TRIGGER"),
		Row: func(run *signalboxv1.Run) []string {
			return []string{
				run.GetId(), run.GetWorkflow(), run.GetVersion(), run.GetStatus(), statusDetail(run), run.GetStuck().GetCode(),
				fmt.Sprintf("%d/%d", run.GetStepsDone(), run.GetStepsTotal()), took(run), s.Age(run.GetCreateTime().AsTime()),
				output.Moment(run.GetCreateTime()), output.Moment(run.GetQueueExpireTime()), run.GetRequestId(), run.GetActor(), run.GetTrigger(),
			}
		},
	}.Print(s, runs, more)
}

func listRequest(s *session.Session, flags listFlags) (*signalboxv1.ListRunsRequest, error) {
	wanted, err := session.Words("status", flags.statuses, Statuses())
	if err != nil {
		return nil, err
	}
	codes, err := session.Words("problem", upper(flags.problems), problems())
	if err != nil {
		return nil, err
	}
	if flags.trigger != "" {
		if _, err := session.Words("trigger", []string{flags.trigger}, triggers()); err != nil {
			return nil, err
		}
	}
	if flags.by != "newest" && flags.by != "oldest" {
		return nil, exit.Usagef("--order: %q is neither newest nor oldest", flags.by)
	}
	if err := session.Limit(flags.limit); err != nil {
		return nil, err
	}
	since, err := s.Time("since", flags.since)
	if err != nil {
		return nil, err
	}
	until, err := s.Time("until", flags.until)
	if err != nil {
		return nil, err
	}
	return &signalboxv1.ListRunsRequest{
		Project: s.Project(), Statuses: wanted, Workflow: flags.workflow, Version: flags.version,
		Since: session.Timestamp(since), Until: session.Timestamp(until), RequestId: flags.request, Order: flags.by,
		Problems: codes, Trigger: flags.trigger, Text: flags.text,
	}, nil
}

// upper writes codes as the API does, whatever their case.
func upper(codes []string) []string {
	out := make([]string, len(codes))
	for i, code := range codes {
		if out[i] = strings.ToUpper(code); strings.EqualFold(code, anyProblem) {
			out[i] = anyProblem
		}
	}
	return out
}
