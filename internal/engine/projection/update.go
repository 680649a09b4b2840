package projection

import (
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// add adds the interpreter's records to an update. A later record of a step replaces an earlier one.
func add(u *run.Update, position int64, r *interp.RunRecord, steps []interp.StepRecord, logs []flow.ProgramLog) {
	u.Position = max(u.Position, position)
	for _, l := range logs {
		u.Logs = append(u.Logs, attemptLog(l))
	}
	if r != nil {
		before := u.State
		u.State = state(r)
		u.State.StartedAt = startedAt(before, r, steps)
		u.Summary = summary(r.Summary, position).Merge(u.Summary)
	}
	for i := range steps {
		if len(u.Steps) == cap(u.Steps) {
			shrink(u)
		}
		u.Steps = append(u.Steps, step(&steps[i], position))
	}
}

// shrink compacts an update that is about to grow, and reserves room for as many steps again. A long run that is
// interpreted at once thus holds about as many steps as have rows.
func shrink(u *run.Update) {
	compact(u)
	u.Steps = slices.Grow(u.Steps, len(u.Steps)+1)
}

// merge applies a later update of the same run to an earlier one.
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
	u.Logs = append(u.Logs, later.Logs...)
	u.Summary = u.Summary.Merge(later.Summary)
	u.Sensitive = union(u.Sensitive, later.Sensitive)
}

// union returns the texts of both lists. The later list of an execution begins with the earlier one.
func union(earlier, later []string) []string {
	if len(earlier) == 0 || len(earlier) <= len(later) && slices.Equal(earlier, later[:len(earlier)]) {
		return later
	}
	both := slices.Concat(earlier, later)
	slices.Sort(both)
	return slices.Compact(both)
}

// compact keeps the newest entry of every step that the summary does not replace, in order of first occurrence.
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
	u.Steps = slices.DeleteFunc(kept, func(s run.Step) bool { return u.Summary.Replaces(&s) })
	clear(u.Steps[len(u.Steps):cap(u.Steps)])
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

// startedAt returns the start of the run, as far as an update determines it: the earlier value, else the entry into the
// first step, else the beginning of the status.
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
		Input: r.Input, Output: r.Output, InputSize: int64(r.InputSize), OutputSize: int64(r.OutputSize), Error: r.Error,
		Position:   position,
		InputShown: r.InputShown, OutputShown: r.OutputShown, Kept: r.Kept,
	}
	if r.Deadline != nil || len(r.Taken) > 0 {
		s.Wait = &run.StepWait{Deadline: deref(r.Deadline), DeadlineBy: r.DeadlineBy}
		for _, t := range r.Taken {
			s.Wait.Taken = append(s.Wait.Taken, run.TakenEvent(t))
		}
	}
	for _, a := range r.Attempts {
		s.Attempts = append(s.Attempts, run.Attempt{
			Number: a.Number, StartedAt: a.StartedAt, EndedAt: a.EndedAt, Error: a.Error, Outcome: a.Outcome,
			HTTPStatus: a.HTTPStatus,
			Method:     a.Method, Host: a.Host, RetryAfter: a.RetryAfter,
		})
	}
	return s
}

func summary(s *interp.Summary, position int64) *run.StepSummary {
	if s == nil {
		return nil
	}
	u := &run.StepSummary{From: s.From, To: s.To, Open: s.Open, Position: position}
	for _, t := range s.Tasks {
		u.Tasks = append(u.Tasks, run.TaskSummary{
			Pointer: t.Pointer, Task: t.Task, Kind: t.Kind, Count: t.Count, Completed: t.Completed, Failed: t.Failed,
			Skipped:  t.Skipped,
			Canceled: t.Canceled, Shortest: t.Shortest, Longest: t.Longest, Total: t.Total,
		})
	}
	return u
}

func attemptLog(l flow.ProgramLog) run.AttemptLog {
	return run.AttemptLog{Step: l.Step, Task: l.Task, Attempt: l.Attempt, Stdout: run.LogStream(l.Stdout),
		Stderr: run.LogStream(l.Stderr)}
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
