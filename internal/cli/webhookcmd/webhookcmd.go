// Package webhookcmd is the noun "webhook": send events of a project to other systems, and show and repeat the
// deliveries.
//
//	root.AddCommand(webhookcmd.New(s))
package webhookcmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("webhook", "Send events of a project to other systems by HTTP", "")
	noun.AddCommand(listCommand(s), showCommand(s), createCommand(s), updateCommand(s), pauseCommand(s), unpauseCommand(s),
		rotateCommand(s),
		testCommand(s), deleteCommand(s), deliveriesCommand(s), deliveryCommand(s), redeliverCommand(s))
	return noun
}

// named returns a command with the name of a webhook as its argument.
func named(s *invocation.Invocation, verb, short, long string,
	run func(ctx context.Context, name string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Example: "  signalbox webhook " + verb +
			" orders", Args: invocation.Args(1, 1, "NAME"), ValidArgsFunction: s.CompleteWebhooks,
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0]) },
	}
	s.BindClient(cmd)
	return cmd
}

func listCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the webhooks of the project", Example: `  signalbox webhook list`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), s) },
	}
	s.BindClient(cmd)
	return cmd
}

func list(ctx context.Context, s *invocation.Invocation) error {
	response, err := invocation.Call(ctx, s, s.Webhooks().ListWebhooks,
		&signalboxv1.ListWebhooksRequest{Project: s.Project()}, "list webhooks")
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.Webhook]{
		Thing: "webhook", None: "no webhooks in project " + s.Project(),
		Row: func(w *signalboxv1.Webhook) output.Row {
			return output.Cells(
				"NAME", w.GetName(), "STATUS", w.GetStatus(), "FORMAT", w.GetFormat(),
				"TYPES", strings.Join(w.GetFilter().GetTypes(), ","), "PENDING", fmt.Sprint(w.GetPending()),
				"URL", w.GetUrl(), "+LAST SUCCESS", output.Moment(w.GetLastSuccessTime()),
				"+LAST ERROR", w.GetLastError(), "+CREATED BY", w.GetCreator(), "+AGE", s.Age(w.GetCreateTime()),
			)
		},
	}.Print(s, response.GetWebhooks(), false)
}

func showCommand(s *invocation.Invocation) *cobra.Command {
	return named(s, "show", "Show a webhook", "", func(ctx context.Context, name string) error {
		response, err := invocation.Call(ctx, s, s.Webhooks().GetWebhook,
			&signalboxv1.GetWebhookRequest{Project: s.Project(), Name: name}, "show webhook %q", name)
		if err != nil {
			return err
		}
		return card(s, response.GetWebhook())
	})
}

func card(s *invocation.Invocation, w *signalboxv1.Webhook) error {
	return s.Card(w, []output.Field{
		{Name: "webhook", Value: w.GetName()}, {Name: "status", Value: w.GetStatus()}, {Name: "url", Value: w.GetUrl()},
		{Name: "format", Value: w.GetFormat()},
		{Name: "types", Value: strings.Join(w.GetFilter().GetTypes(), ",")},
		{Name: "with", Value: w.GetFilter().GetWith().GetJson()},
		{Name: "pending", Value: fmt.Sprint(w.GetPending())},
		{Name: "oldest pending", Value: output.Moment(w.GetOldestPendingTime())},
		{Name: "last success", Value: output.Moment(w.GetLastSuccessTime())},
		{Name: "failing since", Value: output.Moment(w.GetFailingTime())},
		{Name: "last error", Value: w.GetLastError()}, {Name: "paused", Value: output.Moment(w.GetPauseTime())},
		{Name: "reason", Value: w.GetPauseReason()},
		{Name: "previous secret until", Value: output.Moment(w.GetPreviousSecretExpireTime())},
		{Name: "created", Value: made(w.GetCreateTime(), w.GetCreator())},
		{Name: "updated", Value: made(w.GetUpdateTime(), w.GetUpdater())},
	})
}

