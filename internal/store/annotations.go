package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Annotations stores outages of Temporal and lists publications. It implements [annotation.Store] and
// [annotation.Publications], and is safe for concurrent use.
type Annotations struct{ db *sqldb.DB }

var (
	_ annotation.Store        = (*Annotations)(nil)
	_ annotation.Publications = (*Annotations)(nil)
)

func outageFields(o *annotation.Outage) sqlrow.Fields {
	return sqlrow.Row(
		"server", &o.Server, "since", sqlrow.TimeInto(&o.Since), "kind", &o.Kind, "seen_at", sqlrow.TimeInto(&o.SeenAt),
		"ended_at", sqlrow.TimeInto(&o.EndedAt),
	)
}

// WriteOutages implements [annotation.Store].
func (s *Annotations) WriteOutages(ctx context.Context, list []annotation.Outage) error {
	return s.db.Write(ctx, "write outages", func(ctx context.Context, c sqldb.Conn) error {
		for _, o := range list {
			_, err := sqlrow.Insert(ctx, c, "outages", outageFields(&o),
				sqlrow.Replace("server, since", "kind", "seen_at", "ended_at"))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ListOutages implements [annotation.Store].
func (s *Annotations) ListOutages(ctx context.Context, seen, to time.Time,
	limit int) (list []annotation.Outage, err error) {
	err = s.db.Read(ctx, "list outages", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(outageFields)+` FROM outages
WHERE since < $1 AND seen_at >= $2 ORDER BY since DESC, server`+sqlrow.Limit(limit),
			[]any{to.UnixMicro(), seen.UnixMicro()}, sqlrow.Scan(outageFields))
		return err
	})
	return list, err
}

// DeleteOutages deletes up to limit outages that were over before the given time, and returns how many.
func (s *Annotations) DeleteOutages(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	err = s.db.Exec(ctx, "delete outages", func(ctx context.Context, c sqldb.Conn) error {
		result, err := c.ExecContext(ctx, `DELETE FROM outages WHERE (server, since) IN (
SELECT server, since FROM outages WHERE since < $1 AND seen_at < $1`+sqlrow.Limit(limit)+`)`, before.UnixMicro())
		if err != nil {
			return err
		}
		deleted, err = result.RowsAffected()
		return err
	})
	return deleted, err
}

// ListPublications implements [annotation.Publications].
func (s *Annotations) ListPublications(ctx context.Context, project string, from, to time.Time,
	limit int) (list []workflow.Version, err error) {
	err = s.db.Read(ctx, "list publications", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT workflow, version, publisher, published_at FROM versions
WHERE project = $1 AND published_at >= $2 AND published_at < $3
ORDER BY published_at DESC, workflow, version`+sqlrow.Limit(limit),
			[]any{project, from.UnixMicro(), to.UnixMicro()}, func(row sqlrow.Scanner) (workflow.Version, error) {
				v := workflow.Version{Project: project}
				err := row.Scan(&v.Workflow, &v.Version, &v.Publisher, sqlrow.TimeInto(&v.PublishedAt))
				return v, err
			})
		return err
	})
	return list, err
}
