// Package awaited keeps which runs other runs wait for, in the store's database: one row from the moment at which such a run is
// accepted until the one that waits was told of its end. It implements [child.Store]; package store opens it and writes to it
// together with the runs themselves.
package awaited

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Store is safe for concurrent use, also by several processes on one Postgres.
type Store struct{ db *sqldb.DB }

var _ child.Store = (*Store)(nil)

// New returns a store on an open database, whose schema is for package store to bring up.
func New(db *sqldb.DB) *Store { return &Store{db} }

// Add notes that the run's parent waits for it, if it does.
func Add(ctx context.Context, c sqldb.Conn, r run.Run) error {
	if !r.Parent.Awaited {
		return nil
	}
	_, err := c.ExecContext(ctx, `INSERT INTO run_awaited (run_id, parent, call_key) VALUES ($1, $2, $3)`, r.ID, r.Parent.RunID, r.Parent.Key)
	return err
}

// Remove forgets a run that is removed.
func Remove(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM run_awaited WHERE run_id = $1`, id)
	return err
}

const (
	openStatuses = `('queued', 'running', 'waiting')`

	// selectLinks reads runs that are awaited. A parent that has no row any more has ended.
	selectLinks = `SELECT a.run_id, r.project, a.parent, r.status NOT IN ` + openStatuses + `, COALESCE(p.status, '') NOT IN ` + openStatuses + `, r.cancel_requested
FROM run_awaited a JOIN runs r ON r.id = a.run_id LEFT JOIN runs p ON p.id = a.parent
WHERE (r.status NOT IN ` + openStatuses + ` OR (COALESCE(p.status, '') NOT IN ` + openStatuses + ` AND NOT r.cancel_requested))`
)

// Due implements [child.Store].
func (s *Store) Due(ctx context.Context, after string, limit int) (list []child.Link, err error) {
	err = s.db.Read(ctx, "list awaited runs", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, selectLinks+` AND a.run_id > $1 ORDER BY a.run_id`+sqlrow.Limit(limit), []any{after}, scanLink)
		return err
	})
	return list, err
}

// DueFor implements [child.Store].
func (s *Store) DueFor(ctx context.Context, runIDs []string) (list []child.Link, err error) {
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
	return l, row.Scan(&l.RunID, &l.Project, &l.Parent, &l.Ended, &l.ParentEnded, &l.CancelRequested)
}

// Key implements [child.Store].
func (s *Store) Key(ctx context.Context, runID string) (key string, awaited bool, err error) {
	err = s.db.Read(ctx, "find awaited run", func(ctx context.Context, c sqldb.Conn) error {
		keys, err := sqlrow.Collect(ctx, c, `SELECT call_key FROM run_awaited WHERE run_id = $1`, []any{runID}, sqlrow.ScanText)
		if awaited = len(keys) > 0; awaited {
			key = keys[0]
		}
		return err
	})
	return key, awaited, err
}

// Told implements [child.Store].
func (s *Store) Told(ctx context.Context, runID string) error {
	return s.db.Exec(ctx, "forget awaited run", func(ctx context.Context, c sqldb.Conn) error { return Remove(ctx, c, runID) })
}
