package runcmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// lines is the view of logs and pipes: one line for each change, never taken back.
type lines struct {
	w     io.Writer
	style output.Style
	run   string           // the run's last line, so that it is not repeated
	steps map[int64]string // each step's last status
	last  time.Time        // of the line before: no line has an earlier time
}

func newLines(w io.Writer, style output.Style) *lines {
	return &lines{w: w, style: style, steps: map[int64]string{}}
}

func (l *lines) print(text string) {
	_ = terminal.Draw(l.w, text+"\n") // a reader that hung up does not end the run
}

func (l *lines) update(message *signalboxv1.WatchRunResponse) {
	for _, step := range message.GetSteps() {
		if status := stepStatus(step); l.steps[step.GetNumber()] != status {
			l.steps[step.GetNumber()] = status
			l.change(stepTime(step), stepText(step, l.style))
		}
	}
	if summary := message.GetSummary(); summary != nil {
		maps.DeleteFunc(l.steps, func(n int64, _ string) bool { return n >= summary.GetFrom() && n <= summary.GetTo() })
		l.print(fmt.Sprintf("steps %d to %d are summarized", summary.GetFrom(), summary.GetTo()))
	}
	if run := message.GetRun(); run != nil {
		if text := runText(run, l.style); text != l.run {
			l.run = text
			l.change(runTime(run), text)
		}
	}
}

// change prints a change at its time, or at that of the line before, if that is later: a run that waits again began
// earlier.
func (l *lines) change(at time.Time, text string) {
	if at.After(l.last) {
		l.last = at
	} else if !at.IsZero() {
		at = l.last
	}
	l.print(clock(at) + " " + text)
}

func (l *lines) lost(address string) {
	l.print("connection lost; waiting for Signalbox at " + address + " (the run continues)")
}

func (l *lines) found() { l.print("connected again") }

// screen is the view of a terminal: the newest steps and the run's status, redrawn in place.
type screen struct {
	w     io.Writer
	style output.Style
	width int

	run    string
	notice string
	steps  []*signalboxv1.Step // in order of entry
	counts map[string]int64    // steps that are not listed any more, by the pointer of their task
	drawn  int                 // lines on the screen that the next drawing replaces
}

// screenSteps is how many steps are shown; older ones are counted.
const screenSteps = 15

func newScreen(w io.Writer, style output.Style, width int) *screen {
	return &screen{w: w, style: style, width: width, counts: map[string]int64{}}
}

func (s *screen) update(message *signalboxv1.WatchRunResponse) {
	for _, step := range message.GetSteps() {
		s.put(step)
	}
	if summary := message.GetSummary(); summary != nil {
		for _, t := range summary.GetTasks() {
			s.counts[t.GetPointer()] = t.GetCount()
		}
		s.steps = slices.DeleteFunc(s.steps, func(step *signalboxv1.Step) bool { return replaced(summary, step) })
	}
	if run := message.GetRun(); run != nil {
		s.run = clock(runTime(run)) + " " + runText(run, output.Style{})
	}
	s.draw()
}

// put replaces the step of the same number. Changes are to new steps mostly, so it looks from the end.
func (s *screen) put(step *signalboxv1.Step) {
	at := len(s.steps)
	for at > 0 && s.steps[at-1].GetNumber() > step.GetNumber() {
		at--
	}
	if at > 0 && s.steps[at-1].GetNumber() == step.GetNumber() {
		s.steps[at-1] = step
		return
	}
	s.steps = append(s.steps, nil)
	copy(s.steps[at+1:], s.steps[at:])
	s.steps[at] = step
}

func (s *screen) lost(address string) {
	s.notice = "connection lost; waiting for Signalbox at " + address + " (the run continues)"
	s.draw()
}

func (s *screen) found() {
	s.notice = ""
	s.draw()
}

func (s *screen) draw() {
	shown := s.steps
	var text strings.Builder
	var rows []string
	if hidden := len(shown) - screenSteps; hidden > 0 {
		earlier := int64(hidden)
		for _, n := range s.counts {
			earlier += n
		}
		rows = append(rows, "… "+output.Count(earlier, "earlier step"))
		shown = shown[hidden:]
	}
	for _, step := range shown {
		rows = append(rows, clock(stepTime(step))+" "+stepText(step, output.Style{}))
	}
	rows = append(rows, s.run)
	if s.notice != "" {
		rows = append(rows, s.notice)
	}
	for _, row := range rows {
		text.WriteString(s.paint(cut(terminal.Line(row), s.width)) + "\n")
	}
	if s.drawn > 0 {
		_ = terminal.Redraw(s.w, s.drawn, text.String()) // a reader that hung up does not end the run
	} else {
		_ = terminal.Draw(s.w, text.String()) // as above
	}
	s.drawn = len(rows)
}

