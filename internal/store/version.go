package store

import (
	"context"
	"errors"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func versionHead(v *workflow.Version) sqlrow.Fields {
	return sqlrow.Row(
		"project", &v.Project, "workflow", &v.Workflow, "version", &v.Version, "hash", &v.Hash,
		"title", sqlrow.MendedInto(&v.Title), "summary", sqlrow.MendedInto(&v.Summary), "publisher", &v.Publisher,
		"published_at", sqlrow.TimeInto(&v.PublishedAt),
	)
}

func versionFields(v *workflow.Version) sqlrow.Fields {
	return append(versionHead(v), sqlrow.Row(
		"source", &v.Source, "trigger_spec", sqlrow.RawInto(&v.Trigger), "timer", sqlrow.RawInto(&v.Timer),
	)...)
}

func selectVersion() string {
	return `SELECT ` + versionFields(&workflow.Version{}).Names("v.") +
		`, d.canonical FROM versions v JOIN documents d ON d.hash = v.hash
WHERE v.project = $1 AND v.workflow = $2 AND v.version = $3`
}

func scanVersion(row sqlrow.Scanner) (v workflow.Version, err error) {
	var canonical string
	err = row.Scan(append(versionFields(&v).Into(), &canonical)...)
	v.Canonical = []byte(canonical)
	return v, err
}

// Publish implements [workflow.Store]. A paused workflow stays paused.
func (s *Store) Publish(
	ctx context.Context, v workflow.Version, newer func(a, b string) bool, e audit.Entry,
) (stored workflow.Version, made bool, err error) {
	if err := errors.Join(sqlrow.Storable("source", v.Source), sqlrow.Storable("document", string(v.Canonical)),
		sqlrow.Storable("schedule", string(v.Trigger)), sqlrow.Storable("schedule", string(v.Timer))); err != nil {
		return stored, false, err
	}
	err = s.db.Write(ctx, "publish workflow", func(ctx context.Context, c sqldb.Conn) (err error) {
		stored, made, err = s.publish(ctx, c, v, newer, e)
		return err
	})
	if err != nil {
		return workflow.Version{}, false, err
	}
	return stored, made, nil
}

func (s *Store) publish(
	ctx context.Context, c sqldb.Conn, v workflow.Version, newer func(a, b string) bool, e audit.Entry,
) (workflow.Version, bool, error) {
	if err := lockWorkflow(ctx, c, v.Project, v.Workflow, v.PublishedAt); err != nil {
		return v, false, err
	}
	published, err := sqlrow.Collect(ctx, c, selectVersion(), []any{v.Project, v.Workflow, v.Version}, scanVersion)
	if err != nil {
		return v, false, err
	}
	if len(published) > 0 {
		if published[0].Hash != v.Hash {
			return v, false, workflow.Taken(published[0], v)
		}
		published[0].Resources, err = versionResources(ctx, c, published[0])
		return published[0], false, err
	}
	if err := insertVersion(ctx, c, v); err != nil {
		return v, false, err
	}
	w, err := getWorkflow(ctx, c, v.Project, v.Workflow, "")
	if err != nil {
		return v, false, err
	}
	if w.LatestVersion == "" || newer(v.Version, w.LatestVersion) {
		w.LatestVersion = v.Version
		if err := s.events.PublishTrigger(ctx, c, v); err != nil {
			return v, false, err
		}
		if err := s.replaceTasks(ctx, c, v); err != nil {
			return v, false, err
		}
	}
	if w.State == workflow.StateDraft {
		w.State = workflow.StatePublished
	}
	_, err = c.ExecContext(ctx, `UPDATE workflows
SET title = $3, summary = $4, state = $5, latest_version = $6, updated_at = $7 WHERE project = $1 AND name = $2`,
		v.Project, v.Workflow, sqlrow.Mended(v.Title), sqlrow.Mended(v.Summary), w.State, w.LatestVersion,
		v.PublishedAt.UnixMicro())
	if err != nil {
		return v, false, err
	}
	v.PublishedAt = sqlrow.Kept(v.PublishedAt)
	v.Resources = slices.Clone(v.Resources)
	for i := range v.Resources {
		v.Resources[i].LoadedAt, v.Resources[i].Content = sqlrow.Kept(v.Resources[i].LoadedAt), nil
	}
	return v, true, ledger.Add(ctx, c, e)
}

// replaceTasks stores the tasks of the newest version of a workflow.
func (s *Store) replaceTasks(ctx context.Context, c sqldb.Conn, v workflow.Version) error {
	_, err := c.ExecContext(ctx, `DELETE FROM workflow_tasks WHERE project = $1 AND workflow = $2`, v.Project, v.Workflow)
	if err != nil {
		return err
	}
	_, err = sqlrow.InsertMany(ctx, c, s.db.Dialect(), "workflow_tasks", "", v.Tasks, func(t workflow.Task) sqlrow.Fields {
		return sqlrow.Row("project", v.Project, "workflow", v.Workflow, "pointer", t.Pointer, "name", sqlrow.Mended(t.Name))
	})
	return err
}

// insertVersion adds the version with its document, which other versions may share, and deletes the draft it was
// published from.
func insertVersion(ctx context.Context, c sqldb.Conn, v workflow.Version) error {
	_, err := c.ExecContext(ctx, `INSERT INTO documents (hash, canonical) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`,
		v.Hash, string(v.Canonical))
	if err != nil {
		return err
	}
	if _, err = sqlrow.Insert(ctx, c, "versions", versionFields(&v), ""); err != nil {
		return err
	}
	if err := insertResources(ctx, c, v); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, `DELETE FROM drafts WHERE project = $1 AND workflow = $2 AND source = $3`,
		v.Project, v.Workflow, v.Source)
	return err
}

// GetVersion implements [workflow.Store].
func (s *Store) GetVersion(ctx context.Context, project, name, version string) (v workflow.Version, err error) {
	err = s.db.Read(ctx, "get version", func(ctx context.Context, c sqldb.Conn) (err error) {
		defer func() {
			if err == nil {
				v.Resources, err = versionResources(ctx, c, v)
			}
		}()
		v, err = sqlrow.One(ctx, c, selectVersion(), []any{project, name, version}, scanVersion, func() error {
			if _, err := getWorkflow(ctx, c, project, name, ""); err != nil {
				return err
			}
			return apperror.New(apperror.NotFound, apperror.VersionNotFound,
				"workflow %q has no version %q: `signalbox workflow versions` shows those it has", name, version)
		})
		return err
	})
	return v, err
}

// ListVersions implements [workflow.Store].
func (s *Store) ListVersions(
	ctx context.Context, project, name string, after *workflow.VersionCursor, limit int,
) (list []workflow.Version, err error) {
	var w sqlrow.Where
	w.Is("project", "=", project)
	w.Is("workflow", "=", name)
	if after != nil {
		w.Conditions = append(w.Conditions,
			"(published_at, version) < ("+w.Arg(after.PublishedAt.UnixMicro())+", "+w.Arg(after.Version)+")")
	}
	query := `SELECT ` + sqlrow.Columns(versionHead) + ` FROM versions` +
		w.String() + ` ORDER BY published_at DESC, version DESC` + sqlrow.Limit(limit)
	err = s.db.Read(ctx, "list versions", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, query, w.Args, sqlrow.Scan(versionHead))
		if err == nil && len(list) == 0 {
			_, err = getWorkflow(ctx, c, project, name, "")
		}
		return err
	})
	return list, err
}
