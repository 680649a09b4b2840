package problemcmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

// changing is a command that changes one problem; flags are those of its example; act sends the request for the problem
// with this revision.
func changing(
	s *invocation.Invocation, verb, short, flags string,
	act func(ctx context.Context, cmd *cobra.Command, id string, revision int64) (*signalboxv1.Problem, error),
) *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: verb + " ID", Short: short,
		Example: strings.TrimRight("  signalbox problem "+verb+" stuck.shop.NO_POLLER "+flags, " "),
		Args:    invocation.Args(1, 1, "ID"), ValidArgsFunction: s.CompleteProblems,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, at := args[0], revision
			if !cmd.Flags().Changed("revision") {
				now, err := get(cmd.Context(), s, id)
				if err != nil {
					return err
				}
				at = now.GetRevision()
			}
			p, err := act(cmd.Context(), cmd, id, at)
			if err != nil {
				return s.Failed(err, "%s problem %q", verb, id)
			}
			return show(s, p)
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0,
		"`revision` of the problem as you have read it; the present one when not given")
	s.BindServer(cmd)
	return cmd
}

func acknowledgeCommand(s *invocation.Invocation) *cobra.Command {
	var note string
	cmd := changing(s, "acknowledge", "Mark a problem as seen until it is resolved", `--note "the workers are restarting"`,
		func(ctx context.Context, _ *cobra.Command, id string, revision int64) (*signalboxv1.Problem, error) {
			request := &signalboxv1.AcknowledgeProblemRequest{Id: id, Revision: revision, Note: note}
			response, err := invocation.Send(ctx, s, s.Problems().AcknowledgeProblem, request)
			return response.GetProblem(), err
		})
	cmd.Flags().StringVar(&note, "note", "", "`text` that replaces the note of the problem")
	return cmd
}

func snoozeCommand(s *invocation.Invocation) *cobra.Command {
	var until string
	var count int64
	cmd := changing(s, "snooze", "Take a problem out of the open ones until a time or a count", "--until 12h",
		func(ctx context.Context, cmd *cobra.Command, id string, revision int64) (*signalboxv1.Problem, error) {
			if (until == "") == !cmd.Flags().Changed("until-count") {
				return nil, exit.Usagef("%s: give either --until or --until-count", cmd.CommandPath())
			}
			request := &signalboxv1.SnoozeProblemRequest{Id: id, Revision: revision, UntilCount: count}
			if until != "" {
				at, err := s.Ahead("until", until)
				if err != nil {
					return nil, err
				}
				request.Until = invocation.Timestamp(at)
			}
			response, err := invocation.Send(ctx, s, s.Problems().SnoozeProblem, request)
			return response.GetProblem(), err
		})
	cmd.Flags().StringVar(&until, "until", "",
		"`time` at which the snooze ends: in how long (\"12h\") or a moment (2027-01-31T12:00:00Z)")
	cmd.Flags().Int64Var(&count, "until-count", 0, "`count` of runs at which the snooze ends")
	return cmd
}

func updateCommand(s *invocation.Invocation) *cobra.Command {
	var owner, note string
	cmd := changing(s, "update", "Set the owner or the note of a problem", "--owner payments",
		func(ctx context.Context, cmd *cobra.Command, id string, revision int64) (*signalboxv1.Problem, error) {
			request := &signalboxv1.UpdateProblemRequest{Id: id, Revision: revision}
			if cmd.Flags().Changed("owner") {
				request.Owner = &owner
			}
			if cmd.Flags().Changed("note") {
				request.Note = &note
			}
			if request.Owner == nil && request.Note == nil {
				return nil, exit.Usagef("%s: nothing to set: give --owner or --note", cmd.CommandPath())
			}
			response, err := invocation.Send(ctx, s, s.Problems().UpdateProblem, request)
			return response.GetProblem(), err
		})
	cmd.Flags().StringVar(&owner, "owner", "", "`person` or team that takes care of the problem; empty for none")
	cmd.Flags().StringVar(&note, "note", "", "`text` of the note; empty for none")
	return cmd
}

func reopenCommand(s *invocation.Invocation) *cobra.Command {
	return changing(s, "reopen", "End the acknowledgement or the snooze of a problem", "",
		func(ctx context.Context, _ *cobra.Command, id string, revision int64) (*signalboxv1.Problem, error) {
			response, err := invocation.Send(ctx, s, s.Problems().ReopenProblem,
				&signalboxv1.ReopenProblemRequest{Id: id, Revision: revision})
			return response.GetProblem(), err
		})
}
