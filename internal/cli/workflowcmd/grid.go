package workflowcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// maxGridRuns is the server's limit for the runs of a grid.
const maxGridRuns = 50

// notReached is the cell of a task that a run has not entered.
const notReached = "-"

func gridCommand(s *invocation.Invocation) *cobra.Command {
	var version string
	var count int32
	cmd := &cobra.Command{
		Use:   "grid NAME",
		Short: "Show what each task of a workflow did in its newest runs",
		Long: `Show what each task of a workflow did in its newest runs, one column per run, the newest first. A cell is the worst status
of the task's steps and, if there are several, their number: F failed, x canceled, w waiting, r running, C completed,
s skipped, - not reached. The runs are listed on standard error.`,
		Example:           `  signalbox workflow grid shop/order --runs 10`,
		Args:              invocation.Args(1, 1, "NAME"),
		ValidArgsFunction: s.CompleteWorkflows,
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 0 || count > maxGridRuns {
				return exit.Usagef("--runs: %d is not between 1 and %d", count, maxGridRuns)
			}
			response, err := invocation.Call(cmd.Context(), s, s.Workflows().GetWorkflowGrid,
				&signalboxv1.GetWorkflowGridRequest{
					Project: s.Project(), Workflow: args[0], Version: version, Runs: count,
				}, "show the grid of workflow %q", args[0])
			if err != nil {
				return err
			}
			return printGrid(s, response)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "only runs of this `version`")
	cmd.Flags().Int32Var(&count, "runs", 0, "at most this many runs, up to 50; 30 when not given")
	s.BindClient(cmd)
	return cmd
}

func printGrid(s *invocation.Invocation, g *signalboxv1.GetWorkflowGridResponse) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), g)
	}
	if len(g.GetRuns()) == 0 {
		s.Note("there are no such runs in project %s", s.Project())
		return nil
	}
	rows := make([]output.Row, len(g.GetTasks()))
	for i, t := range g.GetTasks() {
		rows[i] = output.Cells("TASK", t.GetTask())
	}
	for n, r := range g.GetRuns() {
		s.Note("%s", gridRun(n+1, r))
		for i := range rows {
			rows[i] = append(rows[i], output.Cell{Head: fmt.Sprint(n + 1), Value: notReached})
		}
	}
	for _, c := range g.GetCells() {
		rows[c.GetTask()][c.GetRun()+1].Value = cellText(c)
	}
	return output.Rows(s.Out, s.Format(), s.Style(), rows)
}

func gridRun(number int, r *signalboxv1.GridRun) string {
	parts := []string{fmt.Sprint(number), r.GetId(), r.GetVersion(), r.GetStatus()}
	if r.GetDuration() != nil {
		parts = append(parts, output.Took(r.GetDuration().AsDuration()))
	}
	if r.GetPartial() {
		parts = append(parts, "(only the first and the last 1000 steps)")
	}
	return strings.Join(parts, " ")
}

// cellText writes the status of a cell as a letter, and the number of its steps if there are several.
func cellText(c *signalboxv1.GridCell) string {
	letters := map[string]string{
		"failed": "F", "canceled": "x", "waiting": "w", "running": "r", "completed": "C", "skipped": "s"}
	text, ok := letters[c.GetStatus()]
	if !ok {
		text = c.GetStatus()
	}
	if c.GetCount() > 1 {
		text += fmt.Sprint(c.GetCount())
	}
	return text
}
