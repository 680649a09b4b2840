package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// writeAudit adds e in the transaction of the change that it tells of.
func writeAudit(ctx context.Context, c sqldb.Conn, e audit.Entry) error {
	if err := storable("reason", e.Reason); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, `INSERT INTO audit (at, actor_kind, actor_name, action, project, subject, reason, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.Time.UnixMicro(), e.Actor.Kind, e.Actor.Name, e.Action, e.Project, e.Subject, e.Reason, rawText(e.Detail))
	return err
}

// ListAudit implements [audit.Store].
func (s *Store) ListAudit(ctx context.Context, f audit.Filter) (list []audit.Entry, err error) {
	var w where
	w.isText("project", f.Project)
	w.isText("action", f.Action)
	w.isText("subject", f.Subject)
	w.isText("actor_name", f.Actor)
	if !f.Since.IsZero() {
		w.is("at", ">=", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		w.is("at", "<", f.Until.UnixMicro())
	}
	if f.After != nil {
		w.is("id", "<", f.After.ID)
	}
	query := `SELECT id, at, actor_kind, actor_name, action, project, subject, reason, detail FROM audit` +
		w.String() + ` ORDER BY id DESC` + limited(f.Limit)
	err = s.db.Read(ctx, "list audit entries", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = collect(ctx, c, query, w.args, scanEntry)
		return err
	})
	return list, err
}

func scanEntry(row scanner) (e audit.Entry, err error) {
	err = row.Scan(&e.ID, timeInto{&e.Time}, &e.Actor.Kind, &e.Actor.Name, &e.Action, &e.Project, &e.Subject, &e.Reason,
		rawInto{&e.Detail})
	return e, err
}
