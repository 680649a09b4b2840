package webhookcmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func deliveriesCommand(s *invocation.Invocation) *cobra.Command {
	var statuses []string
	var limit int
	cmd := named(s, "deliveries", "List the deliveries of a webhook, newest first", "",
		func(ctx context.Context, name string) error {
			fetch, err := fetchDeliveries(ctx, s, name, statuses)
			if err != nil {
				return err
			}
			return invocation.Listing[*signalboxv1.WebhookDelivery]{
				Thing: "delivery", None: "no deliveries of webhook " + name,
				Row: func(d *signalboxv1.WebhookDelivery) output.Row {
					return output.Cells(
						"DELIVERY", d.GetId(), "STATUS", d.GetStatus(), "TYPE", d.GetEventType(),
						"ATTEMPTS", fmt.Sprint(d.GetAttempts()), "HTTP", status(d.GetHttpStatus()), "NEXT", next(s, d),
						"AGE", s.Age(d.GetCreateTime()), "+EVENT", d.GetEventId(), "+SOURCE", d.GetEventSource(),
						"+POSITION", fmt.Sprint(d.GetPosition()), "REASON", d.GetReason(),
					)
				},
			}.List(s, limit, fetch)
		})
	bindStatuses(cmd, &statuses)
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most this many; 0 for all")
	return cmd
}

// bindStatuses adds the flag that selects deliveries.
func bindStatuses(cmd *cobra.Command, statuses *[]string) {
	cmd.Flags().StringSliceVarP(statuses, "status", "s", nil,
		"only deliveries with one of these `statuses`: pending, delivered, dead")
}

// fetchDeliveries returns the function that reads a page of the deliveries of a webhook.
func fetchDeliveries(ctx context.Context, s *invocation.Invocation, name string,
	statuses []string) (invocation.Fetch[*signalboxv1.WebhookDelivery], error) {
	words, err := invocation.Words("status", statuses, []string{"pending", "delivered", "dead"})
	if err != nil {
		return nil, err
	}
	return func(size int32, token string) ([]*signalboxv1.WebhookDelivery, string, error) {
		response, err := invocation.Call(ctx, s, s.Webhooks().ListWebhookDeliveries,
			&signalboxv1.ListWebhookDeliveriesRequest{
				Project: s.Project(), Name: name, Statuses: words, PageSize: size, PageToken: token,
			}, "list the deliveries of webhook %q", name)
		if err != nil {
			return nil, "", err
		}
		return response.GetDeliveries(), response.GetNextPageToken(), nil
	}, nil
}

// status is a status of HTTP for people; empty if there was no answer.
func status(code int32) string {
	if code == 0 {
		return ""
	}
	return fmt.Sprint(code)
}

// next is when a pending delivery is attempted again.
func next(s *invocation.Invocation, d *signalboxv1.WebhookDelivery) string {
	if d.GetStatus() != "pending" {
		return ""
	}
	if d.GetNextTime() == nil {
		return "paused"
	}
	if wait := d.GetNextTime().AsTime().Sub(s.Now()); wait > 0 {
		return "in " + output.Span(wait)
	}
	return "now"
}

func deliveryCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delivery ID", Short: "Show a delivery with its attempts",
		Example: `  signalbox webhook delivery 0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11`,
		Args:    invocation.Args(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			response, err := invocation.Call(cmd.Context(), s, s.Webhooks().GetWebhookDelivery,
				&signalboxv1.GetWebhookDeliveryRequest{
					Project: s.Project(), Id: args[0],
				}, "show delivery %q", args[0])
			if err != nil {
				return err
			}
			return deliveryCard(s, response.GetDelivery())
		},
	}
	s.BindClient(cmd)
	return cmd
}

