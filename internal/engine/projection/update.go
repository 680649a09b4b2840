package projection

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// add puts the interpreter's records into an update. A later record of a step replaces an earlier one.
func add(u *run.Update, position int64, r *interp.RunRecord, steps []interp.StepRecord) {
	u.Position = max(u.Position, position)
	if r != nil {
		before := u.State
		u.State = state(r)
		u.State.StartedAt = startedAt(before, r, steps)
	}
	for i := range steps {
		u.Steps = append(u.Steps, step(&steps[i], position))
	}
}

// merge puts a later update of the same run on top of an earlier one.
func merge(u *run.Update, later run.Update) {
	if later.Position >= u.Position {
		u.Position, u.ExecutionID = later.Position, later.ExecutionID
		if later.State != nil {
			before := u.State
			u.State = later.State
			if before != nil {
				u.State.StartedAt = before.StartedAt
			}
		}
	}
	u.Steps = append(u.Steps, later.Steps...)
	u.Sensitive = union(u.Sensitive, later.Sensitive)
}

// union is all that is in either of two lists of texts. The later one of an execution begins with the earlier one.
func union(earlier, later []string) []string {
	if len(earlier) == 0 || len(earlier) <= len(later) && slices.Equal(earlier, later[:len(earlier)]) {
		return later
	}
	both := slices.Concat(earlier, later)
	slices.Sort(both)
	return slices.Compact(both)
}

// compact keeps the newest entry of every step, in order of number of first mention.
func compact(u *run.Update) {
	index := make(map[int64]int, len(u.Steps))
	kept := u.Steps[:0]
	for _, s := range u.Steps {
		at, seen := index[s.Number]
		switch {
		case !seen:
			index[s.Number] = len(kept)
			kept = append(kept, s)
		case s.Position >= kept[at].Position:
			kept[at] = s
		}
	}
	u.Steps = kept
}

func state(r *interp.RunRecord) *run.State {
	s := &run.State{
		Status: run.Status(r.Status), WaitingKind: r.WaitKind, Since: r.Since,
		Output: r.Output, Error: r.Error, StepsTotal: r.StepsTotal, StepsDone: r.StepsDone,
	}
	if s.Status.Terminal() {
		s.EndedAt = r.Since
	}
	return s
}

// startedAt is when the run was first executed, as far as an update can tell: what is known already, else the entry into
// the first step, else the beginning of the status.
func startedAt(before *run.State, r *interp.RunRecord, steps []interp.StepRecord) time.Time {
	if before != nil {
		return before.StartedAt
	}
	for i := range steps {
		if steps[i].Number == 1 {
			return steps[i].StartedAt
		}
	}
	return r.Since
}

func step(r *interp.StepRecord, position int64) run.Step {
	s := run.Step{
		Number: r.Number, Path: r.Path, Pointer: r.Pointer, Task: r.Task, Kind: r.Kind, Status: string(r.Status),
		WaitingKind: r.WaitKind, WaitUntil: deref(r.WaitUntil), StartedAt: r.StartedAt, EndedAt: deref(r.EndedAt),
		Input: r.Input, Output: r.Output, Error: r.Error, Position: position,
		InputShown: r.InputShown, OutputShown: r.OutputShown,
	}
	for _, a := range r.Attempts {
		s.Attempts = append(s.Attempts, run.Attempt{Number: a.Number, StartedAt: a.StartedAt, EndedAt: a.EndedAt, Error: a.Error})
	}
	return s
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Join puts the records of a later execution of a run behind those of an earlier one.
func Join(earlier, later run.Update) run.Update {
	if earlier.RunID == "" {
		return later
	}
	merge(&earlier, later)
	compact(&earlier)
	return earlier
}

// Close ends an update with a state that did not come from the interpreter: steps that were open end with it.
func Close(u run.Update, final run.State) run.Update {
	if u.State != nil {
		final.StepsTotal, final.StepsDone, final.StartedAt = u.State.StepsTotal, u.State.StepsTotal, u.State.StartedAt
	}
	u.State = &final
	u.Position++
	for i := range u.Steps {
		if s := &u.Steps[i]; s.EndedAt.IsZero() {
			s.Status, s.WaitingKind, s.WaitUntil, s.EndedAt, s.Position = "canceled", "", time.Time{}, final.EndedAt, u.Position
		}
	}
	return u
}
