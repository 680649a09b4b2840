package runrow

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Awaited stores which runs are awaited by other runs, in the store's database: one row from the acceptance of such a
// run until its parent was notified of its end. It implements [child.Store]; package store writes to it together with
// the runs themselves. It is safe for concurrent use, also by several processes on one Postgres.
type Awaited struct{ db *sqldb.DB }

var _ child.Store = (*Awaited)(nil)

// NewAwaited returns a store on an open database. Package store migrates its schema.
func NewAwaited(db *sqldb.DB) *Awaited { return &Awaited{db} }

// AddAwaited records that the run's parent awaits it, if it does.
func AddAwaited(ctx context.Context, c sqldb.Conn, r run.Run) error {
	if !r.Parent.Awaited {
		return nil
	}
	_, err := c.ExecContext(ctx, `INSERT INTO run_awaited (run_id, parent, call_key) VALUES ($1, $2, $3)`, r.ID,
		r.Parent.RunID, r.Parent.Key)
	return err
}

// RemoveAwaited removes the row of a run that is removed.
func RemoveAwaited(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM run_awaited WHERE run_id = $1`, id)
	return err
}

const (
	openStatuses = `('queued', 'running', 'waiting')`

	// parentEnded and parentCanceled are conditions on the parent. A parent without a row has ended.
	parentEnded    = `COALESCE(p.status, '') NOT IN ` + openStatuses
	parentCanceled = `COALESCE(p.cancel_requested, FALSE)`

	// selectLinks reads awaited runs.
	selectLinks = `SELECT a.run_id, r.project, a.parent, r.status NOT IN ` + openStatuses + `, ` + parentEnded + `, ` +
		parentCanceled + `, r.cancel_requested
FROM run_awaited a JOIN runs r ON r.id = a.run_id LEFT JOIN runs p ON p.id = a.parent
WHERE (r.status NOT IN ` + openStatuses + `
OR ((` + parentEnded + ` OR ` + parentCanceled + `) AND NOT r.cancel_requested))`
)

// Due implements [child.Store].
func (s *Awaited) Due(ctx context.Context, after string, limit int) (list []child.Link, err error) {
	err = s.db.Read(ctx, "list awaited runs", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, selectLinks+` AND a.run_id > $1 ORDER BY a.run_id`+sqlrow.Limit(limit),
			[]any{after}, scanLink)
		return err
	})
	return list, err
}

// DueFor implements [child.Store].
func (s *Awaited) DueFor(ctx context.Context, runIDs []string) (list []child.Link, err error) {
	err = s.db.Read(ctx, "find awaited runs", func(ctx context.Context, c sqldb.Conn) error {
		for _, column := range []string{"a.run_id", "a.parent"} {
			err := sqlrow.In(ctx, s.db.Dialect(), runIDs, nil, func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c, selectLinks+` AND `+column+` IN `+marks+` ORDER BY a.run_id`, args, scanLink)
				list = append(list, found...)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

func scanLink(row sqlrow.Scanner) (l child.Link, err error) {
	return l, row.Scan(&l.RunID, &l.Project, &l.Parent, &l.Ended, &l.ParentEnded, &l.ParentCanceled, &l.CancelRequested)
}

// Key implements [child.Store].
func (s *Awaited) Key(ctx context.Context, runID string) (key string, canceled, awaited bool, err error) {
	err = s.db.Read(ctx, "find awaited run", func(ctx context.Context, c sqldb.Conn) error {
		var parent string
		found, err := sqlrow.Collect(ctx, c, `SELECT call_key, parent FROM run_awaited WHERE run_id = $1`, []any{runID},
			func(row sqlrow.Scanner) (struct{}, error) { return struct{}{}, row.Scan(&key, &parent) })
		if awaited = len(found) > 0; err != nil || !awaited {
			return err
		}
		canceled, err = ancestorCanceled(ctx, c, parent)
		return err
	})
	return key, canceled, awaited, err
}

// MarkNotified implements [child.Store].
func (s *Awaited) MarkNotified(ctx context.Context, runID string) error {
	return s.db.Exec(ctx, "forget awaited run", func(ctx context.Context, c sqldb.Conn) error {
		return RemoveAwaited(ctx, c, runID)
	})
}
