// Package eventcmd is the noun "event": send CloudEvents to the platform, and show their deliveries.
//
//	root.AddCommand(eventcmd.New(s))
package eventcmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// pending is a delivery that is still tried, as the API spells it.
const pending = "pending"

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("event", "Send events, and show the runs that they started and woke", "")
	noun.AddCommand(sendCommand(s), listCommand(s), showCommand(s), redeliverCommand(s))
	return noun
}

// named is which event is meant.
type named struct {
	id, source string
	position   int64
}

// bind adds the flags beside the argument ID.
func (n *named) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.source, "source", "", "`source` of the event, if several have used its ID")
	cmd.Flags().Int64Var(&n.position, "position", 0, "`position` of the event, instead of its ID")
}

// take reads the argument.
func (n *named) take(cmd *cobra.Command, args []string) error {
	byPosition := cmd.Flags().Changed("position")
	switch {
	case byPosition && (len(args) > 0 || n.source != ""):
		return exit.Usagef("%s: --position names the event by itself; leave out its ID and --source", cmd.CommandPath())
	case byPosition && n.position < 1:
		return exit.Usagef("--position: %d is no position; they begin with 1", n.position)
	case !byPosition && (len(args) == 0 || args[0] == ""):
		return exit.Usagef("%s: no event is given; write %s ID, or --position N", cmd.CommandPath(), cmd.CommandPath())
	case !byPosition:
		n.id = args[0]
	}
	return nil
}

// String names the event for people.
func (n *named) String() string {
	switch {
	case n.position > 0:
		return fmt.Sprintf("at position %d", n.position)
	case n.source != "":
		return fmt.Sprintf("%q of %q", n.id, n.source)
	default:
		return fmt.Sprintf("%q", n.id)
	}
}

// get asks for the event.
func (n *named) get(ctx context.Context, s *invocation.Invocation,
	doing string) (*signalboxv1.GetEventResponse, error) {
	response, err := invocation.Call(ctx, s, s.Events().GetEvent, &signalboxv1.GetEventRequest{
		Project: s.Project(), Position: n.position, Id: n.id, Source: n.source,
	}, "%s event %s", doing, n)
	if err == nil {
		return response, nil
	}
	// A number that is the ID of no event is a position.
	position, notNumber := strconv.ParseInt(n.id, 10, 64)
	if notNumber != nil || position < 1 || n.source != "" || exit.Code(err) != exit.NotFound {
		return nil, err
	}
	n.id, n.position = "", position
	return invocation.Call(ctx, s, s.Events().GetEvent,
		&signalboxv1.GetEventRequest{Project: s.Project(), Position: position}, "%s event %s", doing, n)
}

// printDeliveries prints a table. Ages are by this machine's clock.
func printDeliveries(s *invocation.Invocation, deliveries []*signalboxv1.Delivery) error {
	rows := make([]output.Row, len(deliveries))
	for i, d := range deliveries {
		target := "run " + d.GetRunId()
		if d.GetWorkflow() != "" {
			target = d.GetWorkflow() + " " + d.GetVersion()
		}
		rows[i] = output.Cells(
			"DELIVERY", d.GetId(), "KIND", d.GetKind(), "TARGET", target, "STATUS", d.GetStatus(),
			"ATTEMPTS", fmt.Sprint(d.GetAttempts()), "NEXT", next(s, d), "+RUN", d.GetRunId(),
			"+EVENTS", strings.Trim(fmt.Sprint(d.GetPositions()), "[]"), "+CREATED", output.Moment(d.GetCreateTime()),
			"+UPDATED", output.Moment(d.GetUpdateTime()), "REASON", d.GetReason(),
		)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

// next is when a pending delivery is tried again.
func next(s *invocation.Invocation, d *signalboxv1.Delivery) string {
	if d.GetStatus() != pending || d.GetNextTime() == nil {
		return ""
	}
	if wait := d.GetNextTime().AsTime().Sub(s.Now()); wait > 0 {
		return "in " + output.Span(wait)
	}
	return "now"
}
