package retention

import (
	"context"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	open  = `('queued', 'running', 'waiting')`
	ended = `status IN ('completed', 'failed', 'canceled', 'terminated', 'timed_out')`
	// endedAt is the index's own words: rows that other programs made need not have the time of their end.
	endedAt = `COALESCE(ended_at, status_at, created_at)`
)

// OfRuns are the tables whose rows go with their run, by its run_id.
func OfRuns() []string {
	return []string{"steps", "run_links", "run_verdicts", "task_failures", "quota_grants"}
}

// runs deletes runs: first those that are too old, by their end, then those that are too many, by their creation.
func (s *Store) runs(ctx context.Context, p *page) error {
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
		end, err := p.spots(ctx, `SELECT created_at, id FROM runs WHERE project = $1 ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET `+
			strconv.Itoa(p.cut.Keep), p.cut.Project)
		if err != nil || len(end) == 0 {
			return err
		}
		p.at.End = &end[0]
	}
	found, err := p.spots(ctx, `SELECT created_at, id FROM runs WHERE project = $1 AND (created_at, id) > ($2, $3) AND (created_at, id) <= ($4, $5)
ORDER BY created_at, id`+sqlrow.Limit(p.limit), p.cut.Project, p.at.After.At, p.at.After.ID, p.at.End.At, p.at.End.ID)
	if err != nil {
		return err
	}
	if len(found) == p.limit {
		p.next = &place{ByCount: true, End: p.at.End, After: found[len(found)-1]}
	}
	return s.deleteRuns(ctx, p, found)
}

func (s *Store) oldRuns(ctx context.Context, p *page) error {
	found, err := p.spots(ctx, `SELECT `+endedAt+`, id FROM runs WHERE project = $1 AND `+ended+` AND `+endedAt+` < $2
AND `+endedAt+` >= $3 AND (`+endedAt+` > $3 OR id > $4) ORDER BY `+endedAt+`, id`+sqlrow.Limit(p.limit),
		p.cut.Project, p.before(), p.at.After.At, p.at.After.ID)
	if err != nil {
		return err
	}
	switch {
	case len(found) == p.limit:
		p.next = &place{After: found[len(found)-1]}
	case p.cut.Keep > 0:
		p.next = &place{ByCount: true}
	}
	return s.deleteRuns(ctx, p, found)
}

func (p *page) spots(ctx context.Context, query string, args ...any) ([]spot, error) {
	return sqlrow.Collect(ctx, p.c, query, args, func(row sqlrow.Scanner) (v spot, err error) { return v, row.Scan(&v.At, &v.ID) })
}

// deleteRuns deletes those of the runs that may go, with all that is theirs.
func (s *Store) deleteRuns(ctx context.Context, p *page, found []spot) error {
	ids := make([]string, len(found))
	for i, v := range found {
		ids[i] = v.ID
	}
	return sqlrow.In(ctx, s.db.Dialect(), ids, []any{p.cut.Settled.UnixMicro()}, func(ctx context.Context, marks string, args []any) error {
		gone, err := sqlrow.Collect(ctx, p.c, `DELETE FROM runs WHERE `+ended+` AND `+endedAt+` < $1
AND NOT EXISTS (SELECT 1 FROM run_links l JOIN runs p ON p.id = l.parent WHERE l.run_id = runs.id AND p.status IN `+open+`)
AND NOT EXISTS (SELECT 1 FROM run_links l JOIN runs c ON c.id = l.run_id WHERE l.parent = runs.id AND l.parent <> '' AND c.status IN `+open+`)
AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.run_id = runs.id AND d.status = 'pending')
AND NOT EXISTS (SELECT 1 FROM batch_items i WHERE i.run_id = runs.id AND i.status = 'pending')
AND id IN `+marks+` RETURNING id`, args, sqlrow.ScanText)
		if err != nil {
			return err
		}
		p.deleted["runs"] += int64(len(gone))
		return s.deleteOfRuns(ctx, p, gone)
	})
}

func (s *Store) deleteOfRuns(ctx context.Context, p *page, gone []string) error {
	return sqlrow.In(ctx, s.db.Dialect(), gone, nil, func(ctx context.Context, marks string, args []any) error {
		for _, table := range OfRuns() {
			if _, err := p.remove(ctx, table, `DELETE FROM `+table+` WHERE run_id IN `+marks, args...); err != nil {
				return err
			}
		}
		return nil
	})
}
