package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/outbox"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ApplyUpdates implements [sealed.Store]. Late steps of a run that has ended are still written, and increase its
// sequence so that watchers receive them; its state does not change.
func (s *Store) ApplyUpdates(ctx context.Context, updates []sealed.Sealed[run.Update]) (transitions []run.Transition, err error) {
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
func (s *Store) applyUpdates(ctx context.Context, c sqldb.Conn, updates []run.Update) ([]outcome, []run.Transition, error) {
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
	if err := runrow.WriteOriginals(ctx, c, s.db.Dialect(), append(kept, updateOriginals(groups, rows, outcomes)...)); err != nil {
		return nil, nil, err
	}
	if err := endSteps(ctx, c, groups, rows, touched); err != nil {
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

// updateOriginals returns the originals of the states that were written, and the values found sensitive in runs that have a
// row.
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
left_executions, created_at, started_at, workflow, version, trigger_kind FROM runs WHERE id IN `+sqlrow.Tuples(s.db.Dialect(), 0, 1, len(ids))+` ORDER BY id`+s.db.Dialect().LockRows,
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

const stepColumns = 22

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
	for part := range sqlrow.Chunks(steps) {
		args := make([]any, 0, len(part)*stepColumns)
		for _, n := range part {
			values, err := n.values()
			if err != nil {
				return nil, nil, err
			}
			if n.step.Original != nil {
				hidden[stepID{n.run, n.step.Number}] = n.step.Original
			}
			args = append(args, values...)
		}
		written, err := sqlrow.Collect(ctx, c, `INSERT INTO steps (run_id, number, path, pointer, task, kind, status,
waiting_kind, wait_until, started_at, ended_at, sequence, position, error, attempts, input, output, kept, wait_details, input_size, output_size, redacted)
VALUES `+sqlrow.Tuples(s.db.Dialect(), 0, len(part), stepColumns)+`
ON CONFLICT (run_id, number) DO UPDATE SET path = excluded.path, pointer = excluded.pointer, task = excluded.task,
kind = excluded.kind, status = excluded.status, waiting_kind = excluded.waiting_kind,
wait_until = excluded.wait_until, started_at = excluded.started_at, ended_at = excluded.ended_at,
sequence = excluded.sequence, position = excluded.position, error = excluded.error, attempts = excluded.attempts,
input = excluded.input, output = excluded.output, kept = excluded.kept, wait_details = excluded.wait_details,
input_size = excluded.input_size, output_size = excluded.output_size, redacted = excluded.redacted
WHERE steps.position < excluded.position
RETURNING run_id, number`, args, scanStepID)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range written {
			touched[id.run] = true
			if o := hidden[id]; o != nil {
				kept = append(kept, runrow.OriginalRows(id.run, *o)...)
			}
		}
	}
	return touched, kept, nil
}

// endSteps ends the open steps of runs with executions that were ended from outside. A step keeps its position, so that
// updates that Temporal accepted before, and late ones, still apply.
func endSteps(ctx context.Context, c sqldb.Conn, groups []runUpdates, rows map[string]runRow, touched map[string]bool) error {
	for _, g := range groups {
		row, known := rows[g.id]
		for _, u := range g.updates {
			if !known || u.State == nil || !u.State.EndsSteps {
				continue
			}
			changed, err := sqlrow.Affected(ctx, c, `UPDATE steps SET status = 'canceled', waiting_kind = '', wait_until = NULL, ended_at = $2,
sequence = $3 WHERE run_id = $1 AND status IN ('running', 'waiting')`, g.id, sqlrow.Micros(u.State.EndedAt), row.sequence+1)
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

func (n newStep) values() ([]any, error) {
	t := n.step
	runError, err := sqlrow.AsJSON(t.Error, t.Error == nil)
	if err != nil {
		return nil, err
	}
	attempts, err := sqlrow.AsJSON(t.Attempts, len(t.Attempts) == 0)
	if err != nil {
		return nil, err
	}
	details, err := sqlrow.AsJSON(t.Wait, t.Wait == nil)
	if err != nil {
		return nil, err
	}
	return []any{
		n.run, t.Number, sqlrow.Mended(t.Path), sqlrow.Mended(t.Pointer), sqlrow.Mended(t.Task), t.Kind, t.Status, t.WaitingKind,
		sqlrow.Micros(t.WaitUntil), sqlrow.Micros(t.StartedAt), sqlrow.Micros(t.EndedAt), n.sequence, t.Position, runError, attempts,
		sqlrow.MendedRaw(t.Input), sqlrow.MendedRaw(t.Output), t.Kept, details, t.InputSize, t.OutputSize, t.Original != nil,
	}, nil
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
	if err := sqlrow.UpdateMany(ctx, c, s.db.Dialect(), "runs", 1, stateColumns(), states, stateValues); err != nil {
		return nil, err
	}
	if err := sqlrow.UpdateMany(ctx, c, s.db.Dialect(), "runs", 1, movedColumns(), moved, movedValues); err != nil {
		return nil, err
	}
	if err := events.EndListeners(ctx, c, s.db.Dialect(), ended); err != nil {
		return nil, err
	}
	return transitions, outbox.AddRuns(ctx, c, s.db.Dialect(), endings)
}

func stateColumns() []sqlrow.Column {
	return []sqlrow.Column{
		{Name: "id", Kind: sqlrow.Text}, {Name: "status", Kind: sqlrow.Text}, {Name: "queued_reason", Kind: sqlrow.Text}, {Name: "waiting_kind", Kind: sqlrow.Text}, {Name: "status_at", Kind: sqlrow.Number},
		{Name: "started_at", Kind: sqlrow.Number}, {Name: "ended_at", Kind: sqlrow.Number}, {Name: "steps_total", Kind: sqlrow.Number}, {Name: "steps_done", Kind: sqlrow.Number},
		{Name: "sequence", Kind: sqlrow.Number}, {Name: "position", Kind: sqlrow.Number}, {Name: "state_position", Kind: sqlrow.Number}, {Name: "execution_id", Kind: sqlrow.Text},
		{Name: "error", Kind: sqlrow.Text}, {Name: "output", Kind: sqlrow.Text}, {Name: "written_at", Kind: sqlrow.Number}, {Name: "failure_group", Kind: sqlrow.Text},
	}
}

func stateValues(o outcome) ([]any, error) {
	runError, err := sqlrow.AsJSON(o.state.Error, o.state.Error == nil)
	if err != nil {
		return nil, err
	}
	reason := ""
	if o.state.Status == run.Queued {
		// Temporal has a run that it reports.
		reason = run.QueuedWorker
	}
	return []any{
		o.after.id, o.state.Status, reason, o.state.WaitingKind, sqlrow.Micros(o.state.Since), sqlrow.Micros(o.after.startedAt),
		sqlrow.Micros(o.state.EndedAt), o.state.StepsTotal, o.state.StepsDone, o.after.sequence, o.after.position,
		o.after.statePosition, o.after.executionID, runError, sqlrow.MendedRaw(o.state.Output), time.Now().UnixMicro(),
		run.FailureGroup(run.Run{Workflow: o.after.workflow, Status: o.state.Status, Trigger: o.after.trigger, Error: o.state.Error}),
	}, nil
}

func movedColumns() []sqlrow.Column {
	return []sqlrow.Column{{Name: "id", Kind: sqlrow.Text}, {Name: "sequence", Kind: sqlrow.Number}, {Name: "position", Kind: sqlrow.Number}, {Name: "execution_id", Kind: sqlrow.Text}, {Name: "started_at", Kind: sqlrow.Number}, {Name: "written_at", Kind: sqlrow.Number}}
}

func movedValues(o outcome) ([]any, error) {
	return []any{o.after.id, o.after.sequence, o.after.position, o.after.executionID, sqlrow.Micros(o.after.startedAt), time.Now().UnixMicro()}, nil
}
