package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Problems finds problems, and stores what was found and what operators did about it. It implements [problem.Source],
// [problem.Store] and [problem.RecorderStore], and is safe for concurrent use.
type Problems struct{ db *sqldb.DB }

var (
	_ problem.Source        = (*Problems)(nil)
	_ problem.Store         = (*Problems)(nil)
	_ problem.RecorderStore = (*Problems)(nil)
)

// problemFields begin with the content: a scan sets all of the finding with it, and then the columns of the finding.
func problemFields(r *problem.Record) sqlrow.Fields {
	return sqlrow.Row(
		"content", sqlrow.JSONInto(&r.Finding), "id", &r.ID, "project", &r.Project,
		"first_seen", sqlrow.TimeInto(&r.FirstSeen), "last_seen", sqlrow.TimeInto(&r.LastSeen),
		"resolved_at", sqlrow.TimeInto(&r.ResolvedAt), "revision", &r.Revision,
		"acknowledged_at", sqlrow.TimeInto(&r.AcknowledgedAt), "acknowledger", &r.Acknowledger,
		"snooze_until", sqlrow.TimeInto(&r.SnoozeUntil), "snooze_count", &r.SnoozeCount, "owner", &r.Owner,
		"note", &r.Note,
	)
}

// Exclusive implements [problem.RecorderStore].
func (s *Problems) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

// Problems implements [problem.Store].
func (s *Problems) Problems(ctx context.Context, projects []string) (list []problem.Record, err error) {
	err = s.db.Read(ctx, "list problems", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), nil,
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c,
					`SELECT `+sqlrow.Columns(problemFields)+` FROM problems WHERE project IN `+marks+
						` ORDER BY id`, args, sqlrow.Scan(problemFields))
				list = append(list, found...)
				return err
			})
	})
	return list, err
}

// replace writes the whole row of a problem if it has a revision.
func (s *Problems) replace(ctx context.Context, c sqldb.Conn, r problem.Record, revision int64) (bool, error) {
	all := problemFields(&r)
	args, err := all.Args()
	if err != nil {
		return false, err
	}
	n, d := len(args), s.db.Dialect()
	return sqlrow.Affected(ctx, c, `UPDATE problems SET (`+all.Names("")+`) = `+sqlrow.Tuples(d, 0, 1, n)+
		` WHERE id = `+d.Mark(n+1)+` AND revision = `+d.Mark(n+2), append(args, r.ID, revision)...)
}

// Handle implements [problem.Store].
func (s *Problems) Handle(ctx context.Context, r problem.Record, before int64, absent bool,
	e audit.Entry) (written bool, err error) {
	for field, text := range map[string]string{"note": r.Note, "owner": r.Owner} {
		if err := sqlrow.Storable(field, text); err != nil {
			return false, err
		}
	}
	err = s.db.Write(ctx, "change a problem", func(ctx context.Context, c sqldb.Conn) (err error) {
		if absent {
			written, err = sqlrow.Insert(ctx, c, "problems", problemFields(&r), ` ON CONFLICT (id) DO NOTHING`)
		} else {
			written, err = s.replace(ctx, c, r, before)
		}
		if err != nil || !written {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return written && err == nil, err
}

// Record implements [problem.RecorderStore].
func (s *Problems) Record(ctx context.Context, list []problem.Recording) error {
	if len(list) == 0 {
		return nil
	}
	return s.db.Write(ctx, "record problems", func(ctx context.Context, c sqldb.Conn) error {
		for _, r := range list {
			var err error
			switch {
			case r.Gone:
				_, err = c.ExecContext(ctx, `DELETE FROM problems WHERE id = $1 AND revision = $2 AND resolved_at IS NOT NULL`,
					r.ID, r.Revision)
			case r.Again:
				_, err = s.replace(ctx, c, r.Record, r.Revision-1)
			default:
				_, err = sqlrow.Insert(ctx, c, "problems", problemFields(&r.Record),
					sqlrow.Replace("id", "last_seen", "resolved_at", "content")+` WHERE problems.revision = excluded.revision`)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
