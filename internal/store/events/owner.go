package events

import (
	"context"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// RecordOwner implements [sealed.EventStore].
func (s *Store) RecordOwner(ctx context.Context, o dispatchtype.OwnerChange, given sealed.Sealed[event.Event], e audit.Entry) error {
	tell := given.Value()
	if err := Storable([]event.Event{tell}); err != nil {
		return err
	}
	return s.db.Write(ctx, "record owner", func(ctx context.Context, c sqldb.Conn) error {
		if err := ledger.NeedProject(ctx, c, o.Name.Project); err != nil {
			return err
		}
		made, err := sqlrow.Affected(ctx, c, `INSERT INTO owner_changes (project, task_queue, epoch, execution, at, holder, how, previous_epoch,
previous_holder, ended, reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (project, task_queue, epoch, execution) DO NOTHING`,
			o.Name.Project, o.Name.TaskQueue, o.To.Epoch, o.RunID, o.At.UnixMicro(), o.To.Holder, o.Outcome, o.From.Epoch, o.From.Holder,
			o.Ended, sqlrow.Mended(o.Reason))
		if err != nil || !made {
			return err
		}
		if _, _, err := s.Add(ctx, c, o.Name.Project, []event.Event{tell}); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
}

// OwnerHistory implements [event.Rows].
func (s *Store) OwnerHistory(ctx context.Context, name inbox.Name, limit int) (list []dispatchtype.OwnerChange, err error) {
	err = s.db.Read(ctx, "list owners", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT epoch, execution, at, holder, how, previous_epoch, previous_holder, ended, reason
FROM owner_changes WHERE project = $1 AND task_queue = $2 ORDER BY epoch DESC, at DESC`+sqlrow.Limit(limit),
			[]any{name.Project, name.TaskQueue}, func(row sqlrow.Scanner) (o dispatchtype.OwnerChange, err error) {
				o.Name = name
				err = row.Scan(&o.To.Epoch, &o.RunID, sqlrow.TimeInto(&o.At), &o.To.Holder, &o.Outcome, &o.From.Epoch,
					&o.From.Holder, &o.Ended, &o.Reason)
				return o, err
			})
		if err == nil && len(list) == 0 {
			err = ledger.NeedProject(ctx, c, name.Project)
		}
		return err
	})
	return list, err
}
