package eventcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// filterFlags select events.
type filterFlags struct {
	statuses         []string
	kind, source, id string
	run              string
	period           invocation.Period
	dead, retrying   bool
}

// bind adds the flags, except --source, which has another meaning where a command also takes the ID of an event.
func (f *filterFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.statuses, "status", "s", nil,
		"only these `statuses`, separated by commas: pending, routed, unmatched, rejected")
	cmd.Flags().StringVar(&f.kind, "type", "", "only this `type`")
	cmd.Flags().StringVar(&f.id, "id", "", "only this `ID`")
	cmd.Flags().StringVar(&f.run, "run", "", "only events that started, woke or are to wake the run with this `ID`")
	cmd.Flags().BoolVar(&f.dead, "dead", false, "only events with a dead delivery")
	cmd.Flags().BoolVar(&f.retrying, "retrying", false, "only events with a delivery that failed and is attempted again")
	f.period.Bind(cmd, "only events accepted")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses(), cobra.ShellCompDirectiveNoFileComp))
}

// names returns the flags that select events.
func (*filterFlags) names() []string {
	return []string{"status", "type", "id", "run", "dead", "retrying", "since", "until"}
}

// statuses of events, as the API spells them.
func statuses() []string { return []string{"pending", "routed", "unmatched", "rejected"} }

func listCommand(s *invocation.Invocation) *cobra.Command {
	var flags filterFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List events, newest first",
		Long: `List events, newest first. An event is pending until it was matched with workflows and waiting runs, then routed, or unmatched
if no trigger or listener matched; --dead lists events with a dead delivery, --retrying those
with a delivery that failed and is attempted again; "event show" has its error.`,
		Example: `  signalbox event list --status unmatched --since 24h
  signalbox event list --run 0199a4f2
  signalbox event list --dead --jq '.[].position'`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(cmd.Context(), s, flags, limit)
		},
	}
	flags.bind(cmd)
	cmd.Flags().StringVar(&flags.source, "source", "", "only this `source`")
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most this many; 0 for all")
	s.BindClient(cmd)
	return cmd
}

func list(ctx context.Context, s *invocation.Invocation, flags filterFlags, limit int) error {
	fetch, err := flags.fetch(ctx, s)
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.Event]{
		Thing: "event", None: "no events match in project " + s.Project(),
		Row: func(e *signalboxv1.Event) output.Row {
			return output.Cells(
				"POSITION", fmt.Sprint(e.GetPosition()), "ID", e.GetId(), "TYPE", e.GetType(), "SOURCE", e.GetSource(),
				"+SUBJECT", e.GetSubject(), "STATUS", e.GetStatus(), "AGE", s.Age(e.GetReceiveTime()),
				"+RECEIVED", output.Moment(e.GetReceiveTime()), "+TIME", output.Moment(e.GetTime()),
				"+ACTOR", e.GetActor(), "REASON", e.GetReason(),
			)
		},
	}.List(s, limit, fetch)
}

// fetch returns the function that reads a page of the events.
func (f *filterFlags) fetch(ctx context.Context,
	s *invocation.Invocation) (invocation.Fetch[*signalboxv1.Event], error) {
	request, err := f.request(s)
	if err != nil {
		return nil, err
	}
	return func(size int32, token string) ([]*signalboxv1.Event, string, error) {
		request.PageSize, request.PageToken = size, token
		response, err := invocation.Call(ctx, s, s.Events().ListEvents, request, "list events")
		return response.GetEvents(), response.GetNextPageToken(), err
	}, nil
}

func (f *filterFlags) request(s *invocation.Invocation) (*signalboxv1.ListEventsRequest, error) {
	wanted, err := invocation.Words("status", f.statuses, statuses())
	if err != nil {
		return nil, err
	}
	since, until, err := f.period.Bounds(s)
	if err != nil {
		return nil, err
	}
	return &signalboxv1.ListEventsRequest{
		Project: s.Project(), Statuses: wanted, Type: f.kind, Source: f.source, Id: f.id, Dead: f.dead,
		Retrying: f.retrying, Since: since, Until: until, RunId: f.run,
	}, nil
}
