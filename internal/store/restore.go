package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/system"
)

// RestoredRows implements [system.RestoreSources].
func (s *Store) RestoredRows(ctx context.Context, since time.Time) (found system.RestoredRows, err error) {
	err = s.db.Read(ctx, "read what a restored database has", func(ctx context.Context, c sqldb.Conn) error {
		// The newest row of each project is the first one of an index.
		err := c.QueryRowContext(ctx,
			`SELECT MAX(newest) FROM (SELECT (SELECT MAX(created_at) FROM runs WHERE project = projects.name) AS newest
				FROM projects) AS p`).
			Scan(sqlrow.TimeInto(&found.Newest))
		if err != nil {
			return err
		}
		if since.IsZero() {
			return nil
		}
		return c.QueryRowContext(ctx,
			`SELECT COUNT(CASE WHEN action = $1 THEN 1 END), COUNT(CASE WHEN action = $2 THEN 1 END) FROM audit
				WHERE action IN ($1, $2) AND at >= $3`, audit.RunAdopt, audit.RunExecutionMissing, since.UnixMicro()).Scan(&found.Adopted, &found.Missing)
	})
	return found, err
}
