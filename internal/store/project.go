package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

func projectFields(p *project.Project) sqlrow.Fields {
	return sqlrow.Row(
		"name", &p.Name, "description", &p.Description, "created_at", sqlrow.TimeInto(&p.CreatedAt),
		"max_steps", &p.Settings.MaxSteps, "end_poison", &p.Settings.EndPoison,
		"max_generation", &p.Settings.MaxGeneration,
		"runners", sqlrow.JSONInto(&p.Settings.Runners), "images", sqlrow.JSONInto(&p.Settings.Images),
		"program_limits", sqlrow.JSONInto(&p.Settings.ProgramLimits),
		"parked_at", sqlrow.TimeInto(&p.ParkedAt),
	)
}

// CreateProject implements [project.Store].
func (s *Store) CreateProject(ctx context.Context, p project.Project, e audit.Entry) error {
	if err := sqlrow.Storable("description", p.Description); err != nil {
		return err
	}
	return s.db.Write(ctx, "create project", func(ctx context.Context, c sqldb.Conn) error {
		made, err := sqlrow.Insert(ctx, c, "projects", projectFields(&p), ` ON CONFLICT (name) DO NOTHING`)
		if err != nil {
			return err
		}
		if !made {
			return apperror.New(apperror.Exists, apperror.ProjectExists, "project %q exists already", p.Name)
		}
		return ledger.Add(ctx, c, e)
	})
}

// UpdateProject implements [project.Store].
func (s *Store) UpdateProject(ctx context.Context, name string, change project.Change,
	e audit.Entry) (p project.Project, err error) {
	if change.Description != nil {
		if err := sqlrow.Storable("description", *change.Description); err != nil {
			return p, err
		}
	}
	encode := func(set bool, given any) (value any) {
		if set && err == nil {
			value, err = sqlrow.AsJSON(given, false)
		}
		return value
	}
	runners, images := encode(change.Runners != nil, change.Runners), encode(change.Images != nil, change.Images)
	limits := encode(change.ProgramLimits != nil, change.ProgramLimits)
	if err != nil {
		return p, err
	}
	err = s.db.Write(ctx, "update project", func(ctx context.Context, c sqldb.Conn) (err error) {
		p, err = sqlrow.One(ctx, c, `
			UPDATE projects SET description = COALESCE($2, description), max_steps = COALESCE($3, max_steps),
			end_poison = COALESCE($4, end_poison), max_generation = COALESCE($5, max_generation),
			runners = COALESCE($6, runners), images = COALESCE($7, images),
			program_limits = COALESCE($8, program_limits)
			WHERE name = $1 RETURNING `+sqlrow.Columns(projectFields),
			[]any{name, change.Description, change.MaxSteps, change.EndPoison, change.MaxGeneration, runners, images, limits},
			sqlrow.Scan(projectFields), func() error {
				return ledger.NoProject(name)
			})
		if err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return p, err
}

// GetProject implements [project.Store].
func (s *Store) GetProject(ctx context.Context, name string) (p project.Project, err error) {
	err = s.db.Read(ctx, "get project", func(ctx context.Context, c sqldb.Conn) (err error) {
		p, err = sqlrow.One(ctx, c, `SELECT `+sqlrow.Columns(projectFields)+` FROM projects WHERE name = $1`, []any{name},
			sqlrow.Scan(projectFields), func() error { return ledger.NoProject(name) })
		return err
	})
	return p, err
}

// ListProjects implements [project.Store].
func (s *Store) ListProjects(ctx context.Context, after string, limit int) (list []project.Project, err error) {
	err = s.db.Read(ctx, "list projects", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(projectFields)+` FROM projects WHERE name > $1 ORDER BY name`+sqlrow.Limit(limit),
			[]any{after}, sqlrow.Scan(projectFields))
		return err
	})
	return list, err
}
