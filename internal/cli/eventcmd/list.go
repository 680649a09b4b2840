package eventcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

type listFlags struct {
	statuses         []string
	kind, source, id string
	run              string
	period           session.Period
	dead, retrying   bool
	limit            int
}

// statuses of events, as the API spells them.
func statuses() []string { return []string{"pending", "routed", "unmatched", "rejected"} }

func listCommand(s *session.Session) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List events, newest first",
		Long: `List events, newest first. An event is pending until it was matched with workflows and waiting runs, then routed, or unmatched
if no trigger or listener matched; --dead lists events with a dead delivery, --retrying those
with a delivery that failed and is attempted again; "event show" has its error.`,
		Example: `  signalbox event list --status unmatched --since 24h
  signalbox event list --run 0199a4f2
  signalbox event list --dead --jq '.[].position'`,
		Args: session.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(cmd.Context(), s, flags)
		},
	}
	cmd.Flags().StringSliceVarP(&flags.statuses, "status", "s", nil, "only these `statuses`, separated by commas: pending, routed, unmatched, rejected")
	cmd.Flags().StringVar(&flags.kind, "type", "", "only this `type`")
	cmd.Flags().StringVar(&flags.source, "source", "", "only this `source`")
	cmd.Flags().StringVar(&flags.id, "id", "", "only this `ID`")
	cmd.Flags().StringVar(&flags.run, "run", "", "only events that started, woke or are to wake the run with this `ID`")
	cmd.Flags().BoolVar(&flags.dead, "dead", false, "only events with a dead delivery")
	cmd.Flags().BoolVar(&flags.retrying, "retrying", false, "only events with a delivery that failed and is attempted again")
	flags.period.Bind(cmd, "only events accepted")
	cmd.Flags().IntVarP(&flags.limit, "limit", "n", 50, "at most this many; 0 for all")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	s.BindClient(cmd)
	return cmd
}

func list(ctx context.Context, s *session.Session, flags listFlags) error {
	request, err := listRequest(s, flags)
	if err != nil {
		return err
	}
	return session.Listing[*signalboxv1.Event]{
		Thing: "event", None: "no events match in project " + s.Project(),
		Columns: output.Columns("POSITION", "ID", "TYPE", "SOURCE", "+SUBJECT", "STATUS", "AGE", "+RECEIVED", "+TIME", "+ACTOR", "REASON"),
		Row: func(e *signalboxv1.Event) []string {
			return []string{
				fmt.Sprint(e.GetPosition()), e.GetId(), e.GetType(), e.GetSource(), e.GetSubject(), e.GetStatus(), s.Age(e.GetReceiveTime()),
				output.Moment(e.GetReceiveTime()), output.Moment(e.GetTime()), e.GetActor(), e.GetReason(),
			}
		},
	}.List(s, flags.limit, func(size int32, token string) ([]*signalboxv1.Event, string, error) {
		request.PageSize, request.PageToken = size, token
		response, err := session.Call(ctx, s, s.Events().ListEvents, request, "list events")
		return response.GetEvents(), response.GetNextPageToken(), err
	})
}

func listRequest(s *session.Session, flags listFlags) (*signalboxv1.ListEventsRequest, error) {
	wanted, err := session.Words("status", flags.statuses, statuses())
	if err != nil {
		return nil, err
	}
	since, until, err := flags.period.Bounds(s)
	if err != nil {
		return nil, err
	}
	return &signalboxv1.ListEventsRequest{
		Project: s.Project(), Statuses: wanted, Type: flags.kind, Source: flags.source, Id: flags.id, Dead: flags.dead,
		Retrying: flags.retrying, Since: since, Until: until, RunId: flags.run,
	}, nil
}
