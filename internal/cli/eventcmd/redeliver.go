package eventcmd

import (
	"context"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

func redeliverCommand(s *session.Session) *cobra.Command {
	var which named
	var ids []string
	var reason string
	cmd := &cobra.Command{
		Use:   "redeliver ID",
		Short: "Retry the pending and dead deliveries of an event",
		Long: `Retry deliveries of an event at once: the pending and the dead ones, or those given by --delivery. Deliveries that are done
do not change: no run is started twice.`,
		Example: `  signalbox event redeliver 4711 --source /shop --reason "the schema is fixed"
  signalbox event redeliver --position 12`,
		Args:              session.Args(0, 1, "ID"),
		ValidArgsFunction: s.CompleteEvents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := which.take(cmd, args); err != nil {
				return err
			}
			return redeliver(cmd.Context(), s, which, ids, reason)
		},
	}
	which.bind(cmd)
	cmd.Flags().StringSliceVar(&ids, "delivery", nil, "only these deliveries, by `ID`, separated by commas")
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, for the audit log")
	s.BindClient(cmd)
	return cmd
}

func redeliver(ctx context.Context, s *session.Session, which named, ids []string, reason string) error {
	position := which.position
	if position == 0 {
		found, err := which.get(ctx, s, "redeliver")
		if err != nil {
			return err
		}
		position = found.GetEvent().GetPosition()
	}
	response, err := session.Call(ctx, s, s.Events().RedeliverEvent, &signalboxv1.RedeliverEventRequest{
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
		s.Note("nothing to deliver again: no trigger or listener matched the event, all its deliveries are done, or its runs have continued with later events")
		return nil
	}
	return printDeliveries(s, deliveries)
}
