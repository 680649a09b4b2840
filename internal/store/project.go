package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// CreateProject implements [project.Store].
func (s *Store) CreateProject(ctx context.Context, p project.Project, e audit.Entry) error {
	if err := storable("description", p.Description); err != nil {
		return err
	}
	return s.db.Write(ctx, "create project", func(ctx context.Context, c sqldb.Conn) error {
		made, err := affected(ctx, c,
			`INSERT INTO projects (name, description, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`,
			p.Name, p.Description, p.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		if !made {
			return fault.New(fault.Exists, fault.ProjectExists, "project %q exists already", p.Name)
		}
		return writeAudit(ctx, c, e)
	})
}

// GetProject implements [project.Store].
func (s *Store) GetProject(ctx context.Context, name string) (p project.Project, err error) {
	err = s.db.Read(ctx, "get project", func(ctx context.Context, c sqldb.Conn) (err error) {
		p, err = one(ctx, c, `SELECT name, description, created_at FROM projects WHERE name = $1`, []any{name},
			scanProject, func() error { return noProject(name) })
		return err
	})
	return p, err
}

// ListProjects implements [project.Store].
func (s *Store) ListProjects(ctx context.Context, after string, limit int) (list []project.Project, err error) {
	err = s.db.Read(ctx, "list projects", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = collect(ctx, c,
			`SELECT name, description, created_at FROM projects WHERE name > $1 ORDER BY name`+limited(limit),
			[]any{after}, scanProject)
		return err
	})
	return list, err
}

func scanProject(row scanner) (p project.Project, err error) {
	err = row.Scan(&p.Name, &p.Description, timeInto{&p.CreatedAt})
	return p, err
}

func noProject(name string) error {
	return fault.New(fault.NotFound, fault.ProjectNotFound,
		"project %q does not exist: `signalbox project list` shows those that do", name)
}

// needProject tells whether a project is there. An empty name means all projects.
func needProject(ctx context.Context, c sqldb.Conn, name string) error {
	if name == "" {
		return nil
	}
	ok, err := exists(ctx, c, `SELECT 1 FROM projects WHERE name = $1`, name)
	if err == nil && !ok {
		return noProject(name)
	}
	return err
}
