package store

import (
	"context"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func resourceFields(r *workflow.Resource) sqlrow.Fields {
	return sqlrow.Row("uri", &r.URI, "hash", &r.Hash, "size", &r.Size, "loaded_at", sqlrow.TimeInto(&r.LoadedAt))
}

// insertResources adds the resources of a version, whose contents other versions may share.
func insertResources(ctx context.Context, c sqldb.Conn, v workflow.Version) error {
	for _, r := range v.Resources {
		if err := insertContent(ctx, c, r.Hash, r.Content); err != nil {
			return err
		}
		fields := append(sqlrow.Row("project", &v.Project, "workflow", &v.Workflow, "version", &v.Version),
			resourceFields(&r)...)
		if _, err := sqlrow.Insert(ctx, c, "version_resources", fields, ""); err != nil {
			return err
		}
	}
	return nil
}

func insertContent(ctx context.Context, c sqldb.Conn, hash string, content []byte) error {
	if err := sqlrow.Storable("resource", string(content)); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, `INSERT INTO resources (hash, content) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`,
		hash, string(content))
	return err
}

// versionResources reads the resources of a version, without their contents.
func versionResources(ctx context.Context, c sqldb.Conn, v workflow.Version) ([]workflow.Resource, error) {
	return sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(resourceFields)+` FROM version_resources
WHERE project = $1 AND workflow = $2 AND version = $3 ORDER BY uri`, []any{v.Project, v.Workflow, v.Version},
		sqlrow.Scan(resourceFields))
}

// Resources implements [workflow.Store].
func (s *Store) Resources(ctx context.Context, hashes []string) (contents map[string][]byte, err error) {
	contents = make(map[string][]byte, len(hashes))
	err = s.db.Read(ctx, "get resources", func(ctx context.Context, c sqldb.Conn) error {
		for _, hash := range hashes {
			found, err := sqlrow.Collect(ctx, c, `SELECT content FROM resources WHERE hash = $1`, []any{hash}, sqlrow.ScanText)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return apperror.New(apperror.NotFound, apperror.VersionNotFound, "the store has no resource with hash %q", hash)
			}
			contents[hash] = []byte(found[0])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading resources: %w", err)
	}
	return contents, nil
}
