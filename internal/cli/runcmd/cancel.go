package runcmd

import (
	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

func cancelCommand(s *session.Session) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Ask for a run's cancellation",
		Long: `Ask for a run's cancellation. The run ends once it has cleaned up; "run watch" tells when. A run that has ended
already is left as it is, and the command says so.`,
		Args:              session.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := s.Deadline(cmd.Context())
			defer cancel()
			response, err := s.Runs().CancelRun(ctx, connect.NewRequest(&signalboxv1.CancelRunRequest{
				Project: s.Project(), Id: args[0], Reason: reason,
			}))
			if err != nil {
				return s.Failed(err, "cancel run %q", args[0])
			}
			return printRun(s, response.Msg.GetRun())
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log and whoever looks at the run")
	s.BindClient(cmd)
	return cmd
}
