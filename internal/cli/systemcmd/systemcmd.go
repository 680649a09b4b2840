// Package systemcmd is the noun "system": how the server is connected to Temporal, and the two things an operator does
// about it; and the noun "restore".
//
//	root.AddCommand(systemcmd.New(s), systemcmd.NewRestore(s))
package systemcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("system", "Show the connection of the platform to Temporal, and repair it", "")
	noun.AddCommand(statusCommand(s), connectionCommand(s), queuesCommand(s), healthCommand(s), resetCommand(s),
		reconcileCommand(s), adoptCommand(s), maintenanceCommand(s), keysCommand(s))
	return noun
}

func statusCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the connection to Temporal, workers, queue and reconciler",
		Long: `Show how the server at --address is connected to Temporal: a verdict in one line, then the circuit
breaker, the outages so far, the queue for runs that wait for Temporal, the reconciler, the database, its own workers, and
the live workers of all servers.

It exits with 0 whenever the server answers, in any state of the connection: scripts read connection.state of -o json.`,
		Example: `  signalbox system status
  signalbox system status --jq .connection.state`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := &signalboxv1.GetStatusRequest{}
			response, err := invocation.Call(cmd.Context(), s, s.System().GetStatus, request, "get the system's status")
			if err != nil {
				return err
			}
			if s.Format().Structured() {
				return output.Message(s.Out, s.Format(), response)
			}
			return printStatus(s, response)
		},
	}
	s.BindServer(cmd)
	return cmd
}

func connectionCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connection",
		Short: "Show whether the server is connected to Temporal",
		Long: `Show whether the server at --address is connected to Temporal, since when, and what becomes of new runs. It needs no role;
"signalbox system status", for callers with a role in all projects, shows the address and the last error, too.`,
		Example: `  signalbox system connection
  signalbox system connection --jq .state`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := invocation.Call(cmd.Context(), s, s.System().GetConnection, &signalboxv1.GetConnectionRequest{},
				"get the connection to Temporal")
			if err != nil {
				return err
			}
			fields := []output.Field{
				{Name: "state", Value: terminal.Line(c.GetState())},
				{Name: "since", Value: output.Moment(c.GetSince())},
				{Name: "problem", Value: terminal.Line(cmp.Or(c.GetTitle(), c.GetMismatch()))},
				{Name: "new runs", Value: newRuns(c)},
			}
			return s.Card(c, fields)
		},
	}
	s.BindServer(cmd)
	return cmd
}

// newRuns is what becomes of the runs that are started now.
func newRuns(c *signalboxv1.GetConnectionResponse) string {
	switch {
	case c.GetMismatch() != "":
		return "are refused while the runs are in another Temporal"
	case usable(c):
		return "start"
	case c.GetQueuesRuns():
		return "are queued until Temporal is available"
	}
	return "are refused until Temporal is available"
}

func resetCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset-breaker",
		Short: "Make the server attempt to connect to Temporal at once",
		Long: `Make the server at --address attempt to connect to Temporal at once, regardless of its circuit breaker and its back-off. The
command does not wait for the attempt: "signalbox system status" shows its result. It changes nothing while the server is connected.`,
		Example: `  signalbox system reset-breaker`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := &signalboxv1.ResetBreakerRequest{}
			response, err := invocation.Call(cmd.Context(), s, s.System().ResetBreaker, request, "reset the breaker")
			if err != nil {
				return err
			}
			connection := response.GetConnection()
			if s.Format().Structured() {
				return output.Message(s.Out, s.Format(), connection)
			}
			if usable(connection) {
				s.Note("nothing to try: the server is connected")
			} else {
				s.Note("the server attempts to connect now; \"%s\" shows the result", s.Command("system status"))
			}
			return write(s.Out, verdict(connection, s.Now(), s.Style())+"\n")
		},
	}
	s.BindServer(cmd)
	return cmd
}

func reconcileCommand(s *invocation.Invocation) *cobra.Command {
	var dryRun bool
	var since string
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare the runs with Temporal now, and correct what differs",
		Long: `Compare the runs with Temporal now, as a worker does every 30 seconds, and correct
differences: runs that have ended in Temporal, that are missing there, that were never submitted. Each correction is one
line; with --dry-run nothing is changed. Runs without a row, of an older database that was restored, get one.
Those of a workflow that the database did not have are only reported: publish it, and repeat with --since.`,
		Example: `  signalbox system reconcile --dry-run
  signalbox system reconcile --since 2d`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := s.Time("since", since)
			if err != nil {
				return err
			}
			return reconcile(cmd.Context(), s, &signalboxv1.ReconcileRequest{DryRun: dryRun, Since: invocation.Timestamp(from)})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "search again for executions without a row that ended in the last `time` "+
		"(\"2h\", \"7d\"), or since a day or a moment in UTC")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be corrected")
	s.BindServer(cmd)
	return cmd
}

func reconcile(ctx context.Context, s *invocation.Invocation, request *signalboxv1.ReconcileRequest) error {
	report, err := invocation.Call(ctx, s, s.System().Reconcile, request, "reconcile the runs with Temporal")
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), report)
	}
	if report.GetFailed() > 0 {
		s.Note("%s could not be compared; the next comparison retries them; %s", output.Count(report.GetFailed(), "run"),
			report.GetFailedBecause())
	}
	if report.GetWithheld() > 0 {
		s.Note("%s left alone: %s", output.Count(report.GetWithheld(), "open run"), report.GetWithheldBecause())
	}
	if until := report.GetSearchedUntil(); until != nil {
		s.Note("executions that ended before %s were searched for ones without a row; the next comparisons search the others",
			output.Moment(until))
	}
	for _, f := range report.GetForeign() {
		s.Note("%s", foreignLine(f))
	}
	checked := fmt.Sprintf("%s compared with Temporal in %s", output.Count(report.GetChecked(), "run"),
		output.Took(report.GetTook().AsDuration()))
	if report.GetTotal() == 0 {
		s.Note("nothing to correct: %s", checked)
		return nil
	}
	rows := make([]output.Row, len(report.GetCorrections()))
	for i, c := range report.GetCorrections() {
		rows[i] = output.Cells(
			"#RUN", c.GetRunId(), "PROJECT", c.GetProject(), "CORRECTION", c.GetKind(),
			"DONE", applied(c, request.GetDryRun()), "DETAIL", c.GetDetail(),
		)
	}
	if err := output.Rows(s.Out, s.Format(), s.Style(), rows); err != nil {
		return err
	}
	if more := report.GetTotal() - int64(len(rows)); more > 0 {
		s.Note("and %d more", more)
	}
	s.Note("%s; %s", output.Count(report.GetTotal(), "difference"), checked)
	return nil
}

// foreignLine is a group of runs in Temporal that cannot be adopted, with the reason and what they belong to.
func foreignLine(f *signalboxv1.ForeignRuns) string {
	of := ""
	if f.GetProject() != "" {
		of = fmt.Sprintf(" of %s@%s in project %s", f.GetWorkflow(), f.GetVersion(), f.GetProject())
	}
	return fmt.Sprintf("foreign, not a correction: %s%s in Temporal without a row (%d open), for example %s: %s",
		output.Count(f.GetCount(), "run"), of, f.GetOpen(), strings.Join(f.GetSampleRunIds(), ", "), f.GetReason())
}

// applied reports whether a correction was made.
func applied(c *signalboxv1.Correction, dryRun bool) string {
	switch {
	case c.GetApplied():
		return "yes"
	case dryRun:
		return "no, dry run"
	default:
		return "no, reported only"
	}
}

func write(w io.Writer, text string) error {
	return terminal.Draw(w, text)
}
