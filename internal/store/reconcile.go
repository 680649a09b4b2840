package store

import (
	"context"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// OpenRuns implements [run.ReconcileStore].
func (s *Store) OpenRuns(ctx context.Context, after string, limit int) (list []run.Run, err error) {
	err = s.db.Read(ctx, "list open runs", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = collect(ctx, c, `SELECT `+runHead+` FROM runs WHERE status IN `+openStatuses+` AND id > $1 ORDER BY id`+limited(limit),
			[]any{after}, scanHead)
		return err
	})
	return list, err
}

// StartingRuns implements [run.ReconcileStore].
func (s *Store) StartingRuns(ctx context.Context, until time.Time, after string, limit int) (list []run.Run, err error) {
	err = s.db.Read(ctx, "list runs being started", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = collect(ctx, c, `SELECT `+runHead+` FROM runs WHERE status IN `+openStatuses+
			` AND status = $1 AND queued_reason = $2 AND status_at <= $3 AND id > $4 ORDER BY id`+limited(limit),
			[]any{run.Queued, run.QueuedStarting, micros(until), after}, scanHead)
		return err
	})
	return list, err
}

// FindRuns implements [run.ReconcileStore].
func (s *Store) FindRuns(ctx context.Context, ids []string) (list []run.Run, err error) {
	err = s.db.Read(ctx, "find runs", func(ctx context.Context, c sqldb.Conn) error {
		list = list[:0]
		for part := range chunks(ids) {
			args := make([]any, len(part))
			for i, id := range part {
				args[i] = id
			}
			found, err := collect(ctx, c, `SELECT `+runHead+` FROM runs WHERE id IN `+tuples(s.db.Dialect(), 1, len(part)), args, scanHead)
			if err != nil {
				return err
			}
			list = append(list, found...)
		}
		return nil
	})
	return list, err
}

// CorrectRun implements [run.ReconcileStore].
func (s *Store) CorrectRun(ctx context.Context, u run.Update, e *audit.Entry) (changed bool, err error) {
	err = s.db.Write(ctx, "correct run", func(ctx context.Context, c sqldb.Conn) error {
		outcomes, _, err := s.applyUpdates(ctx, c, []run.Update{u})
		if err != nil {
			return err
		}
		changed = len(outcomes) > 0 && (outcomes[0].changed() || outcomes[0].after != outcomes[0].before)
		if !changed || e == nil {
			return nil
		}
		return writeAudit(ctx, c, *e)
	})
	return changed && err == nil, err
}

// FollowExecution implements [run.ReconcileStore].
func (s *Store) FollowExecution(ctx context.Context, u run.Update, from string, left []string, e audit.Entry) (followed bool, err error) {
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
		// The steps behind the reset may never come again; those before it come as they were.
		if _, err := c.ExecContext(ctx, `DELETE FROM steps WHERE run_id = $1`, u.RunID); err != nil {
			return err
		}
		if _, err := s.writeSteps(ctx, c, groups, rows); err != nil {
			return err
		}
		o := outcome{before: row, after: row, state: u.State, steps: true}
		o.after.status, o.after.executionID = u.State.Status, u.ExecutionID
		o.after.position, o.after.statePosition = u.Position, u.Position
		o.after.startedAt = earliest(row.startedAt, u.State.StartedAt)
		if _, err := s.writeRuns(ctx, c, []outcome{o}); err != nil {
			return err
		}
		all := strings.Join(append(strings.Fields(row.left), left...), " ")
		if _, err := c.ExecContext(ctx, `UPDATE runs SET left_executions = $2 WHERE id = $1`, u.RunID, all); err != nil {
			return err
		}
		return writeAudit(ctx, c, e)
	})
	return followed && err == nil, err
}

// WriteAudit implements [run.ReconcileStore].
func (s *Store) WriteAudit(ctx context.Context, e audit.Entry) error {
	return s.db.Exec(ctx, "write audit entry", func(ctx context.Context, c sqldb.Conn) error { return writeAudit(ctx, c, e) })
}
