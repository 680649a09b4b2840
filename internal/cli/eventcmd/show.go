package eventcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func showCommand(s *invocation.Invocation) *cobra.Command {
	var which named
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one event with its deliveries and their outcomes",
		Long: `Show one event, by its ID or its position (a number that is the ID of no event is a position), with its deliveries: the runs that it started and woke, the pending deliveries,
and the dead ones with the reason. A second table has the runs that wait for events of its type and have not taken it, with the reason.
JSON and YAML have the event, its deliveries and these runs side by side.`,
		Example: `  signalbox event show 4711 --source /shop
  signalbox event show 12 --jq .event.data`,
		Args:              invocation.Args(0, 1, "ID"),
		ValidArgsFunction: s.CompleteEvents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := which.take(cmd, args); err != nil {
				return err
			}
			found, err := which.get(cmd.Context(), s, "show")
			if err != nil {
				return err
			}
			return printEvent(s, found)
		},
	}
	which.bind(cmd)
	s.BindClient(cmd)
	return cmd
}

func printEvent(s *invocation.Invocation, found *signalboxv1.GetEventResponse) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), found)
	}
	if err := output.Card(s.Out, s.Style(), eventFields(found.GetEvent(), s.Format() == output.Wide)); err != nil {
		return err
	}
	if len(found.GetDeliveries()) > 0 {
		if err := s.Heading("deliveries"); err != nil {
			return err
		}
		if err := printDeliveries(s, found.GetDeliveries()); err != nil {
			return err
		}
	}
	if len(found.GetMissed()) == 0 {
		return nil
	}
	heading := "waiting runs that have not taken it"
	if found.GetMoreMissed() {
		heading += ", those nearest to a match"
	}
	if err := s.Heading(heading); err != nil {
		return err
	}
	return printMissed(s, found.GetMissed())
}

func printMissed(s *invocation.Invocation, missed []*signalboxv1.MissedListener) error {
	rows := make([]output.Row, len(missed))
	for i, m := range missed {
		step, since := "not recorded yet", "unknown"
		if m.GetStep() > 0 {
			step = fmt.Sprintf("%d %s", m.GetStep(), m.GetTask())
		}
		if m.GetSince() != nil {
			since = output.Span(s.Now().Sub(m.GetSince().AsTime()))
		}
		rows[i] = output.Cells(
			"#RUN", m.GetRunId(), "+WORKFLOW", m.GetWorkflow(), "+VERSION", m.GetVersion(), "STEP", terminal.Line(step),
			"WAITING", since, "REASON", terminal.Line(m.GetReason()),
		)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

func eventFields(e *signalboxv1.Event, wide bool) []output.Field {
	fields := []output.Field{
		{Name: "position", Value: fmt.Sprint(e.GetPosition())},
		{Name: "id", Value: e.GetId()},
		{Name: "type", Value: e.GetType()},
		{Name: "source", Value: e.GetSource()},
		{Name: "subject", Value: e.GetSubject()},
		{Name: "status", Value: e.GetStatus()},
		{Name: "reason", Value: e.GetReason()},
		{Name: "received", Value: output.Moment(e.GetReceiveTime())},
	}
	if wide {
		fields = append(fields,
			output.Field{Name: "project", Value: e.GetProject()},
			output.Field{Name: "time", Value: output.Moment(e.GetTime())},
			output.Field{Name: "actor", Value: e.GetActor()},
			output.Field{Name: "content type", Value: e.GetDataContentType()},
			output.Field{Name: "schema", Value: e.GetDataSchema()},
		)
	}
	fields = append(fields, output.JSONField("extensions", e.GetExtensions().GetJson()),
		output.JSONField("data", e.GetData().GetJson()))
	if n := len(e.GetDataBase64()); n > 0 {
		fields = append(fields, output.Field{Name: "data", Value: output.Count(int64(n), "byte") + "; -o json has them"})
	}
	return fields
}
