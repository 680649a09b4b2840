package events

import (
	"context"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Fence implements [event.Rows].
func (s *Deliveries) Fence(ctx context.Context, project, taskQueue, holder string,
	above int64) (o inbox.Owner, err error) {
	err = s.db.Write(ctx, "fence dispatcher", func(ctx context.Context, c sqldb.Conn) error {
		if err := Make(ctx, c, project); err != nil {
			return err
		}
		var now int64
		o = inbox.Owner{Holder: holder}
		// A concurrent claim holds the row, so this waits for its end.
		err := c.QueryRowContext(ctx, `INSERT INTO dispatchers (project, task_queue, epoch, holder, routed, pending)
VALUES ($1, $2, CAST($3 AS BIGINT) + 1, $4, 0, 0)
ON CONFLICT (project) DO UPDATE SET task_queue = excluded.task_queue, holder = excluded.holder,
epoch = CASE WHEN dispatchers.epoch < excluded.epoch THEN excluded.epoch ELSE dispatchers.epoch + 1 END
RETURNING epoch, `+s.db.Dialect().Now, project, taskQueue, max(above, 0), holder).Scan(&o.Epoch, &now)
		if err != nil {
			return err
		}
		_, err = c.ExecContext(ctx,
			`UPDATE deliveries SET claimed_until = NULL, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE CAST($2 AS BIGINT) END
WHERE project = $1 AND claimed_until IS NOT NULL`, project, now)
		return err
	})
	if err != nil {
		return inbox.Owner{}, err
	}
	return o, nil
}

// Park implements [event.Rows]. A process that accepts an event waits for the inbox's row meanwhile, and then reads the
// change.
func (s *Deliveries) Park(ctx context.Context, project string, owner inbox.Owner) (parked bool, err error) {
	err = s.db.Write(ctx, "park dispatcher", func(ctx context.Context, c sqldb.Conn) error {
		parked = false
		t, err := s.lockOwned(ctx, c, project, owner)
		if err != nil {
			return err
		}
		a, err := s.events.Lock(ctx, c, project, s.db.Dialect().LockRows)
		if err != nil || a.Head > t.routed {
			return err
		}
		due, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM deliveries WHERE project = $1 AND due_at <= $2 LIMIT 1`, project,
			t.now)
		if err != nil || due {
			return err
		}
		parked = true
		_, err = c.ExecContext(ctx, `UPDATE inboxes SET parked = TRUE WHERE project = $1 AND NOT parked`, project)
		return err
	})
	return parked && err == nil, err
}

// Unpark implements [event.Rows].
func (s *Deliveries) Unpark(ctx context.Context, project string, owner inbox.Owner) error {
	return s.db.Write(ctx, "unpark dispatcher", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := s.lockOwned(ctx, c, project, owner); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, `UPDATE inboxes SET parked = FALSE WHERE project = $1 AND parked`, project)
		return err
	})
}
