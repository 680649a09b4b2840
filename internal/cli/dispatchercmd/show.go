package dispatchercmd

import (
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func showCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show PROJECT",
		Short: "Show a project's dispatcher, its workers and its last owners",
		Long: `Show all data of a project's dispatcher: the lease of its owner, the workflow in Temporal, its progress with the
events, the workers that are registered with it, and its previous owners.`,
		Example:           `  signalbox dispatcher show shop`,
		Args:              invocation.Args(1, 1, "PROJECT"),
		ValidArgsFunction: s.CompleteProjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.GetDispatcherRequest{Project: args[0]}
			response, err := invocation.Call(cmd.Context(), s, s.Dispatchers().GetDispatcher, request,
				"show the dispatcher of project %q", args[0])
			if err != nil {
				return err
			}
			return printDispatcher(s, response.GetDispatcher())
		},
	}
	s.BindServer(cmd)
	return cmd
}

func printDispatcher(s *invocation.Invocation, d *signalboxv1.Dispatcher) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), d)
	}
	noteErrors(s, []*signalboxv1.Dispatcher{d})
	if err := output.Card(s.Out, s.Style(), fields(d, s.Format() == output.Wide)); err != nil {
		return err
	}
	if err := printWorkers(s, d); err != nil {
		return err
	}
	return printOwners(s, d.GetOwners())
}

func fields(d *signalboxv1.Dispatcher, wide bool) []output.Field {
	all := []output.Field{
		{Name: "project", Value: d.GetProject()},
		{Name: "task queue", Value: d.GetTaskQueue()},
		{Name: "workflow", Value: d.GetWorkflowId()},
		{Name: "state", Value: d.GetState()},
		{Name: "detail", Value: d.GetDetail()},
		{Name: "owner", Value: owner(d)},
		{Name: "lease", Value: leaseLine(d)},
	}
	if p := d.GetProgress(); p != nil {
		all = append(all,
			output.Field{Name: "events", Value: fmt.Sprintf("%d accepted, %d matched", p.GetHead(), p.GetRouted())},
			output.Field{Name: "pending", Value: output.Count(p.GetPending(), "delivery")},
			output.Field{Name: "lag", Value: lag(p)},
			output.Field{Name: "progress", Value: progressLine(p)})
	} else {
		all = append(all, output.Field{Name: "progress", Value: unknown})
	}
	if x := d.GetExecution(); x != nil {
		all = append(all,
			output.Field{Name: "execution", Value: x.GetRunId()},
			output.Field{Name: "adopted by", Value: ownerLine(x.GetOwner())})
		if wide {
			all = append(all,
				output.Field{Name: "started", Value: output.Moment(x.GetStartTime())},
				output.Field{Name: "history", Value: historyLength(d)},
				output.Field{Name: "interpreter", Value: number(x.GetInterpreter() > 0, int64(x.GetInterpreter()))})
		}
	}
	if wide {
		all = append(all,
			output.Field{Name: "acquired", Value: output.Moment(d.GetLease().GetAcquireTime())},
			output.Field{Name: "renewed", Value: output.Moment(d.GetLease().GetRenewTime())},
			output.Field{Name: "claims", Value: ownerLine(d.GetProgress().GetOwner())})
	}
	return all
}

func progressLine(p *signalboxv1.DispatcherProgress) string {
	if p.GetSinceProgress() == nil {
		return "none yet"
	}
	return output.Span(p.GetSinceProgress().AsDuration()) + " ago"
}

func printWorkers(s *invocation.Invocation, d *signalboxv1.Dispatcher) error {
	workers := d.GetWorkers()
	switch {
	case len(workers) == 0 && (unasked(d, "state") || unasked(d, "temporal")): // only the dispatcher has them
		return s.Heading("registered workers: unknown")
	case len(workers) == 0:
		return s.Heading("no registered workers")
	}
	if err := s.Heading("registered workers"); err != nil {
		return err
	}
	rows := make([]output.Row, len(workers))
	for i, w := range workers {
		missed := ""
		if w.GetMissed() > 0 {
			missed = output.Count(int64(w.GetMissed()), "heartbeat") + " missed"
		}
		rows[i] = output.Cells(
			"SERVER", w.GetServerId(), "BUILD", w.GetBuild(), "AGE", s.Age(w.GetRegisterTime()),
			"+REGISTERED", output.Moment(w.GetRegisterTime()), "MISSED", missed,
		)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

func printOwners(s *invocation.Invocation, owners []*signalboxv1.OwnerChange) error {
	if len(owners) == 0 {
		return nil
	}
	if err := s.Heading("owners"); err != nil {
		return err
	}
	rows := make([]output.Row, len(owners))
	for i, o := range owners {
		rows[i] = output.Cells(
			"SINCE", output.Moment(o.GetTime()), "OUTCOME", o.GetHow(), "OWNER", ownerLine(o.GetOwner()),
			"PREVIOUS", ownerLine(o.GetPrevious()), "+EXECUTION", o.GetRunId(), "+ENDED", o.GetEndedRunId(),
			"REASON", o.GetReason(),
		)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}
