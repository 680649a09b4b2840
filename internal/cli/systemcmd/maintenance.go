package systemcmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func maintenanceCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "maintenance [on|off]",
		Short: "Show the maintenance mode, or switch it on or off",
		Long: `Show whether the platform is in maintenance, or switch it on or off. While it is on, no server starts new runs:

  - requests for runs and replays are refused with MAINTENANCE, and exit with 5
  - events are accepted; their deliveries that start runs, also those of schedules, wait and are retried within a minute after its end
  - runs in queues, and batches of replays, wait
  - open runs continue, and so do the runs that they start

Other servers follow within seconds. It requires the role admin in all projects, and is recorded in the audit log.`,
		Example: `  signalbox system maintenance on --reason 'upgrade of the database'
  signalbox system maintenance off`,
		Args:      invocation.Args(0, 1, "[on|off]"),
		ValidArgs: []string{"on", "off"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if reason != "" {
					return exit.Usagef("--reason belongs to \"maintenance on\" or \"maintenance off\"")
				}
				response, err := invocation.Call(cmd.Context(), s, s.System().GetMaintenance, &signalboxv1.GetMaintenanceRequest{},
					"get the maintenance mode")
				return printMaintenance(s, response.GetMaintenance(), err)
			}
			if args[0] != "on" && args[0] != "off" {
				return exit.Usagef("unknown state %q: use on or off", args[0])
			}
			request := &signalboxv1.SetMaintenanceRequest{Active: args[0] == "on", Reason: reason}
			response, err := invocation.Call(cmd.Context(), s, s.System().SetMaintenance, request, "switch maintenance %s",
				args[0])
			return printMaintenance(s, response.GetMaintenance(), err)
		},
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "`text` that callers see whose runs are refused; required for on")
	s.BindServer(cmd)
	return cmd
}

func printMaintenance(s *invocation.Invocation, m *signalboxv1.Maintenance, err error) error {
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), m)
	}
	return write(s.Out, "maintenance: "+terminal.Line(maintenanceLine(m, s.Now()))+"\n")
}

// maintenanceLine is the state in one line.
func maintenanceLine(m *signalboxv1.Maintenance, now time.Time) string {
	if m == nil {
		return "unknown"
	}
	state := "off"
	if m.GetActive() {
		state = "on, no new runs start"
	}
	if m.GetSince() == nil {
		return state
	}
	line := fmt.Sprintf("%s, for %s, by %s", state, output.Span(now.Sub(m.GetSince().AsTime())), m.GetActor())
	if m.GetReason() != "" {
		line += ": " + m.GetReason()
	}
	return line
}
