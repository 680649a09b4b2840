package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// runRow is the part of a run that determines the outcome of an update.
type runRow struct {
	id, project string
	// workflow, version and trigger are those of the run, for its failure group.
	workflow, version, trigger string
	status                     run.Status
	sequence                   int64
	position                   int64
	statePosition              int64
	executionID                string
	// left are the executions that a reset replaced, separated by spaces.
	left      string
	createdAt time.Time
	startedAt time.Time
}

// runUpdates are the updates of one call for one run, sorted by position, and the newest update of each step.
type runUpdates struct {
	id      string
	updates []run.Update
	steps   []run.Step
	// summary is the summary in the updates of steps without rows, stored the one in the database; nil if there is
	// none.
	summary, stored *run.StepSummary
}

// group groups updates by run. Runs are sorted by ID, which is the order in which their rows are locked, so that two
// calls that share runs cannot deadlock.
func group(updates []run.Update) []runUpdates {
	byRun := map[string][]run.Update{}
	for _, u := range updates {
		byRun[u.RunID] = append(byRun[u.RunID], u)
	}
	groups := make([]runUpdates, 0, len(byRun))
	for _, id := range slices.Sorted(maps.Keys(byRun)) {
		list := byRun[id]
		slices.SortStableFunc(list, func(a, b run.Update) int { return cmp.Compare(a.Position, b.Position) })
		groups = append(groups, runUpdates{id: id, updates: list})
	}
	return groups
}

// keep removes the updates of executions that the row does not follow. Another execution with the same number in the
// chain as the one in the row comes from a reset in Temporal: its positions are not comparable with the row's, and the
// row follows it through [Store.FollowExecution] alone. Late updates of the execution before the reset must not undo
// that.
func (g *runUpdates) keep(row runRow) {
	left := strings.Fields(row.left)
	position, execution := row.position, row.executionID
	own := g.updates[:0]
	for _, u := range g.updates {
		strange := position > 0 && execution != "" && u.ExecutionID != "" && u.ExecutionID != execution &&
			run.Chain(u.Position) == run.Chain(position)
		if strange || slices.Contains(left, u.ExecutionID) {
			continue
		}
		if u.Position > position {
			position = u.Position
			if u.ExecutionID != "" {
				execution = u.ExecutionID
			}
		}
		own = append(own, u)
	}
	g.updates, g.steps = own, newestSteps(own)
}

// newestSteps returns the newest update of each step; of several from one workflow task, the last.
func newestSteps(updates []run.Update) []run.Step {
	newest := map[int64]run.Step{}
	for _, u := range updates {
		for _, t := range u.Steps {
			if have, ok := newest[t.Number]; !ok || t.Position >= have.Position {
				newest[t.Number] = t
			}
		}
	}
	steps := make([]run.Step, 0, len(newest))
	for _, number := range slices.Sorted(maps.Keys(newest)) {
		steps = append(steps, newest[number])
	}
	return steps
}

// outcome is the effect of updates on a run's row.
type outcome struct {
	before, after runRow
	// state is nil if the state does not change.
	state *run.State
	// steps reports whether steps changed, which the database determines.
	steps bool
}

// changed reports whether the change is visible to a reader of the run.
func (o outcome) changed() bool {
	return o.state != nil || o.steps || !o.after.startedAt.Equal(o.before.startedAt)
}

// ending returns what an event that reports the end of the run has of it.
func (o outcome) ending() run.Run {
	at := o.state.EndedAt
	if at.IsZero() {
		at = o.state.Since
	}
	return run.Run{
		ID: o.after.id, Project: o.after.project, Workflow: o.after.workflow, Version: o.after.version,
		Trigger: o.after.trigger, Status: o.after.status,
		CreatedAt: o.after.createdAt, StartedAt: sqlrow.Kept(o.after.startedAt), EndedAt: sqlrow.Kept(at),
		Error: o.state.Error,
	}
}

// advance applies updates, sorted by position, to a row.
//
// A state is compared with the position of the last state and not of the last update: an update without a state that
// arrives early must not hide the state before it. The earliest start in any state is that of the run: later states do
// not have it. A terminal row does not change, except for a start that is reported late, and for its late steps. A
// partial update does not move the row: the rest of it arrives with the same position.
func advance(row runRow, updates []run.Update) outcome {
	o := outcome{before: row, after: row}
	for _, u := range updates {
		if u.State != nil {
			o.after.startedAt = earliest(o.after.startedAt, u.State.StartedAt)
		}
		if o.after.status.Terminal() || u.Partial {
			continue
		}
		if u.Position > o.after.position {
			o.after.position = u.Position
			if u.ExecutionID != "" {
				o.after.executionID = u.ExecutionID
			}
		}
		if u.State != nil && u.Position > o.after.statePosition {
			o.after.statePosition, o.after.status = u.Position, u.State.Status
			o.state = u.State
		}
	}
	return o
}

// earliest returns the earlier of two times; the zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
