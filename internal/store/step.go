package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const selectStep = `SELECT number, path, pointer, task, kind, status, waiting_kind, wait_until, started_at, ended_at,
sequence, position, error, attempts, input, output FROM steps`

func scanStep(row sqlrow.Scanner) (t run.Step, err error) {
	err = row.Scan(&t.Number, &t.Path, &t.Pointer, &t.Task, &t.Kind, &t.Status, &t.WaitingKind, sqlrow.TimeInto(&t.WaitUntil),
		sqlrow.TimeInto(&t.StartedAt), sqlrow.TimeInto(&t.EndedAt), &t.Sequence, &t.Position, sqlrow.JSONInto(&t.Error),
		sqlrow.JSONInto(&t.Attempts), sqlrow.RawInto(&t.Input), sqlrow.RawInto(&t.Output))
	return t, err
}

// ListSteps implements [run.Store].
func (s *Store) ListSteps(
	ctx context.Context, project, id string, after int64, limit int,
) (list []run.Step, err error) {
	err = s.db.Read(ctx, "list steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		ours, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM runs WHERE id = $1 AND project = $2`, id, project)
		if err != nil {
			return err
		}
		if !ours {
			if err := ledger.NeedProject(ctx, c, project); err != nil {
				return err
			}
			return noRun(id)
		}
		list, err = sqlrow.Collect(ctx, c, selectStep+` WHERE run_id = $1 AND number > $2 ORDER BY number`+sqlrow.Limit(limit),
			[]any{id, after}, scanStep)
		return err
	})
	return list, err
}

// ChangedSteps implements [run.Store].
func (s *Store) ChangedSteps(
	ctx context.Context, id string, after run.StepCursor, upTo int64, limit int,
) (list []run.Step, err error) {
	err = s.db.Read(ctx, "list changed steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, selectStep+
			` WHERE run_id = $1 AND (sequence, number) > ($2, $3) AND sequence <= $4 ORDER BY sequence, number`+sqlrow.Limit(limit),
			[]any{id, after.Sequence, after.Number, upTo}, scanStep)
		if err == nil && len(list) == 0 {
			err = needRun(ctx, c, id)
		}
		return err
	})
	return list, err
}