// paint colours a line's status after cutting, so that no escape is cut in two. Statuses are the third word.
func (s *screen) paint(row string) string {
	words := strings.SplitAfterN(row, " ", 4)
	if len(words) < 4 {
		return row
	}
	status := strings.TrimSpace(words[2])
	return words[0] + words[1] + s.style.Status(status) + words[2][len(status):] + words[3]
}

func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(0, width-1)]) + "…"
}

func runTime(run *signalboxv1.Run) time.Time {
	return firstTime(run.GetEndTime(), run.GetStartTime(), run.GetCreateTime())
}

func runText(run *signalboxv1.Run, style output.Style) string {
	line := "run " + style.Status(run.GetStatus())
	if detail := statusDetail(run); detail != "" {
		line += " (" + detail + ")"
	}
	line += " " + terminal.Line(run.GetWorkflow()) + " " + terminal.Line(run.GetVersion())
	if runError := run.GetError(); runError != nil {
		line += ": " + errorLine(runError)
	}
	return line
}

func stepTime(step *signalboxv1.Step) time.Time {
	return firstTime(step.GetEndTime(), step.GetStartTime())
}

func stepText(step *signalboxv1.Step, style output.Style) string {
	line := fmt.Sprintf("%d %s %s (%s)", step.GetNumber(), style.Status(step.GetStatus()), terminal.Line(step.GetTask()),
		step.GetKind())
	if step.GetStatus() == statusWaiting && step.GetWaitingKind() != "" {
		line += " (" + step.GetWaitingKind() + until(step) + ")"
	}
	if n := lastAttempt(step); n > 1 {
		line += fmt.Sprintf(" try %d", n)
	}
	if took := output.Between(step.GetStartTime(), step.GetEndTime()); took != "" {
		line += " " + took
	}
	line += " " + terminal.Line(step.GetPath())
	if runError := step.GetError(); runError != nil {
		line += ": " + errorLine(runError)
	}
	return line
}

// firstTime returns the first time that is known, zero if none is.
func firstTime(times ...*timestamppb.Timestamp) time.Time {
	for _, t := range times {
		if t != nil {
			return t.AsTime()
		}
	}
	return time.Time{}
}

// clock is the time of day; for one that is not known it is as long, so that lines align.
func clock(t time.Time) string {
	if t.IsZero() {
		return "--:--:--"
	}
	return t.Format(time.TimeOnly)
}

// stepStatus is everything about a step that is worth a new line.
func stepStatus(step *signalboxv1.Step) string {
	return fmt.Sprint(step.GetStatus(), step.GetWaitingKind(), lastAttempt(step))
}

// lastAttempt is the number of the newest attempt; 0 where none is recorded. Only the newest 50 are.
func lastAttempt(step *signalboxv1.Step) int {
	attempts := step.GetAttempts()
	if len(attempts) == 0 {
		return 0
	}
	return max(len(attempts), int(attempts[len(attempts)-1].GetNumber()))
}

// tries is how often a step was tried: not at all where it was skipped, once where no attempts are recorded for its
// kind of task.
func tries(step *signalboxv1.Step) string {
	if step.GetStatus() == "skipped" {
		return ""
	}
	return fmt.Sprint(max(1, lastAttempt(step)))
}

func until(step *signalboxv1.Step) string {
	if step.GetWaitUntil() == nil {
		return ""
	}
	return " until " + step.GetWaitUntil().AsTime().Format("15:04:05Z07:00")
}

func errorLine(runError *signalboxv1.RunError) string {
	line := runError.GetTitle()
	if line == "" {
		line = runError.GetType()
	}
	if runError.GetStatus() != 0 {
		line = fmt.Sprintf("%d %s", runError.GetStatus(), line)
	}
	if runError.GetDetail() != "" {
		line += ": " + runError.GetDetail()
	}
	if runError.GetInstance() != "" {
		line += " (at " + runError.GetInstance() + ")"
	}
	return terminal.Line(line)
}
