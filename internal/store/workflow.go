package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// hasDraft is computed from the drafts of the workflow, so that it always agrees with them.
const hasDraft = `EXISTS (SELECT 1 FROM drafts d WHERE d.project = w.project AND d.workflow = w.name)`

const selectWorkflow = `SELECT w.project, w.name, w.title, w.summary, w.state, w.latest_version,
COALESCE((SELECT v.hash FROM versions v WHERE v.project = w.project AND v.workflow = w.name
AND v.version = w.latest_version), ''), ` + hasDraft +
	`, w.pause_reason, w.created_at, w.updated_at FROM workflows w`

func scanWorkflow(row sqlrow.Scanner) (w workflow.Workflow, err error) {
	err = row.Scan(&w.Project, &w.Name, &w.Title, &w.Summary, &w.State, &w.LatestVersion, &w.LatestHash, &w.HasDraft,
		&w.PauseReason, sqlrow.TimeInto(&w.CreatedAt), sqlrow.TimeInto(&w.UpdatedAt))
	return w, err
}

// GetWorkflow implements [workflow.Store].
func (s *Store) GetWorkflow(ctx context.Context, project, name string) (w workflow.Workflow, err error) {
	err = s.db.Read(ctx, "get workflow", func(ctx context.Context, c sqldb.Conn) (err error) {
		w, err = getWorkflow(ctx, c, project, name, "")
		return err
	})
	return w, err
}

// getWorkflow reads a workflow's row; lock is empty or the dialect's suffix that locks the row.
func getWorkflow(ctx context.Context, c sqldb.Conn, project, name, lock string) (workflow.Workflow, error) {
	return sqlrow.One(ctx, c, selectWorkflow+` WHERE w.project = $1 AND w.name = $2`+lock, []any{project, name},
		scanWorkflow, func() error { return noWorkflow(ctx, c, project, name) })
}

// noWorkflow returns the error for a missing project or workflow.
func noWorkflow(ctx context.Context, c sqldb.Conn, project, name string) error {
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	return apperror.New(apperror.NotFound, apperror.WorkflowNotFound,
		"workflow %q does not exist in project %q: `signalbox workflow list` shows those that do", name, project)
}

// FindByShortName implements [workflow.Store].
func (s *Store) FindByShortName(ctx context.Context, project, short string, limit int) (names []string, err error) {
	err = s.db.Read(ctx, "find workflow", func(ctx context.Context, c sqldb.Conn) (err error) {
		names, err = sqlrow.Collect(ctx, c,
			`SELECT name FROM workflows WHERE project = $1 AND short_name = $2 ORDER BY name`+sqlrow.Limit(limit),
			[]any{project, short}, sqlrow.ScanText)
		return err
	})
	return names, err
}

// ListWorkflows implements [workflow.Store].
func (s *Store) ListWorkflows(ctx context.Context, f workflow.Filter) (list []workflow.Workflow, err error) {
	var w sqlrow.Where
	w.IsText("w.project", f.Project)
	sqlrow.OneOf(&w, "w.project", f.Projects)
	if f.After != nil {
		w.Conditions = append(w.Conditions, "(w.project, w.name) > ("+w.Arg(f.After.Project)+", "+w.Arg(f.After.Name)+")")
	}
	if f.Text != "" {
		// SQLite's LIKE ignores case and Postgres' does not; names are ASCII.
		w.Conditions = append(w.Conditions,
			"lower(w.name) LIKE "+w.Arg(sqlrow.Contains(strings.ToLower(f.Text)))+" ESCAPE '!'")
	}
	sqlrow.OneOf(&w, "w.state", f.States)
	err = s.db.Read(ctx, "list workflows", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, selectWorkflow+w.String()+` ORDER BY w.project, w.name`+sqlrow.Limit(f.Limit),
			w.Args, scanWorkflow)
		if err == nil && len(list) == 0 && f.Project != "" {
			err = ledger.NeedProject(ctx, c, f.Project)
		}
		return err
	})
	return list, err
}

