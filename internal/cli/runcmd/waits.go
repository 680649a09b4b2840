package runcmd

import (
	"fmt"
	"strings"
	"time"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// mostWaits is how many waits a card shows.
const mostWaits = 20

// waitLines says what a run waits for, in a line each.
func waitLines(run *signalboxv1.Run, now time.Time) string {
	waits := run.GetWaits()
	lines := make([]string, 0, mostWaits+1)
	for _, w := range waits[:min(len(waits), mostWaits)] {
		line := waitLine(w, now)
		if w.GetStep() > 0 {
			line = fmt.Sprintf("step %d %s: %s", w.GetStep(), output.Visible(w.GetTask()), line)
		}
		lines = append(lines, line)
	}
	switch rest := len(waits) - mostWaits; {
	case run.GetMoreWaits():
		lines = append(lines, "and more: signalbox run steps "+run.GetId())
	case rest > 0:
		lines = append(lines, fmt.Sprintf("and %d more: signalbox run steps %s", rest, run.GetId()))
	}
	return strings.Join(lines, "\n")
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
	return output.Visible(line)
}

// stepDetail says what an open step waits for, or why the catch of a failed try did not handle the error.
func stepDetail(step *signalboxv1.Step, now time.Time) string {
	if w := step.GetWait(); w != nil {
		return waitLine(w, now)
	}
	return output.Visible(step.GetUncaught())
}
