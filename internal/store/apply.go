package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ApplyUpdates implements [sealed.Store]. Late steps of a run that has ended are still written, and increase its
// sequence so that watchers receive them; its state does not change.
func (s *Store) ApplyUpdates(ctx context.Context,
	updates []sealed.Sealed[run.Update]) (transitions []run.Transition, err error) {
	if len(updates) == 0 {
		return nil, nil
	}
	err = s.db.Write(ctx, "apply updates", func(ctx context.Context, c sqldb.Conn) (err error) {
		_, transitions, err = s.applyUpdates(ctx, c, sealed.Values(updates))
		return err
	})
	if err != nil {
		return nil, err
	}
	s.notifyEnded(transitions)
	return transitions, nil
}

// notifyEnded reports the projects of runs that have ended to OnAdmissible.
func (s *Store) notifyEnded(transitions []run.Transition) {
	for _, t := range transitions {
		if t.To.Terminal() {
			s.notifyAdmissible(t.Project)
		}
	}
}

// applyUpdates returns the outcome for each run that has a row, and the changes of status among them.
func (s *Store) applyUpdates(ctx context.Context, c sqldb.Conn,
	updates []run.Update) ([]outcome, []run.Transition, error) {
	groups := group(updates)
	rows, err := s.lockRuns(ctx, c, groups)
	if err != nil {
		return nil, nil, err
	}
	outcomes := make([]outcome, 0, len(rows))
	for i := range groups {
		if row, known := rows[groups[i].id]; known {
			groups[i].keep(row)
			outcomes = append(outcomes, advance(row, groups[i].updates))
		}
	}
	touched, kept, err := s.writeSteps(ctx, c, groups, rows)
	if err != nil {
		return nil, nil, err
	}
	// After the originals of steps are written: those of the deleted rows are removed with them.
	if err := runrow.WriteOriginals(ctx, c, s.db.Dialect(),
		append(kept, updateOriginals(groups, rows, outcomes)...)); err != nil {
		return nil, nil, err
	}
	if err := endSteps(ctx, c, groups, rows, touched); err != nil {
		return nil, nil, err
	}
	if err := s.writeLogs(ctx, c, groups, rows); err != nil {
		return nil, nil, err
	}
	if err := s.writeSummaries(ctx, c, groups, rows, touched); err != nil {
		return nil, nil, err
	}
	for i := range outcomes {
		outcomes[i].steps = touched[outcomes[i].before.id]
	}
	transitions, err := s.writeRuns(ctx, c, outcomes)
	return outcomes, transitions, err
}

// updateOriginals returns the originals of the states that were written, and the values found sensitive in runs that
// have a row.
func updateOriginals(groups []runUpdates, rows map[string]runRow, outcomes []outcome) (list []runrow.OriginalRow) {
	for _, g := range groups {
		if _, known := rows[g.id]; !known {
			continue
		}
		for _, u := range g.updates {
			if u.Secrets != nil {
				list = append(list, runrow.OriginalRows(g.id, *u.Secrets)...)
			}
		}
	}
	for _, o := range outcomes {
		if o.state != nil && o.state.Original != nil {
			list = append(list, runrow.OriginalRows(o.after.id, *o.state.Original)...)
		}
	}
	return list
}

// lockRuns reads the rows and locks them until the transaction ends.
func (s *Store) lockRuns(ctx context.Context, c sqldb.Conn, groups []runUpdates) (map[string]runRow, error) {
	rows := make(map[string]runRow, len(groups))
	for part := range sqlrow.Chunks(groups) {
		ids := make([]any, len(part))
		for i, g := range part {
			ids[i] = g.id
		}
		found, err := sqlrow.Collect(ctx, c, `SELECT id, project, status, sequence, position, state_position, execution_id,
left_executions, created_at, started_at, workflow, version, trigger_kind FROM runs
WHERE id IN `+sqlrow.Tuples(s.db.Dialect(), 0, 1, len(ids))+` ORDER BY id`+s.db.Dialect().LockRows,
			ids, scanRow)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			rows[r.id] = r
		}
	}
	return rows, nil
}

func scanRow(row sqlrow.Scanner) (r runRow, err error) {
	err = row.Scan(&r.id, &r.project, &r.status, &r.sequence, &r.position, &r.statePosition, &r.executionID, &r.left,
		sqlrow.TimeInto(&r.createdAt), sqlrow.TimeInto(&r.startedAt), &r.workflow, &r.version, &r.trigger)
	return r, err
}

// newStep is a step with its run and its new sequence.
type newStep struct {
	run      string
	sequence int64
	step     run.Step
}

// writeSteps writes the steps that are newer than the stored ones. It returns the runs with written steps, and the
// originals of these steps.
func (s *Store) writeSteps(
	ctx context.Context, c sqldb.Conn, groups []runUpdates, rows map[string]runRow,
) (map[string]bool, []runrow.OriginalRow, error) {
	if err := s.summarize(ctx, c, groups, rows); err != nil {
		return nil, nil, err
	}
	var steps []newStep
	for _, g := range groups {
		row, known := rows[g.id]
		if !known {
			continue
		}
		for _, t := range g.steps {
			steps = append(steps, newStep{run: g.id, sequence: row.sequence + 1, step: t})
		}
	}
	touched, kept := map[string]bool{}, []runrow.OriginalRow(nil)
	hidden := map[stepID]*run.Original{}
	for _, n := range steps {
		if n.step.Original != nil {
			hidden[stepID{n.run, n.step.Number}] = n.step.Original
		}
	}
	written, err := sqlrow.Returning(ctx, c, s.texts.steps, steps, scanStepID)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range written {
		touched[id.run] = true
		if o := hidden[id]; o != nil {
			kept = append(kept, runrow.OriginalRows(id.run, *o)...)
		}
	}
	return touched, kept, nil
}

