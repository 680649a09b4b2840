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
func (s *Store) RecordOwner(ctx context.Context, o dispatchtype.OwnerChange, given sealed.Sealed[event.Event],
	e audit.Entry) error {
	tell := given.Value()
	if err := Storable([]event.Event{tell}); err != nil {
		return err
	}
	return s.db.Write(ctx, "record owner", func(ctx context.Context, c sqldb.Conn) error {
		if err := ledger.NeedProject(ctx, c, o.Name.Project); err != nil {
			return err
		}
		row := append(ownerFields(&o), sqlrow.Col("project", o.Name.Project), sqlrow.Col("task_queue", o.Name.TaskQueue))
		made, err := sqlrow.Insert(ctx, c, "owner_changes", row,
			` ON CONFLICT (project, task_queue, epoch, execution) DO NOTHING`)
		if err != nil || !made {
			return err
		}
		if _, _, err := s.Add(ctx, c, o.Name.Project, []event.Event{tell}); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
}

func ownerFields(o *dispatchtype.OwnerChange) sqlrow.Fields {
	return sqlrow.Row(
		"epoch", &o.To.Epoch, "execution", &o.RunID, "at", sqlrow.TimeInto(&o.At), "holder", &o.To.Holder,
		"how", &o.Outcome, "previous_epoch", &o.From.Epoch, "previous_holder", &o.From.Holder, "ended", &o.Ended,
		"reason", sqlrow.MendedInto(&o.Reason),
	)
}

// OwnerHistory implements [event.Rows].
func (s *Store) OwnerHistory(ctx context.Context, name inbox.Name,
	limit int) (list []dispatchtype.OwnerChange, err error) {
	err = s.db.Read(ctx, "list owners", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(ownerFields)+`
FROM owner_changes WHERE project = $1 AND task_queue = $2 ORDER BY epoch DESC, at DESC`+sqlrow.Limit(limit),
			[]any{name.Project, name.TaskQueue}, sqlrow.Scan(ownerFields))
		for i := range list {
			list[i].Name = name
		}
		if err == nil && len(list) == 0 {
			err = ledger.NeedProject(ctx, c, name.Project)
		}
		return err
	})
	return list, err
}