// SaveDraft implements [workflow.Store].
func (s *Store) SaveDraft(ctx context.Context, d workflow.Draft, e audit.Entry) (w workflow.Workflow, err error) {
	if err := sqlrow.Storable("source", d.Source); err != nil {
		return w, err
	}
	err = s.db.Write(ctx, "save draft", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := lockWorkflow(ctx, c, d.Project, d.Workflow, d.SavedAt); err != nil {
			return err
		}
		_, err = c.ExecContext(ctx,
			`UPDATE workflows SET title = $3, summary = $4, updated_at = $5 WHERE project = $1 AND name = $2`,
			d.Project, d.Workflow, sqlrow.Mended(d.Title), sqlrow.Mended(d.Summary), d.SavedAt.UnixMicro())
		if err != nil {
			return err
		}
		all := draftFields(&d)
		_, err = sqlrow.Insert(ctx, c, "drafts", all, all.ReplaceAll("project, workflow"))
		if err != nil {
			return err
		}
		if w, err = getWorkflow(ctx, c, d.Project, d.Workflow, ""); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return w, err
}

// lockWorkflow creates the workflow if it is new. Its row is locked until the transaction ends, so that drafts,
// publications and deletions of one workflow are serialised.
func lockWorkflow(ctx context.Context, c sqldb.Conn, project, name string, at time.Time) error {
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	short := name[strings.LastIndexByte(name, '/')+1:]
	_, err := c.ExecContext(ctx, `INSERT INTO workflows
(project, name, short_name, title, summary, state, latest_version, pause_reason, created_at, updated_at)
VALUES ($1, $2, $3, '', '', $4, '', '', $5, $5)
ON CONFLICT (project, name) DO UPDATE SET short_name = excluded.short_name`,
		project, name, short, workflow.StateDraft, at.UnixMicro())
	return err
}

// GetDraft implements [workflow.Store].
func (s *Store) GetDraft(ctx context.Context, project, name string) (d workflow.Draft, err error) {
	err = s.db.Read(ctx, "get draft", func(ctx context.Context, c sqldb.Conn) (err error) {
		d, err = sqlrow.One(ctx, c, `SELECT `+sqlrow.Columns(draftFields)+` FROM drafts
WHERE project = $1 AND workflow = $2`, []any{project, name}, sqlrow.Scan(draftFields), func() error {
			if _, err := getWorkflow(ctx, c, project, name, ""); err != nil {
				return err
			}
			return apperror.New(apperror.NotFound, apperror.DraftNotFound,
				"workflow %q has no draft: `signalbox workflow save` makes one", name)
		})
		return err
	})
	return d, err
}

func draftFields(d *workflow.Draft) sqlrow.Fields {
	return sqlrow.Row(
		"project", &d.Project, "workflow", &d.Workflow, "title", sqlrow.MendedInto(&d.Title),
		"summary", sqlrow.MendedInto(&d.Summary), "source", &d.Source, "saved_at", sqlrow.TimeInto(&d.SavedAt),
	)
}

// SetPaused implements [workflow.Store]. A workflow that was never published cannot be paused.
func (s *Store) SetPaused(ctx context.Context, project, name string, paused bool, reason string,
	e audit.Entry) (w workflow.Workflow, err error) {
	if err := sqlrow.Storable("reason", reason); err != nil {
		return w, err
	}
	err = s.db.Write(ctx, "pause workflow", func(ctx context.Context, c sqldb.Conn) (err error) {
		if w, err = getWorkflow(ctx, c, project, name, lockOf(s.db, "w")); err != nil {
			return err
		}
		w, _, err = setPaused(ctx, c, w, paused, reason, e)
		return err
	})
	return w, err
}

// setPaused pauses or unpauses a locked workflow. It returns false, and writes no audit entry, when the workflow is in
// that state already.
func setPaused(ctx context.Context, c sqldb.Conn, w workflow.Workflow, paused bool, reason string,
	e audit.Entry) (workflow.Workflow, bool, error) {
	if (w.State == workflow.StatePaused) == paused {
		return w, false, nil
	}
	if w.State == workflow.StateDraft {
		return w, false, workflow.NotPublished(w.Name)
	}
	w.State, w.PauseReason, w.UpdatedAt = workflow.StatePublished, "", sqlrow.Kept(e.Time)
	if paused {
		w.State, w.PauseReason = workflow.StatePaused, reason
	}
	if _, err := c.ExecContext(ctx,
		`UPDATE workflows SET state = $3, pause_reason = $4, updated_at = $5 WHERE project = $1 AND name = $2`,
		w.Project, w.Name, w.State, w.PauseReason, w.UpdatedAt.UnixMicro()); err != nil {
		return w, false, err
	}
	return w, true, ledger.Add(ctx, c, e)
}

// SetOverride implements [workflow.Store].
func (s *Store) SetOverride(ctx context.Context, project, name string, o event.Override, e audit.Entry) error {
	stored, err := sqlrow.AsJSON(o, o.IsZero())
	if err != nil {
		return err
	}
	return s.db.Write(ctx, "change schedule", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := getWorkflow(ctx, c, project, name, lockOf(s.db, "w")); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx,
			`UPDATE workflows SET schedule = $3, updated_at = $4 WHERE project = $1 AND name = $2`, project, name, stored,
			sqlrow.Micros(e.Time)); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
}

// lockOf returns the suffix that locks the rows of one table of a query.
func lockOf(db *sqldb.DB, alias string) string {
	lock := db.Dialect().LockRows
	if lock == "" {
		return ""
	}
	return lock + " OF " + alias
}

// DeleteWorkflow implements [workflow.Store].
func (s *Store) DeleteWorkflow(ctx context.Context, project, name string, e audit.Entry) error {
	return s.db.Write(ctx, "delete workflow", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := getWorkflow(ctx, c, project, name, lockOf(s.db, "w")); err != nil {
			return err
		}
		var open int64
		err := c.QueryRowContext(ctx,
			`SELECT COUNT(*) FROM runs WHERE project = $1 AND workflow = $2 AND `+executedHere+` AND status IN `+openStatuses,
			project, name).Scan(&open)
		if err != nil {
			return err
		}
		if open > 0 {
			return apperror.New(apperror.Refused, apperror.WorkflowHasOpenRuns,
				"workflow %q has %d open runs: wait for them or cancel them first", name, open)
		}
		for _, statement := range []string{
			`DELETE FROM drafts WHERE project = $1 AND workflow = $2`,
			`DELETE FROM workflow_tasks WHERE project = $1 AND workflow = $2`,
			`DELETE FROM version_resources WHERE project = $1 AND workflow = $2`,
			`DELETE FROM versions WHERE project = $1 AND workflow = $2`,
			`DELETE FROM workflows WHERE project = $1 AND name = $2`,
		} {
			if _, err := c.ExecContext(ctx, statement, project, name); err != nil {
				return err
			}
		}
		return ledger.Add(ctx, c, e)
	})
}

// Document implements [workflow.Store].
func (s *Store) Document(ctx context.Context, hash string) ([]byte, error) {
	var text string
	err := s.db.Read(ctx, "get document", func(ctx context.Context, c sqldb.Conn) error {
		err := c.QueryRowContext(ctx, `SELECT canonical FROM documents WHERE hash = $1`, hash).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return apperror.New(apperror.NotFound, apperror.VersionNotFound, "the store has no document with hash %q", hash)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return []byte(text), nil
}
