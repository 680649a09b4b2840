package run

import (
	"cmp"
	"slices"
	"time"
)

// StepSummary stands for the steps of a run that have no rows of their own: all between the first and the last ones, but for some
// that failed and those that are open.
type StepSummary struct {
	// From and To are the numbers of the first and the last step in between.
	From, To int64
	// Open are the numbers of the steps in between that have not ended yet, ascending.
	Open []int64
	// Tasks count the steps without rows, by pointer. In an update, those that did not change may be left out.
	Tasks []TaskSummary
	// Position is the place in Temporal's history that From, To and Open were last written from.
	Position int64
}

// TaskSummary counts the steps of one task that have no rows. Counts only grow.
type TaskSummary struct {
	Pointer, Task, Kind                  string
	Count                                int64
	Completed, Failed, Skipped, Canceled int64
	// Shortest, Longest and Total are durations of steps, in whole microseconds.
	Shortest, Longest, Total time.Duration
	// Sequence is the run's sequence at which the count last changed; it is read and never given.
	Sequence int64
}

// Steps is the number of steps that have no rows.
func (s *StepSummary) Steps() (n int64) {
	if s == nil {
		return 0
	}
	for _, t := range s.Tasks {
		n += t.Count
	}
	return n
}

// Newer reports whether s describes a later moment of the run than other does.
func (s *StepSummary) Newer(other *StepSummary) bool {
	return other == nil || cmp.Or(cmp.Compare(s.To, other.To), cmp.Compare(s.Position, other.Position)) > 0
}

// Replaces reports whether a step has no row of its own any more.
func (s *StepSummary) Replaces(t *Step) bool {
	if s == nil || t.Number < s.From || t.Number > s.To {
		return false
	}
	_, open := slices.BinarySearch(s.Open, t.Number)
	return !t.Kept || t.EndedAt.IsZero() && !open
}

// Merge returns what two summaries of one run say together, in whatever order they come. It changes neither.
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

// Sizes of what a step and an attempt take beside their texts, about.
const (
	stepSize    = 512
	attemptSize = 256
)

// Size is about how many bytes of memory the update takes.
func (u *Update) Size() int {
	n := stepSize
	for i := range u.Steps {
		n += u.Steps[i].Size()
	}
	if u.State != nil {
		n += len(u.State.Output)
	}
	if u.Summary != nil {
		n += 8*len(u.Summary.Open) + stepSize*len(u.Summary.Tasks)
	}
	return n
}

// Size is about how many bytes of memory the step takes.
func (t *Step) Size() int {
	return stepSize + len(t.Path) + len(t.Input) + len(t.Output) + len(t.InputShown) + len(t.OutputShown) + attemptSize*len(t.Attempts)
}
