// Package dispatchercmd is the noun "dispatcher": the state of the dispatchers, which turn a project's events into
// runs, and the operator's actions on them; and the noun "worker".
//
//	root.AddCommand(dispatchercmd.New(s), dispatchercmd.NewWorker(s))
package dispatchercmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("dispatcher", "Show and control the dispatchers, which turn events into runs",
		"Each project has one dispatcher: a workflow in Temporal that one worker owns at a time.")
	noun.AddCommand(listCommand(s), showCommand(s), handoverCommand(s), reconcileCommand(s))
	return noun
}

// states of dispatchers, as the API spells them.
func states() []string {
	return []string{"routing", "parked", "stale", "missing", "foreign", "no_workers", "unknown"}
}

func listCommand(s *invocation.Invocation) *cobra.Command {
	var wanted []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the dispatchers of all projects",
		Long: `List the dispatchers of all projects: the state, the owner and the progress of each. A dispatcher is routing, parked
(without work, until an event wakes it), stale (no worker owns it or works for it, and it is replaced), missing, foreign (its
ID in Temporal is used by another workflow) or no_workers (no live worker serves its project). It is unknown if Temporal, Redis
or the database could not be read; a line on standard error says which. PENDING counts events that are not matched yet, and
deliveries that are neither done nor dead.`,
		Example: `  signalbox dispatcher list
  signalbox dispatcher list --state stale,missing --jq '.[].project'`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(cmd.Context(), s, wanted)
		},
	}
	cmd.Flags().StringSliceVar(&wanted, "state", nil,
		"only these `states`, separated by commas: "+strings.Join(states(), ", "))
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states(), cobra.ShellCompDirectiveNoFileComp))
	s.BindServer(cmd)
	return cmd
}

func list(ctx context.Context, s *invocation.Invocation, wanted []string) error {
	wanted, err := invocation.Words("state", wanted, states())
	if err != nil {
		return err
	}
	found, _, err := invocation.Pages(0, func(size int32, token string) ([]*signalboxv1.Dispatcher, string, error) {
		response, err := invocation.Call(ctx, s, s.Dispatchers().ListDispatchers, &signalboxv1.ListDispatchersRequest{
			PageSize: size, PageToken: token, States: wanted,
		}, "list dispatchers")
		return response.GetDispatchers(), response.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	if !s.Format().Structured() {
		noteErrors(s, found)
	}
	return invocation.Listing[*signalboxv1.Dispatcher]{
		Thing: "dispatcher",
		Row: func(d *signalboxv1.Dispatcher) output.Row {
			progress := d.GetProgress()
			return output.Cells(
				"PROJECT", d.GetProject(), "STATE", d.GetState(), "OWNER", owner(d), "LEASE", leaseLine(d),
				"PENDING", number(progress != nil, progress.GetPending()), "LAG", lag(progress),
				"+TASK QUEUE", d.GetTaskQueue(), "+HEAD", number(progress != nil, progress.GetHead()),
				"+ROUTED", number(progress != nil, progress.GetRouted()), "+EXECUTION", d.GetExecution().GetRunId(),
				"+HISTORY", historyLength(d), "DETAIL", d.GetDetail(),
			)
		},
	}.Print(s, found, false)
}

// noteErrors says once what could not be asked for any of them.
func noteErrors(s *invocation.Invocation, found []*signalboxv1.Dispatcher) {
	noted := map[string]bool{}
	for _, d := range found {
		for _, line := range d.GetErrors() {
			if !noted[line] {
				noted[line] = true
				s.Note("partial result: %s", terminal.Line(line))
			}
		}
	}
}

// owner is the holder of the lease; without a lease, the last process that adopted the dispatcher.
func owner(d *signalboxv1.Dispatcher) string {
	o := d.GetLease().GetOwner()
	if o == nil {
		o = d.GetExecution().GetOwner()
	}
	if o == nil && (unasked(d, "leases") || unasked(d, "temporal")) {
		return unknown
	}
	return ownerLine(o)
}

func ownerLine(o *signalboxv1.DispatcherOwner) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%s (epoch %d)", o.GetServerId(), o.GetEpoch())
}

// leaseLine says that there is no lease only where the leases could be asked.
func leaseLine(d *signalboxv1.Dispatcher) string {
	l := d.GetLease()
	if l == nil {
		if unasked(d, "leases") {
			return unknown
		}
		return "none"
	}
	remaining := l.GetRemaining().AsDuration()
	switch {
	case l.GetState() != "held":
		return l.GetState()
	case remaining <= 0:
		return "held, expires now"
	default:
		return "held, expires in " + output.Span(remaining)
	}
}

// unasked reports whether a side could not be asked for what is known of the dispatcher.
func unasked(d *signalboxv1.Dispatcher, side string) bool {
	return slices.ContainsFunc(d.GetErrors(), func(line string) bool { return strings.HasPrefix(line, side+":") })
}

// unknown stands for what could not be read.
const unknown = "unknown"

// number is a number that may not be known.
func number(known bool, n int64) string {
	if !known {
		return unknown
	}
	return fmt.Sprint(n)
}

// historyLength is that of the dispatcher's execution, where it has one.
func historyLength(d *signalboxv1.Dispatcher) string {
	if d.GetExecution() == nil {
		return ""
	}
	if d.GetExecution().GetHistoryLength() == 0 { // every execution has a history
		return unknown
	}
	return output.Count(d.GetExecution().GetHistoryLength(), "event")
}

func lag(p *signalboxv1.DispatcherProgress) string {
	if p == nil {
		return unknown
	}
	return output.Span(p.GetLag().AsDuration())
}
