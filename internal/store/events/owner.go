package events

import (
	"context"
	"database/sql"
	"errors"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Fence implements [event.Store].
func (s *Store) Fence(ctx context.Context, project, taskQueue, holder string, above int64) (o inbox.Owner, err error) {
	err = s.db.Write(ctx, "fence dispatcher", func(ctx context.Context, c sqldb.Conn) error {
		if err := makeInbox(ctx, c, project); err != nil {
			return err
		}
		var now int64
		o = inbox.Owner{Holder: holder}
		// Whoever is in the middle of a claim holds the row, and is waited for.
		err := c.QueryRowContext(ctx, `INSERT INTO dispatchers (project, task_queue, epoch, holder, routed, pending)
VALUES ($1, $2, CAST($3 AS BIGINT) + 1, $4, 0, 0)
ON CONFLICT (project) DO UPDATE SET task_queue = excluded.task_queue, holder = excluded.holder,
epoch = CASE WHEN dispatchers.epoch < excluded.epoch THEN excluded.epoch ELSE dispatchers.epoch + 1 END
RETURNING epoch, `+s.db.Dialect().Now, project, taskQueue, max(above, 0), holder).Scan(&o.Epoch, &now)
		if err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, `UPDATE deliveries SET claimed_until = NULL, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE CAST($2 AS BIGINT) END
WHERE project = $1 AND claimed_until IS NOT NULL`, project, now)
		return err
	})
	if err != nil {
		return inbox.Owner{}, err
	}
	return o, nil
}

// Park implements [event.Store]. Whoever accepts an event waits for the inbox's row meanwhile, and then knows.
func (s *Store) Park(ctx context.Context, project string, owner inbox.Owner) (parked bool, err error) {
	err = s.db.Write(ctx, "park dispatcher", func(ctx context.Context, c sqldb.Conn) error {
		parked = false
		t, err := s.own(ctx, c, project, owner)
		if err != nil {
			return err
		}
		a, err := s.lockInbox(ctx, c, project, s.db.Dialect().LockRows)
		if err != nil || a.head > t.routed {
			return err
		}
		due, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM deliveries WHERE project = $1 AND due_at <= $2 LIMIT 1`, project, t.now)
		if err != nil || due {
			return err
		}
		parked = true
		_, err = c.ExecContext(ctx, `UPDATE inboxes SET parked = TRUE WHERE project = $1 AND NOT parked`, project)
		return err
	})
	return parked && err == nil, err
}

// Unpark implements [event.Store].
func (s *Store) Unpark(ctx context.Context, project string, owner inbox.Owner) error {
	return s.db.Write(ctx, "unpark dispatcher", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := s.own(ctx, c, project, owner); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, `UPDATE inboxes SET parked = FALSE WHERE project = $1 AND parked`, project)
		return err
	})
}

// RecordOwner implements [event.Store].
func (s *Store) RecordOwner(ctx context.Context, o event.OwnerChange, tell event.Event, e audit.Entry) error {
	if err := storable([]event.Event{tell}); err != nil {
		return err
	}
	return s.db.Write(ctx, "record owner", func(ctx context.Context, c sqldb.Conn) error {
		if err := ledger.NeedProject(ctx, c, o.Name.Project); err != nil {
			return err
		}
		made, err := sqlrow.Affected(ctx, c, `INSERT INTO owner_changes (project, task_queue, epoch, execution, at, holder, how, previous_epoch,
previous_holder, ended, reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (project, task_queue, epoch, execution) DO NOTHING`,
			o.Name.Project, o.Name.TaskQueue, o.Owner.Epoch, o.Execution, o.At.UnixMicro(), o.Owner.Holder, o.How, o.Previous.Epoch, o.Previous.Holder,
			o.Ended, sqlrow.Mended(o.Reason))
		if err != nil || !made {
			return err
		}
		if _, _, err := s.publish(ctx, c, o.Name.Project, []event.Event{tell}); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
}

// OwnerHistory implements [event.Store].
func (s *Store) OwnerHistory(ctx context.Context, name inbox.Name, limit int) (list []event.OwnerChange, err error) {
	err = s.db.Read(ctx, "list owners", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT epoch, execution, at, holder, how, previous_epoch, previous_holder, ended, reason
FROM owner_changes WHERE project = $1 AND task_queue = $2 ORDER BY epoch DESC, at DESC`+sqlrow.Limit(limit),
			[]any{name.Project, name.TaskQueue}, func(row sqlrow.Scanner) (o event.OwnerChange, err error) {
				o.Name = name
				err = row.Scan(&o.Owner.Epoch, &o.Execution, sqlrow.TimeInto(&o.At), &o.Owner.Holder, &o.How, &o.Previous.Epoch,
					&o.Previous.Holder, &o.Ended, &o.Reason)
				return o, err
			})
		if err == nil && len(list) == 0 {
			err = ledger.NeedProject(ctx, c, name.Project)
		}
		return err
	})
	return list, err
}

// position of the newest event, which nobody who accepts events can move before the transaction ends.
func (s *Store) position(ctx context.Context, c sqldb.Conn, project string) (int64, error) {
	a, err := s.lockInbox(ctx, c, project, s.db.Dialect().ShareRows)
	return a.head, err
}

// found reads one row into the targets and tells whether there is one.
func found(row *sql.Row, into ...any) (bool, error) {
	err := row.Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
