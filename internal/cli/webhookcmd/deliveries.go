package webhookcmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

func deliveriesCommand(s *session.Session) *cobra.Command {
	var statuses []string
	var limit int
	cmd := named(s, "deliveries", "List the deliveries of a webhook, newest first", "", func(ctx context.Context, name string) error {
		words, err := session.Words("status", statuses, []string{"pending", "delivered", "dead"})
		if err != nil {
			return err
		}
		return session.Listing[*signalboxv1.WebhookDelivery]{
			Thing: "delivery", None: "no deliveries of webhook " + name,
			Columns: output.Columns("DELIVERY", "STATUS", "TYPE", "ATTEMPTS", "HTTP", "NEXT", "AGE", "+EVENT", "+SOURCE", "+POSITION", "REASON"),
			Row: func(d *signalboxv1.WebhookDelivery) []string {
				return []string{
					d.GetId(), d.GetStatus(), d.GetEventType(), fmt.Sprint(d.GetAttempts()), status(d.GetHttpStatus()), next(s, d),
					s.Age(d.GetCreateTime()), d.GetEventId(), d.GetEventSource(), fmt.Sprint(d.GetPosition()), d.GetReason(),
				}
			},
		}.List(s, limit, func(size int32, token string) ([]*signalboxv1.WebhookDelivery, string, error) {
			response, err := session.Call(ctx, s, s.Webhooks().ListWebhookDeliveries, &signalboxv1.ListWebhookDeliveriesRequest{
				Project: s.Project(), Name: name, Statuses: words, PageSize: size, PageToken: token,
			}, "list the deliveries of webhook %q", name)
			if err != nil {
				return nil, "", err
			}
			return response.GetDeliveries(), response.GetNextPageToken(), nil
		})
	})
	cmd.Flags().StringSliceVarP(&statuses, "status", "s", nil, "only deliveries with one of these `statuses`: pending, delivered, dead")
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most this many; 0 for all")
	return cmd
}

// status is a status of HTTP for people; empty if there was no answer.
func status(code int32) string {
	if code == 0 {
		return ""
	}
	return fmt.Sprint(code)
}

// next is when a pending delivery is attempted again.
func next(s *session.Session, d *signalboxv1.WebhookDelivery) string {
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

func deliveryCommand(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delivery ID", Short: "Show a delivery with its attempts", Example: `  signalbox webhook delivery 0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11`,
		Args: session.Args(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			response, err := session.Call(cmd.Context(), s, s.Webhooks().GetWebhookDelivery, &signalboxv1.GetWebhookDeliveryRequest{
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

func deliveryCard(s *session.Session, d *signalboxv1.WebhookDelivery) error {
	fields := []output.Field{
		{Name: "delivery", Value: d.GetId()}, {Name: "webhook", Value: d.GetWebhook()}, {Name: "status", Value: d.GetStatus()},
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
		line := fmt.Sprintf("%s, %s", cmp.Or(status(a.GetHttpStatus()), "no status"), output.Span(a.GetDuration().AsDuration()))
		if a.GetError() != "" {
			line += ": " + a.GetError()
		}
		fields = append(fields, output.Field{Name: output.Moment(a.GetTime()), Value: line})
	}
	return s.Card(d, fields)
}

func redeliverCommand(s *session.Session) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "redeliver ID", Short: "Deliver an event to its webhook again",
		Long:    "Make a delivery due at once, also one that was delivered or given up. It keeps its ID, the header webhook-id, by which receivers\nrecognise it.",
		Example: `  signalbox webhook redeliver 0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11 --reason "the receiver is back"`,
		Args:    session.Args(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			response, err := session.Call(cmd.Context(), s, s.Webhooks().RedeliverWebhookDelivery, &signalboxv1.RedeliverWebhookDeliveryRequest{
				Project: s.Project(), Id: args[0], Reason: reason,
			}, "redeliver %q", args[0])
			if err != nil {
				return err
			}
			return deliveryCard(s, response.GetDelivery())
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`reason`, for the audit log")
	s.BindClient(cmd)
	return cmd
}
