package systemcmd

import (
	"maps"
	"slices"
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
	if open := notIsolated(status); len(open) > 0 {
		if err := write(s.Out, s.Style().Status("WARNING")+": "+"programs are executed without isolation, with the files and the "+
			"network of the runner (runner.isolation is none): "+strings.Join(open, ", ")+"\n"); err != nil {
			return err
		}
	}
	if status.GetMoreRunners() {
		return write(s.Out, "more projects permit programs; their runners were not read\n")
	}
	return nil
}

// runnerRows returns a row for each runner of a project, or one that says that there is none.
func runnerRows(q *signalboxv1.RunnerQueue, now time.Time) (rows []output.Row) {
	row := func(id, polled, polls, executes string) {
		rows = append(rows, output.Cells(
			"PROJECT", q.GetProject(), "PERMITS", strings.Join(q.GetKinds(), ","), "RUNNER", id, "LAST POLL", polled,
			"POLLING", polls, "EXECUTES", executes, "+TASK QUEUE", q.GetName(), "ERROR", q.GetError(),
		))
	}
	switch {
	case q.GetError() != "":
		row("unknown", "unknown", "unknown", "unknown")
	case len(q.GetRunners()) == 0:
		row("none", "none known", "no", "")
	}
	for _, r := range q.GetRunners() {
		row(r.GetServerId(), ago(r.GetLastPollTime(), now), yes(r.GetPolling()), executed(r.GetIsolations()))
	}
	return rows
}

// withoutIsolation is the isolation of programs that have the files and the network of the runner.
const withoutIsolation = "none"

// executed returns the kinds of programs that a runner executes, with their isolation, as a text.
func executed(isolations map[string]string) string {
	if len(isolations) == 0 {
		return "unknown"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(isolations)) {
		if isolations[kind] == kind {
			parts = append(parts, kind)
			continue
		}
		parts = append(parts, kind+" ("+isolations[kind]+")")
	}
	return strings.Join(parts, ", ")
}

// notIsolated returns the runners that execute programs without isolation.
func notIsolated(status *signalboxv1.GetStatusResponse) (ids []string) {
	for _, q := range status.GetRunners() {
		for _, r := range q.GetRunners() {
			open := slices.Contains(slices.Collect(maps.Values(r.GetIsolations())), withoutIsolation)
			if id := terminal.Line(r.GetServerId()); open && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