// endSteps ends the open steps of runs with executions that were ended from outside. A step keeps its position, so that
// updates that Temporal accepted before, and late ones, still apply.
func endSteps(ctx context.Context, c sqldb.Conn, groups []runUpdates, rows map[string]runRow,
	touched map[string]bool) error {
	for _, g := range groups {
		row, known := rows[g.id]
		for _, u := range g.updates {
			if !known || u.State == nil || !u.State.EndsSteps {
				continue
			}
			changed, err := sqlrow.Affected(ctx, c,
				`UPDATE steps SET status = 'canceled', waiting_kind = '', wait_until = NULL, retries = 0, ended_at = $2,
sequence = $3 WHERE run_id = $1
AND status IN ('running', 'waiting')`, g.id, sqlrow.Micros(u.State.EndedAt), row.sequence+1)
			if err != nil {
				return err
			}
			touched[g.id] = touched[g.id] || changed
		}
	}
	return nil
}

// stepID identifies a step.
type stepID struct {
	run    string
	number int64
}

func scanStepID(row sqlrow.Scanner) (id stepID, err error) {
	err = row.Scan(&id.run, &id.number)
	return id, err
}

func (n newStep) fields() sqlrow.Fields {
	t := n.step
	t.Sequence, t.Redacted = n.sequence, t.Original != nil
	return append(runrow.StepFields(&t), sqlrow.Row(
		"run_id", n.run, "wait_details", sqlrow.JSONInto(&t.Wait), "retries", t.Retries(),
	)...)
}

// writeRuns writes the rows that changed, and returns their changes of status.
func (s *Store) writeRuns(ctx context.Context, c sqldb.Conn, outcomes []outcome) ([]run.Transition, error) {
	var states, moved []outcome
	var transitions []run.Transition
	var ended []string
	var endings []run.Run
	for _, o := range outcomes {
		if o.changed() {
			o.after.sequence++
		}
		switch {
		case o.state != nil:
			states = append(states, o)
		case o.after != o.before:
			moved = append(moved, o)
		}
		if o.after.status.Terminal() && !o.before.status.Terminal() {
			ended = append(ended, o.after.id)
			endings = append(endings, o.ending())
		}
		if o.after.status != o.before.status {
			transitions = append(transitions, run.Transition{
				RunID: o.after.id, Project: o.after.project, From: o.before.status, To: o.after.status,
				CreatedAt: o.after.createdAt, StartedAt: sqlrow.Kept(o.after.startedAt),
			})
		}
	}
	if _, err := s.texts.states.Exec(ctx, c, states); err != nil {
		return nil, err
	}
	if _, err := s.texts.moved.Exec(ctx, c, moved); err != nil {
		return nil, err
	}
	if err := events.EndListeners(ctx, c, s.db.Dialect(), ended); err != nil {
		return nil, err
	}
	return transitions, s.reportEnds(ctx, c, endings)
}

// reportEnds writes what follows from the ends of runs: the words of their errors, by which they are found, and the
// events that report failures.
func (s *Store) reportEnds(ctx context.Context, c sqldb.Conn, ended []run.Run) error {
	if err := runrow.AddErrorTerms(ctx, c, s.db.Dialect(), ended); err != nil {
		return err
	}
	return events.ReportRuns(ctx, c, s.db.Dialect(), ended)
}

// movedFields are the columns of a run that any update may change, with the key.
func (o outcome) movedFields() sqlrow.Fields {
	return sqlrow.Row(
		"id", o.after.id, "sequence", o.after.sequence, "position", o.after.position,
		"execution_id", o.after.executionID, "started_at", sqlrow.TimeInto(&o.after.startedAt),
		"written_at", time.Now().UnixMicro(),
	)
}

// stateFields adds those that a new state changes.
func (o outcome) stateFields() sqlrow.Fields {
	reason := ""
	if o.state.Status == run.Queued {
		// Temporal has a run that it reports.
		reason = run.QueuedWorker
	}
	failed := run.Run{Workflow: o.after.workflow, Status: o.state.Status, Trigger: o.after.trigger, Error: o.state.Error}
	return append(o.movedFields(), sqlrow.Row(
		"status", o.state.Status, "queued_reason", reason, "waiting_kind", o.state.WaitingKind,
		"status_at", sqlrow.TimeInto(&o.state.Since), "ended_at", sqlrow.TimeInto(&o.state.EndedAt),
		"steps_total", o.state.StepsTotal, "steps_done", o.state.StepsDone, "state_position", o.after.statePosition,
		"error", sqlrow.JSONInto(&o.state.Error), "output", sqlrow.MendedRawInto(&o.state.Output),
		"failure_group", run.FailureGroup(failed),
	)...)
}
