package runcmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func watchCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Watch a run's steps until it ends",
		Long: `Show the steps of a run as they change, and exit with the code of its end: 0 completed, 10 failed, 11 canceled or terminated,
12 timed out. On a terminal the newest steps are redrawn in place; elsewhere there is one line for each change. With
-o json there is one JSON object per line: the run, and the steps that changed. If the server becomes unavailable,
the command waits for it. Ctrl-C ends the command, not the run.`,
		Example: `  signalbox run watch 0199a4f2
  signalbox run watch 0199a4f2 -o json`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return watch(cmd.Context(), s, args[0])
		},
	}
	s.BindRuns(cmd, 1)
	return cmd
}

func watch(ctx context.Context, s *invocation.Invocation, id string) error {
	patience, stop := s.Patience(ctx)
	defer stop()
	// This call fails at once for a wrong ID or a server that cannot be reached; a watch would keep retrying.
	request := &signalboxv1.GetRunRequest{Project: s.Project(), Id: id}
	if _, err := invocation.Call(patience, s, s.Runs().GetRun, request, "watch run %q", id); err != nil {
		return err
	}
	follow := newFollower(s, s.Project(), id, watchView(s))
	finished, err := follow.untilEnd(patience)
	if err != nil {
		return err
	}
	return outcome(finished.GetStatus())
}

func watchView(s *invocation.Invocation) view {
	switch {
	case s.Format().Structured():
		return &records{w: s.Out, format: s.Format(), lines: newLines(s.Err, s.ErrStyle())}
	case invocation.IsTerminal(s.Out):
		return newScreen(s.Out, s.Style(), invocation.Width(s.Out))
	default:
		return newLines(s.Out, s.Style())
	}
}

// records is the view of programs: each message of the server as it is, a line of JSON or a YAML document. What is
// not data goes to the lines.
type records struct {
	*lines

	w      io.Writer
	format output.Format
}

func (r *records) update(message *signalboxv1.WatchRunResponse) {
	if r.format == output.JSON {
		_ = output.Line(r.w, message) // a reader that hung up does not end the run
		return
	}
	_, _ = io.WriteString(r.w, "---\n")
	_ = output.Message(r.w, r.format, message) // as above
}
