package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/view"
)

// Views stores saved views of lists of runs. It is safe for concurrent use.
type Views struct{ db *sqldb.DB }

func viewFields(v *view.View) sqlrow.Fields {
	return sqlrow.Row(
		"id", &v.ID, "project", &v.Project, "owner_kind", &v.Owner.Kind, "owner_name", &v.Owner.Name,
		"updater_kind", &v.Updater.Kind, "updater_name", &v.Updater.Name, "name", &v.Name,
		"query", sqlrow.JSONInto(&v.Query), "shared", &v.Shared, "revision", &v.Revision,
		"updated_at", sqlrow.TimeInto(&v.UpdatedAt),
	)
}

func selectViews() string { return `SELECT ` + sqlrow.Columns(viewFields) + ` FROM views` }

// maxViews bounds a list: the most that a caller can see.
const maxViews = view.MaxOwned + view.MaxShared

// seenViews selects what an owner sees. Each part has an index of its own.
func seenViews() string {
	return selectViews() + ` WHERE project = $1 AND owner_kind = $2 AND owner_name = $3
UNION ALL ` + selectViews() + ` WHERE project = $1 AND shared AND NOT (owner_kind = $2 AND owner_name = $3)
ORDER BY name, id` + sqlrow.Limit(maxViews)
}

// ListViews implements [view.Store].
func (s *Views) ListViews(ctx context.Context, project string, owner view.Person) (list []view.View, err error) {
	err = s.db.Read(ctx, "list views", func(ctx context.Context, c sqldb.Conn) error {
		list, err = sqlrow.Collect(ctx, c, seenViews(), []any{project, owner.Kind, owner.Name}, sqlrow.Scan(viewFields))
		if err == nil && len(list) == 0 {
			return ledger.NeedProject(ctx, c, project)
		}
		return err
	})
	return list, err
}

// ChangeView implements [view.Store]. It locks the project, so that concurrent calls neither exceed a maximum nor take
// a name twice.
func (s *Views) ChangeView(ctx context.Context, project, id string, owner view.Person,
	change func([]view.View) (view.Change, error)) error {
	return s.db.Write(ctx, "change view", func(ctx context.Context, c sqldb.Conn) error {
		projects, err := sqlrow.Collect(ctx, c, `SELECT name FROM projects WHERE name = $1`+s.db.Dialect().LockRows,
			[]any{project}, sqlrow.ScanText)
		if err != nil {
			return err
		}
		if len(projects) == 0 {
			return ledger.NoProject(project)
		}
		found, err := sqlrow.Collect(ctx, c, selectViews()+` WHERE id = $1 AND project = $2`, []any{id, project},
			sqlrow.Scan(viewFields))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			owner = found[0].Owner
		}
		views, err := sqlrow.Collect(ctx, c, seenViews(), []any{project, owner.Kind, owner.Name}, sqlrow.Scan(viewFields))
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
	_, err := sqlrow.Insert(ctx, c, "views", viewFields(v),
		sqlrow.Replace("id", "updater_kind", "updater_name", "name", "query", "shared", "revision", "updated_at"))
	return err
}
