package runcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func waitsCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "waits ID",
		Short: "List what an open run waits for",
		Long: `List what an open run waits for: first what holds the run as a whole, then its open steps in the order they were entered. DETAIL
says since when, when the wait is due and until when at most. JSON and YAML hold the awaited events and runs as well.`,
		Example:           `  signalbox run waits 0199a4f2`,
		Args:              invocation.Args(1, 1, "ID"),
		ValidArgsFunction: s.CompleteRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return listWaits(cmd.Context(), s, args[0]) },
	}
	s.BindRuns(cmd, 1)
	return cmd
}

func listWaits(ctx context.Context, s *invocation.Invocation, id string) error {
	request := &signalboxv1.ListWaitsRequest{Project: s.Project(), Id: id}
	found, _, err := invocation.Pages(0, func(size int32, token string) ([]*signalboxv1.Wait, string, error) {
		request.PageSize, request.PageToken = size, token
		response, err := invocation.Call(ctx, s, s.Runs().ListWaits, request, "list what run %q waits for", id)
		return response.GetWaits(), response.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.Wait]{
		Thing: "wait", None: "the run waits for nothing",
		Row: func(w *signalboxv1.Wait) output.Row {
			step := ""
			if w.GetStep() > 0 {
				step = fmt.Sprint(w.GetStep())
			}
			return output.Cells(
				"STEP", step, "TASK", terminal.Line(w.GetTask()), "KIND", w.GetKind(), "DETAIL", waitLine(w, s.Now()),
				"+SINCE", output.Moment(w.GetSince()), "+PATH", terminal.Line(w.GetPath()),
			)
		},
	}.Print(s, found, false)
}

// mostWaits is how many waits a card shows.
const mostWaits = 20

// waitLines says what a run waits for, in a line each. The command all lists those that are not among them.
func waitLines(run *signalboxv1.Run, now time.Time, all string) string {
	waits := run.GetWaits()
	lines := make([]string, 0, mostWaits+1)
	for _, w := range waits[:min(len(waits), mostWaits)] {
		line := waitLine(w, now)
		if w.GetStep() > 0 {
			line = fmt.Sprintf("step %d %s: %s", w.GetStep(), terminal.Line(w.GetTask()), line)
		}
		lines = append(append(append(lines, line), retryLines(w, now)...), nearLines(w, now)...)
	}
	switch rest := len(waits) - mostWaits; {
	case run.GetMoreWaits():
		lines = append(lines, "and more: "+all)
	case rest > 0:
		lines = append(lines, fmt.Sprintf("and %d more: %s", rest, all))
	}
	return strings.Join(lines, "\n")
}

// retryLines says that the task of a wait, or one around it, failed and is attempted again.
func retryLines(w *signalboxv1.Wait, now time.Time) []string {
	r := w.GetRetry()
	if r == nil {
		return nil
	}
	line := fmt.Sprintf("  %s: %d attempts failed", r.GetTask(), r.GetFailed())
	if r.GetLimit() > 0 {
		line = fmt.Sprintf("  %s: %d of at most %d attempts failed", r.GetTask(), r.GetFailed(), r.GetLimit())
	}
	if r.GetSince() != nil {
		line += " in " + output.Span(now.Sub(r.GetSince().AsTime()))
	}
	if e := r.GetLastError(); e != nil {
		line += ": " + strings.Join(slices.DeleteFunc([]string{e.GetTitle(), e.GetDetail()}, func(part string) bool {
			return part == ""
		}), ": ")
	}
	return []string{terminal.Line(line)}
}

// nearLines says which events of the awaited types the run has not taken, in a line each.
func nearLines(w *signalboxv1.Wait, now time.Time) []string {
	var lines []string
	for _, e := range w.GetNear() {
		lines = append(lines, terminal.Line(fmt.Sprintf("  not event %s of %s, %s ago: %s",
			e.GetId(), e.GetSource(), output.Span(now.Sub(e.GetReceiveTime().AsTime())), e.GetReason())))
	}
	return lines
}

// waitLine is a line such as: event com.example.paid with orderId = 4711, since 12s, until 2026-11-23T10:00:00Z.
func waitLine(w *signalboxv1.Wait, now time.Time) string {
	line := w.GetWhat()
	if w.GetSince() != nil {
		line += ", since " + output.Span(now.Sub(w.GetSince().AsTime()))
	}
	if due := w.GetDueTime(); due != nil {
		if left := due.AsTime().Sub(now); left >= 0 {
			line += ", due in " + output.Span(left)
		} else {
			line += ", due " + output.Span(-left) + " ago"
		}
	}
	switch at := output.Moment(w.GetDeadline()); {
	case at != "" && w.GetDeadlineUnknown():
		line += ", until " + at + " at the latest"
	case at != "":
		line += ", until " + at
	case w.GetDeadlineUnknown():
		line += ", deadline unknown"
	}
	return terminal.Line(line)
}

// stepDetail says what an open step waits for, or why the catch of a failed try did not handle the error.
func stepDetail(step *signalboxv1.Step, now time.Time) string {
	if w := step.GetWait(); w != nil {
		return waitLine(w, now)
	}
	return terminal.Line(step.GetUncaught())
}
