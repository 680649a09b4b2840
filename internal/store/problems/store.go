// Package problems finds problems in the store's database, and stores what was found and what operators did about it. It implements
// [problem.Source], [problem.Store] and [problem.RecorderStore], which define the behaviour; package store opens it:
//
//	s, err := store.Open(ctx, …)
//	groups, err := s.Problems().StuckGroups(ctx, projects)
package problems

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Store finds and stores problems. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct{ db *sqldb.DB }

var (
	_ problem.Source        = (*Store)(nil)
	_ problem.Store         = (*Store)(nil)
	_ problem.RecorderStore = (*Store)(nil)
)

// New returns a store on an open database. Package store migrates its schema.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

const columns = `id, project, first_seen, last_seen, resolved_at, revision, acknowledged_at, acknowledger, snooze_until, snooze_count, owner, note, content`

// Exclusive implements [problem.RecorderStore].
func (s *Store) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

// Problems implements [problem.Store].
func (s *Store) Problems(ctx context.Context, projects []string) (list []problem.Record, err error) {
	err = s.db.Read(ctx, "list problems", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), nil, func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c, `SELECT `+columns+` FROM problems WHERE project IN `+marks+` ORDER BY id`, args, scan)
			list = append(list, found...)
			return err
		})
	})
	return list, err
}

func scan(row sqlrow.Scanner) (r problem.Record, err error) {
	var id, project string
	err = row.Scan(&id, &project, sqlrow.TimeInto(&r.FirstSeen), sqlrow.TimeInto(&r.LastSeen), sqlrow.TimeInto(&r.ResolvedAt), &r.Revision,
		sqlrow.TimeInto(&r.AcknowledgedAt), &r.Acknowledger, sqlrow.TimeInto(&r.SnoozeUntil), &r.SnoozeCount, &r.Owner, &r.Note,
		sqlrow.JSONInto(&r.Finding))
	r.ID, r.Project = id, project
	return r, err
}

func values(r problem.Record) ([]any, error) {
	content, err := sqlrow.AsJSON(r.Finding, false)
	if err != nil {
		return nil, err
	}
	return []any{
		r.ID, r.Project, sqlrow.Micros(r.FirstSeen), sqlrow.Micros(r.LastSeen), sqlrow.Micros(r.ResolvedAt), r.Revision,
		sqlrow.Micros(r.AcknowledgedAt), r.Acknowledger, sqlrow.Micros(r.SnoozeUntil), r.SnoozeCount, r.Owner, r.Note, content,
	}, nil
}

const (
	insertText = `INSERT INTO problems (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (id) DO `
	// replaceText replaces the whole row if it has the revision $14.
	replaceText = `UPDATE problems SET project = $2, first_seen = $3, last_seen = $4, resolved_at = $5, revision = $6, acknowledged_at = $7,
acknowledger = $8, snooze_until = $9, snooze_count = $10, owner = $11, note = $12, content = $13 WHERE id = $1 AND revision = $14`
)

// Handle implements [problem.Store].
func (s *Store) Handle(ctx context.Context, r problem.Record, before int64, absent bool, e audit.Entry) (written bool, err error) {
	for field, text := range map[string]string{"note": r.Note, "owner": r.Owner} {
		if err := sqlrow.Storable(field, text); err != nil {
			return false, err
		}
	}
	args, err := values(r)
	if err != nil {
		return false, err
	}
	err = s.db.Write(ctx, "change a problem", func(ctx context.Context, c sqldb.Conn) (err error) {
		if absent {
			written, err = sqlrow.Affected(ctx, c, insertText+`NOTHING`, args...)
		} else {
			written, err = sqlrow.Affected(ctx, c, replaceText, append(slices.Clip(args), before)...)
		}
		if err != nil || !written {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return written && err == nil, err
}

// Record implements [problem.RecorderStore].
func (s *Store) Record(ctx context.Context, list []problem.Recording) error {
	if len(list) == 0 {
		return nil
	}
	return s.db.Write(ctx, "record problems", func(ctx context.Context, c sqldb.Conn) error {
		for _, r := range list {
			args, err := values(r.Record)
			if err != nil {
				return err
			}
			switch {
			case r.Gone:
				_, err = c.ExecContext(ctx, `DELETE FROM problems WHERE id = $1 AND revision = $2 AND resolved_at IS NOT NULL`, r.ID, r.Revision)
			case r.Again:
				_, err = c.ExecContext(ctx, replaceText, append(args, r.Revision-1)...)
			default:
				_, err = c.ExecContext(ctx, insertText+`UPDATE SET last_seen = excluded.last_seen, resolved_at = excluded.resolved_at,
content = excluded.content WHERE problems.revision = excluded.revision`, args...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