func deliveryCard(s *invocation.Invocation, d *signalboxv1.WebhookDelivery) error {
	fields := []output.Field{
		{Name: "delivery", Value: d.GetId()}, {Name: "webhook", Value: d.GetWebhook()},
		{Name: "status", Value: d.GetStatus()},
		{Name: "event", Value: d.GetEventType() + " " + d.GetEventId()}, {Name: "source", Value: d.GetEventSource()},
		{Name: "attempts", Value: fmt.Sprint(d.GetAttempts())},
	}
	if d.GetReason() != "" {
		fields = append(fields, output.Field{Name: "reason", Value: d.GetReason()})
	}
	if n := next(s, d); n != "" {
		fields = append(fields, output.Field{Name: "next", Value: n})
	}
	for _, a := range d.GetHistory() {
		line := fmt.Sprintf("%s, %s", cmp.Or(status(a.GetHttpStatus()), "no status"),
			output.Span(a.GetDuration().AsDuration()))
		if a.GetError() != "" {
			line += ": " + a.GetError()
		}
		fields = append(fields, output.Field{Name: output.Moment(a.GetTime()), Value: line})
	}
	return s.Card(d, fields)
}

func redeliverCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	var many manyFlags
	cmd := &cobra.Command{
		Use: "redeliver [ID]", Short: "Deliver an event to its webhook again, or those that match",
		Long: `Make a delivery due at once, also one that was delivered or given up. It keeps its ID, the header webhook-id, by which receivers
recognise it.

Without an ID, --webhook and --status select deliveries as "webhook deliveries" does, the newest first, up to --limit; --dry-run only
counts them.`,
		Example: `  signalbox webhook redeliver 0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11 --reason "the receiver is back"
  signalbox webhook redeliver --webhook orders --status dead --dry-run
  signalbox webhook redeliver --webhook orders --status dead --reason "the receiver is back"`,
		Args: invocation.Args(0, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case (len(args) == 0) == (many.webhook == ""):
				return exit.Usagef("%s: give the ID of a delivery, or --webhook NAME with --status", cmd.CommandPath())
			case many.webhook != "" && len(many.statuses) == 0:
				return exit.Usagef("%s: --status is missing; with --status dead, deliveries that were given up are sent again",
					cmd.CommandPath())
			case many.webhook != "":
				return redeliverMany(cmd.Context(), s, many, reason)
			}
			response, err := invocation.Call(cmd.Context(), s, s.Webhooks().RedeliverWebhookDelivery,
				&signalboxv1.RedeliverWebhookDeliveryRequest{
					Project: s.Project(), Id: args[0], Reason: reason,
				}, "redeliver %q", args[0])
			if err != nil {
				return err
			}
			return deliveryCard(s, response.GetDelivery())
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`reason`, for the audit log")
	cmd.Flags().StringVar(&many.webhook, "webhook", "", "deliveries of the webhook with this `name`, instead of an ID")
	bindStatuses(cmd, &many.statuses)
	cmd.Flags().IntVarP(&many.limit, "limit", "n", 1000, "at most this many deliveries that match; 0 for all")
	cmd.Flags().BoolVar(&many.dryRun, "dry-run", false, "only count the deliveries that match, and send nothing")
	s.BindClient(cmd)
	return cmd
}

// manyFlags select the deliveries of one command.
type manyFlags struct {
	webhook  string
	statuses []string
	limit    int
	dryRun   bool
}

func redeliverMany(ctx context.Context, s *invocation.Invocation, flags manyFlags, reason string) error {
	fetch, err := fetchDeliveries(ctx, s, flags.webhook, flags.statuses)
	if err != nil {
		return err
	}
	return invocation.Bulk[*signalboxv1.WebhookDelivery, *signalboxv1.WebhookDelivery]{
		Thing: "delivery", Done: "sent", Limit: flags.limit, DryRun: flags.dryRun,
		Call: func(d *signalboxv1.WebhookDelivery, place string) ([]*signalboxv1.WebhookDelivery, error) {
			response, err := invocation.Call(ctx, s, s.Webhooks().RedeliverWebhookDelivery,
				&signalboxv1.RedeliverWebhookDeliveryRequest{
					Project: s.Project(), Id: d.GetId(), Reason: reason,
				}, "redeliver %q, %s", d.GetId(), place)
			return []*signalboxv1.WebhookDelivery{response.GetDelivery()}, err
		},
		Due: strconv.Itoa,
	}.Run(s, fetch)
}
