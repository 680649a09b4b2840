package store

import (
	"context"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/function"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

func functionFields(f *function.Function) sqlrow.Fields {
	return sqlrow.Row(
		"project", &f.Project, "name", &f.Name, "version", &f.Version, "hash", &f.Hash, "size", &f.Size,
		"publisher", &f.Publisher, "published_at", sqlrow.TimeInto(&f.PublishedAt),
	)
}

func scanFunction(row sqlrow.Scanner) (f function.Function, err error) {
	err = row.Scan(append(functionFields(&f).Into(), &f.Source)...)
	return f, err
}

// getFunction reads a version; an empty version is the one that was published last.
func getFunction(ctx context.Context, c sqldb.Conn, project, name, version string) (function.Function, error) {
	return sqlrow.One(ctx, c, `SELECT `+functionFields(&function.Function{}).Names("f.")+`, r.content
FROM functions f JOIN resources r ON r.hash = f.hash
WHERE f.project = $1 AND f.name = $2 AND ($3 = '' OR f.version = $3)
ORDER BY f.published_at DESC, f.version DESC LIMIT 1`, []any{project, name, version}, scanFunction,
		func() error { return noFunction(project, name, version) })
}

func noFunction(project, name, version string) error {
	return apperror.New(apperror.NotFound, apperror.FunctionNotFound,
		"the catalog of project %q has no function %q: `signalbox function list` shows what there is", project,
		strings.TrimSuffix(name+":"+version, ":"))
}

// PublishFunction implements [function.Store].
func (s *Store) PublishFunction(ctx context.Context, f function.Function, e audit.Entry) (stored function.Function,
	made bool, err error) {
	if err := sqlrow.Storable("source", f.Source); err != nil {
		return stored, false, err
	}
	err = s.db.Write(ctx, "publish function", func(ctx context.Context, c sqldb.Conn) error {
		stored, made = f, false
		stored.PublishedAt = sqlrow.Kept(f.PublishedAt)
		if err := ledger.NeedProject(ctx, c, f.Project); err != nil {
			return err
		}
		if err := insertContent(ctx, c, f.Hash, []byte(f.Source)); err != nil {
			return err
		}
		inserted, err := sqlrow.Insert(ctx, c, "functions", functionFields(&f),
			"ON CONFLICT (project, name, version) DO NOTHING")
		if err != nil {
			return err
		}
		if inserted {
			made = true
			return ledger.Add(ctx, c, e)
		}
		if stored, err = getFunction(ctx, c, f.Project, f.Name, f.Version); err != nil {
			return err
		}
		if stored.Hash != f.Hash {
			return apperror.New(apperror.Exists, apperror.VersionTaken,
				"version %q of function %q is published with another content: give the new one a new version", f.Version, f.Name)
		}
		return nil
	})
	if err != nil {
		return function.Function{}, false, err
	}
	return stored, made, nil
}

// GetFunction implements [function.Store].
func (s *Store) GetFunction(ctx context.Context, project, name, version string) (f function.Function, err error) {
	err = s.db.Read(ctx, "get function", func(ctx context.Context, c sqldb.Conn) (err error) {
		f, err = getFunction(ctx, c, project, name, version)
		return err
	})
	return f, err
}

// ListFunctions implements [function.Store].
func (s *Store) ListFunctions(ctx context.Context, f function.Filter) (list []function.Function, err error) {
	var w sqlrow.Where
	w.Is("project", "=", f.Project)
	w.IsText("name", f.Name)
	if f.Text != "" {
		w.Conditions = append(w.Conditions, "name LIKE "+w.Arg(sqlrow.Contains(strings.ToLower(f.Text)))+" ESCAPE '!'")
	}
	if f.Latest {
		w.Conditions = append(w.Conditions, `NOT EXISTS (SELECT 1 FROM functions n WHERE n.project = functions.project
AND n.name = functions.name AND (n.published_at, n.version) > (functions.published_at, functions.version))`)
	}
	if after := f.After; after != nil {
		name, at := w.Arg(after.Name), w.Arg(after.PublishedAt.UnixMicro())
		w.Conditions = append(w.Conditions, "(name > "+name+" OR name = "+name+" AND (published_at < "+at+
			" OR published_at = "+at+" AND version < "+w.Arg(after.Version)+"))")
	}
	query := `SELECT ` + sqlrow.Columns(functionFields) + ` FROM functions` + w.String() +
		` ORDER BY name, published_at DESC, version DESC` + sqlrow.Limit(f.Limit)
	err = s.db.Read(ctx, "list functions", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, query, w.Args, sqlrow.Scan(functionFields))
		return err
	})
	return list, err
}

// FunctionUsers implements [function.Store].
func (s *Store) FunctionUsers(ctx context.Context, f function.Function, limit int) (users []function.User, err error) {
	err = s.db.Read(ctx, "list users of function", func(ctx context.Context, c sqldb.Conn) (err error) {
		users, err = sqlrow.Collect(ctx, c, `SELECT r.workflow, r.version,
CASE WHEN w.latest_version = r.version THEN 1 ELSE 0 END
FROM version_resources r JOIN workflows w ON w.project = r.project AND w.name = r.workflow
WHERE r.project = $1 AND r.uri = $2 ORDER BY r.loaded_at DESC, r.workflow, r.version`+sqlrow.Limit(limit),
			[]any{f.Project, f.Reference()}, func(row sqlrow.Scanner) (u function.User, err error) {
				var latest int
				err = row.Scan(&u.Workflow, &u.Version, &latest)
				u.Latest = latest == 1
				return u, err
			})
		return err
	})
	return users, err
}

// DeleteFunction implements [function.Store]. The content stays, for the workflows that were published with it.
func (s *Store) DeleteFunction(ctx context.Context, project, name, version string, e audit.Entry) error {
	return s.db.Write(ctx, "delete function", func(ctx context.Context, c sqldb.Conn) error {
		result, err := c.ExecContext(ctx,
			`DELETE FROM functions WHERE project = $1 AND name = $2 AND ($3 = '' OR version = $3)`, project, name, version)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			if err == nil {
				err = noFunction(project, name, version)
			}
			return err
		}
		return ledger.Add(ctx, c, e)
	})
}
