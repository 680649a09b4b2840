package run

import (
	"cmp"
	"slices"
	"time"
)

// StepSummary represents the steps of a run that have no rows of their own: all between the first and the last ones,
// except for open steps and some that failed.
type StepSummary struct {
	// From and To are the numbers of the first and the last step in this range.
	From, To int64
	// Open are the numbers of the steps in the range that have not ended yet, ascending.
	Open []int64
	// Tasks counts the steps without rows, by pointer. An update may omit tasks that did not change.
	Tasks []TaskSummary
	// Position is the position in Temporal's history that From, To and Open were last written from.
	Position int64
}

// TaskSummary counts the steps of one task that have no rows. Counts only grow.
type TaskSummary struct {
	Pointer, Task, Kind                  string
	Count                                int64
	Completed, Failed, Skipped, Canceled int64
	// Shortest, Longest and Total are durations of steps, in whole microseconds.
	Shortest, Longest, Total time.Duration
	// Sequence is the run's sequence at which the count last changed; it is only read, never written.
	Sequence int64
}

// Steps returns the number of steps that have no rows.
func (s *StepSummary) Steps() (n int64) {
	if s == nil {
		return 0
	}
	for _, t := range s.Tasks {
		n += t.Count
	}
	return n
}

// Newer reports whether s describes a later state of the run than other.
func (s *StepSummary) Newer(other *StepSummary) bool {
	return other == nil || cmp.Or(cmp.Compare(s.To, other.To), cmp.Compare(s.Position, other.Position)) > 0
}

// Replaces reports whether a step no longer has a row of its own.
func (s *StepSummary) Replaces(t *Step) bool {
	if s == nil || t.Number < s.From || t.Number > s.To {
		return false
	}
	_, open := slices.BinarySearch(s.Open, t.Number)
	return !t.Kept || t.EndedAt.IsZero() && !open
}

// Merge returns the union of two summaries of one run, in whatever order they arrive. It changes neither.
func (s *StepSummary) Merge(other *StepSummary) *StepSummary {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	}
	merged := *s
	if !s.Newer(other) {
		merged = *other
	}
	merged.Tasks = slices.Concat(s.Tasks, other.Tasks)
	slices.SortFunc(merged.Tasks, func(x, y TaskSummary) int {
		return cmp.Or(cmp.Compare(x.Pointer, y.Pointer), cmp.Compare(y.Count, x.Count))
	})
	merged.Tasks = slices.CompactFunc(merged.Tasks, func(x, y TaskSummary) bool { return x.Pointer == y.Pointer })
	return &merged
}

// Approximate sizes of a step and an attempt without their texts.
const (
	stepSize    = 512
	attemptSize = 256
)

// Size returns about how many bytes of memory the update takes.
func (u *Update) Size() int {
	n := stepSize
	for i := range u.Steps {
		n += u.Steps[i].Size()
	}
	for i := range u.Logs {
		n += stepSize + len(u.Logs[i].Stdout.Text) + len(u.Logs[i].Stderr.Text)
	}
	if u.State != nil {
		n += len(u.State.Output)
	}
	if u.Summary != nil {
		n += 8*len(u.Summary.Open) + stepSize*len(u.Summary.Tasks)
	}
	return n
}

// Size returns about how many bytes of memory the step takes.
func (t *Step) Size() int {
	return stepSize + len(t.Path) + len(t.Input) + len(t.Output) + len(t.InputShown) + len(t.OutputShown) +
		attemptSize*len(t.Attempts)
}
