package store

import (
	"context"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// OpenRuns implements [run.ReconcileStore].
func (s *Store) OpenRuns(ctx context.Context, after string, limit int) (list []run.Run, err error) {
	err = s.db.Read(ctx, "list open runs", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(headFields)+` FROM runs WHERE status IN `+openStatuses+` AND `+executedHere+
				` AND id > $1 ORDER BY id`+sqlrow.Limit(limit),
			[]any{after}, scanHead)
		return err
	})
	return list, err
}

// OpenImports implements [run.ImportedRows].
func (s *Store) OpenImports(ctx context.Context, after string, limit int) (list []run.Run, err error) {
	err = s.db.Read(ctx, "list open imported runs", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(headFields)+` FROM runs WHERE status IN `+openStatuses+` AND NOT (`+executedHere+
				`) AND id > $1 ORDER BY id`+sqlrow.Limit(limit),
			[]any{after}, scanHead)
		return err
	})
	return list, err
}

// StartingRuns implements [run.ReconcileStore].
func (s *Store) StartingRuns(ctx context.Context, until time.Time, after string,
	limit int) (list []run.Run, err error) {
	err = s.db.Read(ctx, "list runs being started", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(headFields)+` FROM runs WHERE status IN `+openStatuses+
			` AND status = $1 AND queued_reason = $2 AND status_at <= $3 AND id > $4 ORDER BY id`+sqlrow.Limit(limit),
			[]any{run.Queued, run.QueuedStarting, sqlrow.Micros(until), after}, scanHead)
		return err
	})
	return list, err
}

// FindRuns implements [run.ReconcileStore].
func (s *Store) FindRuns(ctx context.Context, ids []string) (list []run.Run, err error) {
	err = s.db.Read(ctx, "find runs", func(ctx context.Context, c sqldb.Conn) error {
		list = list[:0]
		for part := range sqlrow.Chunks(ids) {
			args := make([]any, len(part))
			for i, id := range part {
				args[i] = id
			}
			found, err := sqlrow.Collect(ctx, c,
				`SELECT `+sqlrow.Columns(headFields)+` FROM runs WHERE id IN `+
					sqlrow.Tuples(s.db.Dialect(), 0, 1, len(part)), args, scanHead)
			if err != nil {
				return err
			}
			list = append(list, found...)
		}
		return runrow.AttachStuck(ctx, c, s.db.Dialect(), list)
	})
	return list, err
}

// CorrectRun implements [sealed.Store].
func (s *Store) CorrectRun(ctx context.Context, given sealed.Sealed[run.Update],
	e *audit.Entry) (changed bool, err error) {
	var transitions []run.Transition
	err = s.db.Write(ctx, "correct run", func(ctx context.Context, c sqldb.Conn) (err error) {
		var outcomes []outcome
		if outcomes, transitions, err = s.applyUpdates(ctx, c, []run.Update{given.Value()}); err != nil {
			return err
		}
		changed = len(outcomes) > 0 && (outcomes[0].changed() || outcomes[0].after != outcomes[0].before)
		if !changed || e == nil {
			return nil
		}
		return ledger.Add(ctx, c, *e)
	})
	if err == nil {
		s.notifyEnded(transitions)
	}
	return changed && err == nil, err
}

// FollowExecution implements [sealed.Store].
func (s *Store) FollowExecution(
	ctx context.Context, given sealed.Sealed[run.Update], from string, left []string, e audit.Entry,
) (followed bool, err error) {
	u := given.Value()
	var transitions []run.Transition
	err = s.db.Write(ctx, "follow a reset run", func(ctx context.Context, c sqldb.Conn) error {
		groups := []runUpdates{{id: u.RunID, updates: []run.Update{u}, steps: newestSteps([]run.Update{u})}}
		rows, err := s.lockRuns(ctx, c, groups)
		if err != nil {
			return err
		}
		row, known := rows[u.RunID]
		if followed = known && !row.status.Terminal() && row.executionID == from; !followed {
			return nil
		}
		// The steps after the reset may never be reported again; those before it are reported unchanged.
		if _, err := c.ExecContext(ctx, `DELETE FROM steps WHERE run_id = $1`, u.RunID); err != nil {
			return err
		}
		if err := runrow.RemoveStepOriginals(ctx, c, u.RunID); err != nil {
			return err
		}
		if err := runrow.RemoveSummary(ctx, c, u.RunID); err != nil {
			return err
		}
		if err := runrow.RemoveLogs(ctx, c, u.RunID); err != nil {
			return err
		}
		touched, kept, err := s.writeSteps(ctx, c, groups, rows)
		if err != nil {
			return err
		}
		if err := s.writeLogs(ctx, c, groups, rows); err != nil {
			return err
		}
		if err := s.writeSummaries(ctx, c, groups, rows, touched); err != nil {
			return err
		}
		o := outcome{before: row, after: row, state: u.State, steps: true}
		o.after.status, o.after.executionID = u.State.Status, u.ExecutionID
		o.after.position, o.after.statePosition = u.Position, u.Position
		o.after.startedAt = earliest(row.startedAt, u.State.StartedAt)
		if transitions, err = s.writeRuns(ctx, c, []outcome{o}); err != nil {
			return err
		}
		if err := runrow.WriteOriginals(ctx, c, s.db.Dialect(),
			append(kept, updateOriginals(groups, rows, []outcome{o})...)); err != nil {
			return err
		}
		all := strings.Join(append(strings.Fields(row.left), left...), " ")
		if _, err := c.ExecContext(ctx, `UPDATE runs SET left_executions = $2 WHERE id = $1`, u.RunID, all); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	if err == nil {
		s.notifyEnded(transitions)
	}
	return followed && err == nil, err
}

// WriteAudit implements [run.ReconcileStore].
func (s *Store) WriteAudit(ctx context.Context, e audit.Entry) error {
	return s.db.Exec(ctx, "write audit entry", func(ctx context.Context, c sqldb.Conn) error {
		return ledger.Add(ctx, c, e)
	})
}
