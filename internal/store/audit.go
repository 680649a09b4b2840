package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// WriteAuditOnce writes an entry for an action that changed no row; repeated calls with the same entry write it once.
func (s *Store) WriteAuditOnce(ctx context.Context, e audit.Entry) error {
	return s.db.Write(ctx, "write audit entry", func(ctx context.Context, c sqldb.Conn) error {
		return ledger.AddOnce(ctx, c, e)
	})
}

// ListAudit implements [audit.Store].
func (s *Store) ListAudit(ctx context.Context, f audit.Filter) (list []audit.Entry, err error) {
	var w sqlrow.Where
	w.IsText("project", f.Project)
	w.IsText("action", f.Action)
	w.IsText("subject", f.Subject)
	w.IsText("actor_name", f.Actor)
	if !f.Since.IsZero() {
		w.Is("at", ">=", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		w.Is("at", "<", f.Until.UnixMicro())
	}
	beyond, order := "<", " ORDER BY id DESC"
	if f.OldestFirst {
		beyond, order = ">", " ORDER BY id"
	}
	if f.After != nil {
		w.Is("id", beyond, f.After.ID)
	}
	query := `SELECT ` + sqlrow.Columns(entryFields) + ` FROM audit` + w.String() + order + sqlrow.Limit(f.Limit)
	err = s.db.Read(ctx, "list audit entries", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, query, w.Args, sqlrow.Scan(entryFields))
		return err
	})
	return list, err
}

func entryFields(e *audit.Entry) sqlrow.Fields {
	return append(ledger.Fields(e), sqlrow.Col("id", &e.ID))
}
