package store

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	ended = `status IN ('completed', 'failed', 'canceled', 'terminated', 'timed_out')`
	// endedAt equals the expression of the index: rows that other programs wrote may have no end time.
	endedAt = `COALESCE(ended_at, status_at, created_at)`
)

// tablesOfRuns lists the tables of rows that are deleted with their run, by run_id.
func tablesOfRuns() []string {
	return []string{"steps", "attempt_logs", "run_links", "run_verdicts", "task_failures", "quota_grants", "run_awaited",
		"originals", "run_legacy", "step_summaries", "task_summaries",
		"run_repairs", "run_labels", "run_terms", "run_warnings", "taken_events"}
}

// runs deletes runs: first those over the age limit, by their end, then those over the count limit, by their creation.
func (s *retentionRows) runs(ctx context.Context, p *retentionPage) error {
	if !p.at.ByCount && p.cut.Before.IsZero() {
		p.at.ByCount = true
	}
	if !p.at.ByCount {
		return s.oldRuns(ctx, p)
	}
	if p.at.End == nil {
		if p.cut.Keep == 0 {
			return nil
		}
		end, err := p.indexRows(ctx,
			`SELECT created_at, id FROM runs WHERE project = $1 ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET `+
				strconv.Itoa(p.cut.Keep), p.cut.Project)
		if err != nil || len(end) == 0 {
			return err
		}
		p.at.End = &end[0]
	}
	found, err := p.indexRows(ctx,
		`SELECT created_at, id FROM runs WHERE project = $1 AND (created_at, id) > ($2, $3) AND (created_at, id) <= ($4, $5)
ORDER BY created_at, id`+sqlrow.Limit(p.limit), p.cut.Project, p.at.After.At, p.at.After.ID, p.at.End.At, p.at.End.ID)
	if err != nil {
		return err
	}
	if len(found) == p.limit {
		p.next = &retentionCursor{ByCount: true, End: p.at.End, After: found[len(found)-1]}
	}
	return s.deleteRuns(ctx, p, found)
}

func (s *retentionRows) oldRuns(ctx context.Context, p *retentionPage) error {
	found, err := p.indexRows(ctx, `SELECT `+endedAt+`, id FROM runs WHERE project = $1 AND `+ended+` AND `+endedAt+` < $2
AND `+endedAt+` >= $3 AND (`+endedAt+` > $3 OR id > $4) ORDER BY `+endedAt+`, id`+sqlrow.Limit(p.limit),
		p.cut.Project, p.before(), p.at.After.At, p.at.After.ID)
	if err != nil {
		return err
	}
	switch {
	case len(found) == p.limit:
		p.next = &retentionCursor{After: found[len(found)-1]}
	case p.cut.Keep > 0:
		p.next = &retentionCursor{ByCount: true}
	}
	return s.deleteRuns(ctx, p, found)
}

func (p *retentionPage) indexRows(ctx context.Context, query string, args ...any) ([]indexRow, error) {
	return sqlrow.Collect(ctx, p.c, query, args, func(row sqlrow.Scanner) (v indexRow, err error) {
		err = row.Scan(&v.At, &v.ID)
		return v, err
	})
}

// deleteRuns deletes those of the runs that may be deleted, with all their rows.
func (s *retentionRows) deleteRuns(ctx context.Context, p *retentionPage, found []indexRow) error {
	ids := make([]string, len(found))
	for i, v := range found {
		ids[i] = v.ID
	}
	needed, err := s.neededRuns(ctx, p, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return needed[id] })
	return sqlrow.In(ctx, s.db.Dialect(), ids, []any{p.cut.EndedBefore.UnixMicro()},
		func(ctx context.Context, marks string, args []any) error {
			gone, err := sqlrow.Collect(ctx, p.c,
				`DELETE FROM runs WHERE `+ended+` AND `+endedAt+` < $1 AND id IN `+marks+` RETURNING id`, args, sqlrow.ScanText)
			if err != nil {
				return err
			}
			p.deleted["runs"] += int64(len(gone))
			if err := s.noteImported(ctx, p, gone); err != nil {
				return err
			}
			return s.deleteOfRuns(ctx, p, gone)
		})
}

// neededRuns returns those of the runs that have an open parent, an open child, or a pending delivery or item.
//
// Each query looks rows up by key: with a join, a planner that estimates one table as small would scan the other.
func (s *retentionRows) neededRuns(ctx context.Context, p *retentionPage, ids []string) (map[string]bool, error) {
	needed := map[string]bool{}
	relatives := map[string][]string{}
	err := sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
		for _, query := range []string{
			`SELECT parent, run_id FROM run_links WHERE parent <> '' AND run_id IN ` + marks,
			`SELECT run_id, parent FROM run_links WHERE parent <> '' AND parent IN ` + marks,
		} {
			_, err := sqlrow.Collect(ctx, p.c, query, args, func(row sqlrow.Scanner) (pair [2]string, err error) {
				err = row.Scan(&pair[0], &pair[1])
				relatives[pair[0]] = append(relatives[pair[0]], pair[1])
				return pair, err
			})
			if err != nil {
				return err
			}
		}
		for _, table := range []string{"deliveries", "batch_items"} {
			pending, err := sqlrow.Collect(ctx, p.c,
				`SELECT run_id FROM `+table+` WHERE status = 'pending' AND run_id IN `+marks, args, sqlrow.ScanText)
			if err != nil {
				return err
			}
			for _, id := range pending {
				needed[id] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	still, err := s.open(ctx, p, slices.Collect(maps.Keys(relatives)))
	for relative := range still {
		for _, id := range relatives[relative] {
			needed[id] = true
		}
	}
	return needed, err
}

// open returns those of the runs that are open.
func (s *retentionRows) open(ctx context.Context, p *retentionPage, ids []string) (map[string]bool, error) {
	still := map[string]bool{}
	err := sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(ids), nil,
		func(ctx context.Context, marks string, args []any) error {
			list, err := sqlrow.Collect(ctx, p.c, `SELECT id FROM runs WHERE status IN `+openStatuses+` AND id IN `+marks, args,
				sqlrow.ScanText)
			for _, id := range list {
				still[id] = true
			}
			return err
		})
	return still, err
}

// noteImported stores the IDs of imported runs: their source still has them, and the next import would copy them again.
func (s *retentionRows) noteImported(ctx context.Context, p *retentionPage, gone []string) error {
	return sqlrow.In(ctx, s.db.Dialect(), gone, nil, func(ctx context.Context, marks string, args []any) error {
		_, err := p.c.ExecContext(ctx,
			`INSERT INTO legacy_removed (run_id) SELECT run_id FROM run_legacy WHERE run_id IN `+marks+
				` ON CONFLICT DO NOTHING`, args...)
		return err
	})
}

func (s *retentionRows) deleteOfRuns(ctx context.Context, p *retentionPage, gone []string) error {
	return sqlrow.In(ctx, s.db.Dialect(), gone, nil, func(ctx context.Context, marks string, args []any) error {
		for _, table := range tablesOfRuns() {
			if _, err := p.remove(ctx, table, `DELETE FROM `+table+` WHERE run_id IN `+marks, args...); err != nil {
				return err
			}
		}
		return nil
	})
}
