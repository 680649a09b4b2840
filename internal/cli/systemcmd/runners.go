package systemcmd

import (
	"strings"
	"time"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// printRunners prints the runners of the projects that permit programs; nothing where none does.
func printRunners(s *invocation.Invocation, status *signalboxv1.GetStatusResponse, now time.Time) error {
	if text := status.GetRunnersError(); text != "" {
		if err := write(s.Out, "\nprojects that permit programs: "+terminal.Line(text)+"\n"); err != nil {
			return err
		}
	}
	var rows []output.Row
	for _, q := range status.GetRunners() {
		rows = append(rows, runnerRows(q, now)...)
	}
	if len(rows) == 0 {
		return nil
	}
	if err := write(s.Out, "\nrunners of the projects that permit programs\n"); err != nil {
		return err
	}
	if err := output.Rows(s.Out, s.Format(), s.Style(), rows); err != nil {
		return err
	}
	if status.GetMoreRunners() {
		return write(s.Out, "more projects permit programs; their runners were not read\n")
	}
	return nil
}

// runnerRows returns a row for each runner of a project, or one that says that there is none.
func runnerRows(q *signalboxv1.RunnerQueue, now time.Time) (rows []output.Row) {
	row := func(id, polled, polls string) {
		rows = append(rows, output.Cells(
			"PROJECT", q.GetProject(), "PERMITS", strings.Join(q.GetKinds(), ","), "RUNNER", id, "LAST POLL", polled,
			"POLLING", polls, "+TASK QUEUE", q.GetName(), "ERROR", q.GetError(),
		))
	}
	switch {
	case q.GetError() != "":
		row("unknown", "unknown", "unknown")
	case len(q.GetRunners()) == 0:
		row("none", "none known", "no")
	}
	for _, r := range q.GetRunners() {
		row(r.GetServerId(), ago(r.GetLastPollTime(), now), yes(r.GetPolling()))
	}
	return rows
}
