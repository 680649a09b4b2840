package eventcmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func redeliverCommand(s *invocation.Invocation) *cobra.Command {
	var which named
	var many manyFlags
	var ids []string
	var reason string
	cmd := &cobra.Command{
		Use:   "redeliver [ID]",
		Short: "Retry pending and dead deliveries of an event, or of events that match",
		Long: `Retry deliveries of an event at once: the pending and the dead ones, or those given by --delivery. Deliveries that are done
do not change: no run is started twice.

Without an event, the flags of "event list" select events, the newest first, up to --limit; --dry-run only counts them.`,
		Example: `  signalbox event redeliver 4711 --source /shop --reason "the schema is fixed"
  signalbox event redeliver --position 12
  signalbox event redeliver --dead --type com.example.order.created --since 2h --dry-run
  signalbox event redeliver --dead --type com.example.order.created --since 2h --reason "the schema is fixed"`,
		Args:              invocation.Args(0, 1, "ID"),
		ValidArgsFunction: s.CompleteEvents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if many.given(cmd) {
				if len(args) > 0 || which.position > 0 || len(ids) > 0 {
					return exit.Usagef("%s: an event or a delivery, and flags that select events, are given; leave out one of both",
						cmd.CommandPath())
				}
				many.filter.source = which.source
				return redeliverMany(cmd.Context(), s, many, reason)
			}
			if err := which.take(cmd, args); err != nil {
				return err
			}
			return redeliver(cmd.Context(), s, which, ids, reason)
		},
	}
	which.bind(cmd)
	many.bind(cmd)
	cmd.Flags().StringSliceVar(&ids, "delivery", nil, "only these deliveries, by `ID`, separated by commas")
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, for the audit log")
	s.BindClient(cmd)
	return cmd
}

// manyFlags select the events of one command.
type manyFlags struct {
	filter filterFlags
	limit  int
	dryRun bool
}

func (f *manyFlags) bind(cmd *cobra.Command) {
	f.filter.bind(cmd)
	cmd.Flags().IntVarP(&f.limit, "limit", "n", 1000, "at most this many events that match; 0 for all")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count the events that match, and retry nothing")
}

// given reports whether a flag selects events.
func (f *manyFlags) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(f.filter.names(), cmd.Flags().Changed)
}

func redeliverMany(ctx context.Context, s *invocation.Invocation, flags manyFlags, reason string) error {
	fetch, err := flags.filter.fetch(ctx, s)
	if err != nil {
		return err
	}
	return invocation.Bulk[*signalboxv1.Event, *signalboxv1.Delivery]{
		Thing: "event", Done: "retried", Limit: flags.limit, DryRun: flags.dryRun,
		Call: func(e *signalboxv1.Event, place string) ([]*signalboxv1.Delivery, error) {
			response, err := invocation.Call(ctx, s, s.Events().RedeliverEvent, &signalboxv1.RedeliverEventRequest{
				Project: s.Project(), Position: e.GetPosition(), Reason: reason,
			}, "redeliver event at position %d, %s", e.GetPosition(), place)
			return response.GetDeliveries(), err
		},
		Due: func(n int) string { return output.Count(int64(n), "delivery") },
	}.Run(s, fetch)
}

func redeliver(ctx context.Context, s *invocation.Invocation, which named, ids []string, reason string) error {
	position := which.position
	if position == 0 {
		found, err := which.get(ctx, s, "redeliver")
		if err != nil {
			return err
		}
		position = found.GetEvent().GetPosition()
	}
	response, err := invocation.Call(ctx, s, s.Events().RedeliverEvent, &signalboxv1.RedeliverEventRequest{
		Project: s.Project(), Position: position, DeliveryIds: ids, Reason: reason,
	}, "redeliver event %s", &which)
	if err != nil {
		return err
	}
	deliveries := response.GetDeliveries()
	if s.Format().Structured() {
		return output.List(s.Out, s.Format(), deliveries)
	}
	if len(deliveries) == 0 {
		s.Note("nothing to deliver again: no trigger or listener matched the event, all its deliveries are done, or its " +
			"runs have continued with later events")
		return nil
	}
	return printDeliveries(s, deliveries)
}
