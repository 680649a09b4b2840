// Package views stores saved views of lists of runs.
package views

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/view"
)

// Store stores views. It is safe for concurrent use.
type Store struct{ db *sqldb.DB }

// New returns the views of a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

const selectViews = `SELECT id, project, owner_kind, owner_name, updater_kind, updater_name, name, query, shared, revision, updated_at FROM views`

func scanView(row sqlrow.Scanner) (v view.View, err error) {
	return v, row.Scan(&v.ID, &v.Project, &v.Owner.Kind, &v.Owner.Name, &v.Updater.Kind, &v.Updater.Name, &v.Name, sqlrow.JSONInto(&v.Query), &v.Shared,
		&v.Revision, sqlrow.TimeInto(&v.UpdatedAt))
}

// maxViews bounds a list: the most that a caller can see.
const maxViews = view.MaxOwned + view.MaxShared

// seenViews selects what an owner sees. Each part has an index of its own.
const seenViews = ` WHERE project = $1 AND owner_kind = $2 AND owner_name = $3
UNION ALL ` + selectViews + ` WHERE project = $1 AND shared AND NOT (owner_kind = $2 AND owner_name = $3) ORDER BY name, id`

// ListViews implements [view.Store].
func (s *Store) ListViews(ctx context.Context, project string, owner view.Person) (list []view.View, err error) {
	err = s.db.Read(ctx, "list views", func(ctx context.Context, c sqldb.Conn) error {
		list, err = sqlrow.Collect(ctx, c, selectViews+seenViews+sqlrow.Limit(maxViews), []any{project, owner.Kind, owner.Name}, scanView)
		if err == nil && len(list) == 0 {
			return ledger.NeedProject(ctx, c, project)
		}
		return err
	})
	return list, err
}

// ChangeView implements [view.Store]. It locks the project, so that concurrent calls neither exceed a maximum nor take a name twice.
func (s *Store) ChangeView(ctx context.Context, project, id string, owner view.Person, change func([]view.View) (view.Change, error)) error {
	return s.db.Write(ctx, "change view", func(ctx context.Context, c sqldb.Conn) error {
		projects, err := sqlrow.Collect(ctx, c, `SELECT name FROM projects WHERE name = $1`+s.db.Dialect().LockRows, []any{project}, sqlrow.ScanText)
		if err != nil {
			return err
		}
		if len(projects) == 0 {
			return ledger.NoProject(project)
		}
		found, err := sqlrow.Collect(ctx, c, selectViews+` WHERE id = $1 AND project = $2`, []any{id, project}, scanView)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			owner = found[0].Owner
		}
		views, err := sqlrow.Collect(ctx, c, selectViews+seenViews+sqlrow.Limit(maxViews), []any{project, owner.Kind, owner.Name}, scanView)
		if err != nil {
			return err
		}
		done, err := change(views)
		if err != nil {
			return err
		}
		if err := writeView(ctx, c, id, done.To); err != nil || done.Entry == nil {
			return err
		}
		return ledger.Add(ctx, c, *done.Entry)
	})
}

// writeView stores a view, or deletes the one with the ID where v is nil.
func writeView(ctx context.Context, c sqldb.Conn, id string, v *view.View) error {
	if v == nil {
		_, err := c.ExecContext(ctx, `DELETE FROM views WHERE id = $1`, id)
		return err
	}
	query, err := sqlrow.AsJSON(v.Query, false)
	if err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, `INSERT INTO views (id, project, owner_kind, owner_name, updater_kind, updater_name, name, query, shared, revision, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET updater_kind = excluded.updater_kind, updater_name = excluded.updater_name, name = excluded.name, query = excluded.query,
shared = excluded.shared, revision = excluded.revision, updated_at = excluded.updated_at`,
		v.ID, v.Project, v.Owner.Kind, v.Owner.Name, v.Updater.Kind, v.Updater.Name, v.Name, query, v.Shared, v.Revision, v.UpdatedAt.UnixMicro())
	return err
}