// made is when and by whom something was done, as far as it is known.
func made(at *timestamppb.Timestamp, by string) string {
	return cmp.Or(output.Moment(at), "at an unknown time") + " by " + cmp.Or(by, "an unknown caller")
}

// settings are the flags of a webhook.
type settings struct {
	url, format, routingKey, with string
	types                         []string
}

func (f *settings) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "",
		"`address` of the receiver; it may contain credentials, which are not shown again")
	cmd.Flags().StringSliceVar(&f.types, "type", nil,
		"event `types`, separated by commas; one that ends with * matches the types that begin so")
	cmd.Flags().StringVar(&f.with, "with", "", "attributes that events must have, as the with of a listen task: `JSON`")
	cmd.Flags().StringVar(&f.routingKey, "routing-key", "", "integration `key` of the PagerDuty service")
}

func (f *settings) filter() *signalboxv1.WebhookFilter {
	m := &signalboxv1.WebhookFilter{Types: f.types}
	if f.with != "" {
		m.With = &signalboxv1.JsonValue{Json: f.with}
	}
	return m
}

func createCommand(s *invocation.Invocation) *cobra.Command {
	var f settings
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a webhook, and print its secret",
		Long: `Create a webhook. It receives the events that are accepted from then on and match --type and --with.

The secret, with which receivers check the signature of requests (Standard Webhooks), is printed to standard output and not shown again.`,
		Example: `  signalbox webhook create audit --url https://example.com/hook --type 'io.signalbox.*'
  signalbox webhook create orders --url https://example.com/hook --type com.example.order.failed --with '{"data":{"country":"DE"}}'
  signalbox webhook create pager --format pagerduty --routing-key KEY --type io.signalbox.run.failed,io.signalbox.connection.*`,
		Args: invocation.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.types) == 0 {
				return exit.Usagef("--type is missing: it names the types of the events that the webhook receives, as in --type " +
					"'io.signalbox.*'")
			}
			response, err := invocation.Call(cmd.Context(), s, s.Webhooks().CreateWebhook, &signalboxv1.CreateWebhookRequest{
				Project: s.Project(), Name: args[0], Url: f.url, Format: f.format, Filter: f.filter(), RoutingKey: f.routingKey,
			}, "create webhook %q", args[0])
			if err != nil {
				return err
			}
			return secret(s, response, response.GetWebhook(), response.GetSecret(), "created")
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVar(&f.format, "format", "cloudevents",
		"`format` of the requests: cloudevents, alertmanager, pagerduty or slack")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("format",
		cobra.FixedCompletions([]string{"cloudevents", "alertmanager", "pagerduty", "slack"},
			cobra.ShellCompDirectiveNoFileComp))
	s.BindClient(cmd)
	return cmd
}

// secret prints a secret: for people alone on standard output, so that it can be piped.
func secret(s *invocation.Invocation, response proto.Message, w *signalboxv1.Webhook, text, done string) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), response)
	}
	s.Note("webhook %q is %s; keep its secret, it is not shown again:", w.GetName(), done)
	_, err := fmt.Fprintln(s.Out, text)
	return err
}

func updateCommand(s *invocation.Invocation) *cobra.Command {
	var f settings
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change the address, the filter or the routing key of a webhook",
		Long: `Change the settings of a webhook that are given as flags. --type and --with are changed together: give both where both apply.
Unfinished deliveries use the new address.`,
		Example: `  signalbox webhook update orders --type com.example.order.failed,com.example.order.expired`,
		Args:    invocation.Args(1, 1, "NAME"), ValidArgsFunction: s.CompleteWebhooks,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.UpdateWebhookRequest{Project: s.Project(), Name: args[0]}
			changed := cmd.Flags().Changed
			if changed("url") {
				request.Url = &f.url
			}
			if changed("routing-key") {
				request.RoutingKey = &f.routingKey
			}
			if changed("with") && !changed("type") {
				return exit.Usagef("--with: give --type, too; they are changed together")
			}
			if changed("type") {
				request.Filter = f.filter()
			}
			response, err := invocation.Call(cmd.Context(), s, s.Webhooks().UpdateWebhook, request, "update webhook %q", args[0])
			if err != nil {
				return err
			}
			return card(s, response.GetWebhook())
		},
	}
	f.bind(cmd)
	s.BindClient(cmd)
	return cmd
}

func pauseCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	cmd := named(s, "pause", "Pause a webhook",
		"Pause a webhook. Events that are accepted while it is paused are not delivered; unfinished deliveries wait.",
		func(ctx context.Context, name string) error {
			response, err := invocation.Call(ctx, s, s.Webhooks().PauseWebhook,
				&signalboxv1.PauseWebhookRequest{Project: s.Project(), Name: name, Reason: reason}, "pause webhook %q", name)
			if err != nil {
				return err
			}
			return card(s, response.GetWebhook())
		})
	cmd.Flags().StringVar(&reason, "reason", "", "`reason`, for the audit log")
	return cmd
}

func unpauseCommand(s *invocation.Invocation) *cobra.Command {
	return named(s, "unpause", "Continue a paused webhook",
		"Continue a paused webhook. Its unfinished deliveries are due at once.",
		func(ctx context.Context, name string) error {
			response, err := invocation.Call(ctx, s, s.Webhooks().UnpauseWebhook,
				&signalboxv1.UnpauseWebhookRequest{Project: s.Project(), Name: name}, "unpause webhook %q", name)
			if err != nil {
				return err
			}
			return card(s, response.GetWebhook())
		})
}

func rotateCommand(s *invocation.Invocation) *cobra.Command {
	keep := 24 * time.Hour
	cmd := named(s, "rotate-secret", "Replace the secret of a webhook, and print the new one",
		"Replace the secret of a webhook. For the time of --keep, requests have a signature of the previous secret, too.",
		func(ctx context.Context, name string) error {
			response, err := invocation.Call(ctx, s, s.Webhooks().RotateWebhookSecret, &signalboxv1.RotateWebhookSecretRequest{
				Project: s.Project(), Name: name, KeepPrevious: durationpb.New(keep),
			}, "rotate the secret of webhook %q", name)
			if err != nil {
				return err
			}
			return secret(s, response, response.GetWebhook(), response.GetSecret(), "rotated")
		})
	cmd.Flags().DurationVar(&keep, "keep", keep, "how long the previous secret stays valid, at most 720h")
	return cmd
}

func testCommand(s *invocation.Invocation) *cobra.Command {
	return named(s, "test", "Send a test event to a webhook",
		"Send an event of the type io.signalbox.webhook.test, once. Exit code 1 where the receiver does not accept it.",
		func(ctx context.Context, name string) error {
			response, err := invocation.Call(ctx, s, s.Webhooks().TestWebhook,
				&signalboxv1.TestWebhookRequest{Project: s.Project(), Name: name}, "test webhook %q", name)
			if err != nil {
				return err
			}
			d := response.GetDelivery()
			if err := deliveryCard(s, d); err != nil {
				return err
			}
			if d.GetStatus() != "delivered" {
				return exit.Errorf(exit.Failed, "the receiver of webhook %q did not accept the event: %s", name, d.GetReason())
			}
			return nil
		})
}

func deleteCommand(s *invocation.Invocation) *cobra.Command {
	var confirm invocation.Confirmation
	cmd := named(s, "delete", "Delete a webhook with its deliveries", "", func(ctx context.Context, name string) error {
		if err := confirm.Ask(s, fmt.Sprintf("Delete webhook %q of project %s with its deliveries?", name,
			s.Project())); err != nil {
			return err
		}
		_, err := invocation.Call(ctx, s, s.Webhooks().DeleteWebhook,
			&signalboxv1.DeleteWebhookRequest{Project: s.Project(), Name: name}, "delete webhook %q", name)
		if err != nil {
			return err
		}
		s.Note("webhook %q is deleted", name)
		return nil
	})
	confirm.Bind(cmd)
	return cmd
}
