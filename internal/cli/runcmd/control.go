package runcmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

// waitingPaused is what a paused run waits for.
const waitingPaused = "paused"

// A control is a verb that does one thing to one run.
type control struct {
	verb, short, long string
	// needsReason: the server refuses to do it without one.
	needsReason bool
	call        func(ctx context.Context, s *invocation.Invocation, id, reason string) (*signalboxv1.Run, error)
	// note says what follows, to people.
	note func(s *invocation.Invocation, run *signalboxv1.Run)
}

func controlCommands(s *invocation.Invocation) []*cobra.Command {
	return []*cobra.Command{
		controlCommand(s, control{
			verb: "cancel", short: "Request the cancellation of a run", call: cancelRun,
			long: `Request the cancellation of a run. The run ends when a worker handles the request; "run watch" shows when. If the run has
already ended, the command changes nothing and reports this.`,
		}),
		controlCommand(s, control{
			verb: "terminate", short: "End a run at once, without a worker", call: terminateRun, needsReason: true,
			long: `End a run at once, without a worker: prefer "run cancel" as long as workers respond. If the run has already ended, the
command changes nothing and reports this.`,
		}),
		controlCommand(s, control{
			verb: "pause", short: "Stop a run before its next task", call: pauseRun, note: notePaused,
			long: `Stop a run before its next task until it is unpaused. Work in flight ends, and timers continue. Pausing a run that is
paused changes nothing.`,
		}),
		controlCommand(s, control{
			verb: "unpause", short: "Continue a paused run", call: unpauseRun,
			long: `Continue a paused run where it stopped. A run that is not paused does not change.`,
		}),
	}
}

func controlCommand(s *invocation.Invocation, c control) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               c.verb + " ID",
		Short:             c.short,
		Long:              c.long,
		Example:           "  signalbox run " + c.verb + ` 0199a4f2 --reason "wrong customer"`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := reasonGiven(c.needsReason, reason); err != nil {
				return err
			}
			run, err := c.call(cmd.Context(), s, args[0], reason)
			if err != nil {
				return s.Failed(err, "%s run %q", c.verb, args[0])
			}
			if c.note != nil {
				c.note(s, run)
			}
			return printRun(s, run)
		},
	}
	bindReason(cmd, &reason, c.needsReason)
	s.BindRuns(cmd, 1)
	return cmd
}

func bindReason(cmd *cobra.Command, reason *string, needed bool) {
	usage := "why, for the audit log and the run's history"
	if needed {
		usage += "; required"
	}
	cmd.Flags().StringVarP(reason, "reason", "r", "", usage)
}

// reasonGiven returns an error if a required reason is missing, before anything is sent.
func reasonGiven(needed bool, reason string) error {
	if needed && strings.TrimSpace(reason) == "" {
		return exit.Usagef("--reason is required: it is recorded in the audit log and the run's history")
	}
	return nil
}

// notePaused prints a note while no worker has handled the request yet; there may be no live worker.
func notePaused(s *invocation.Invocation, run *signalboxv1.Run) {
	if run.GetWaitingKind() != waitingPaused && !hasEnded(run.GetStatus()) {
		s.Note("requested; the run shows it once a worker has handled it: %s", s.Command("run watch %s", run.GetId()))
	}
}

func cancelRun(ctx context.Context, s *invocation.Invocation, id, reason string) (*signalboxv1.Run, error) {
	request := &signalboxv1.CancelRunRequest{Project: s.Project(), Id: id, Reason: reason}
	response, err := invocation.Send(ctx, s, s.Runs().CancelRun, request)
	return response.GetRun(), err
}

func terminateRun(ctx context.Context, s *invocation.Invocation, id, reason string) (*signalboxv1.Run, error) {
	request := &signalboxv1.TerminateRunRequest{Project: s.Project(), Id: id, Reason: reason}
	response, err := invocation.Send(ctx, s, s.Runs().TerminateRun, request)
	return response.GetRun(), err
}

func pauseRun(ctx context.Context, s *invocation.Invocation, id, reason string) (*signalboxv1.Run, error) {
	request := &signalboxv1.PauseRunRequest{Project: s.Project(), Id: id, Reason: reason}
	response, err := invocation.Send(ctx, s, s.Runs().PauseRun, request)
	return response.GetRun(), err
}

func unpauseRun(ctx context.Context, s *invocation.Invocation, id, reason string) (*signalboxv1.Run, error) {
	request := &signalboxv1.UnpauseRunRequest{Project: s.Project(), Id: id, Reason: reason}
	response, err := invocation.Send(ctx, s, s.Runs().UnpauseRun, request)
	return response.GetRun(), err
}
