package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// runRow is as much of a run as decides what an update does to it.
type runRow struct {
	id, project   string
	status        run.Status
	sequence      int64
	position      int64
	statePosition int64
	executionID   string
	// left are the executions that a reset left behind, separated by spaces.
	left      string
	createdAt time.Time
	startedAt time.Time
}

// runUpdates is what one call has to say about one run: its updates by position, and of each step the newest.
type runUpdates struct {
	id      string
	updates []run.Update
	steps   []run.Step
	// summary is what the updates say of steps without rows, stored what the database does; nil where there is none.
	summary, stored *run.StepSummary
}

// group sorts updates by run. Runs are in order of their IDs, in which their rows get locked: two calls that share runs
// then wait for each other instead of each holding what the other needs.
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

// keep leaves only what the run's own executions say. An execution at the same place in the chain as the one that the row
// shows, but another one, comes from a reset in Temporal: its positions do not compare with the row's, which
// follows it by [Store.FollowExecution] alone. What the execution before the reset says late must not undo that.
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

// newestSteps keeps the newest of each step, and of several of one workflow task the last.
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

// outcome is what updates make of a run's row.
type outcome struct {
	before, after runRow
	// state is nil when the state stays.
	state *run.State
	// steps tells whether steps changed, which the database finds out.
	steps bool
}

// changed tells whether anyone who looks at the run sees a difference.
func (o outcome) changed() bool {
	return o.state != nil || o.steps || !o.after.startedAt.Equal(o.before.startedAt)
}

// advance applies updates, sorted by position, to a row.
//
// A state counts against the position of the last state and not of the last update: an update without a state, come
// early, may not hide the state that was before it. The earliest start that any state tells of is the run's: later ones
// do not know it. A terminal row stays as it is, but for a start that is reported late, as its late steps are. A partial update
// does not move the row: what is left of it comes with the same position.
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

// earliest of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
