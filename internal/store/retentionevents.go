package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// events deletes events in the order of their positions. Its locks make routing, claims, results and redeliveries wait.
func (s *retentionRows) events(ctx context.Context, p *retentionPage) error {
	routed, err := p.first(ctx, `SELECT routed FROM dispatchers WHERE project = $1`+s.db.Dialect().LockRows, p.cut.Project)
	if err != nil {
		return err
	}
	top, err := p.first(ctx, `SELECT position FROM events WHERE project = $1 AND received_at < $2
		ORDER BY received_at DESC, position DESC LIMIT 1`,
		p.cut.Project, p.before())
	if err != nil {
		return err
	}
	if p.cut.Keep > 0 {
		head, err := p.first(ctx, `SELECT head FROM inboxes WHERE project = $1`, p.cut.Project)
		if err != nil {
			return err
		}
		top = max(top, head-int64(p.cut.Keep))
	}
	positions, err := p.numbers(ctx,
		`SELECT position FROM events WHERE project = $1 AND position > $2 AND position <= $3 ORDER BY position`+
			sqlrow.Limit(p.limit),
		p.cut.Project, p.at.After.At, min(top, routed))
	if err != nil || len(positions) == 0 {
		return err
	}
	if len(positions) == p.limit {
		p.next = &retentionCursor{After: indexRow{At: positions[len(positions)-1]}}
	}
	needed, err := s.needed(ctx, p, positions[0], positions[len(positions)-1])
	if err != nil {
		return err
	}
	var gone []int64
	for _, position := range positions {
		if !needed[position] {
			gone = append(gone, position)
		}
	}
	return s.deleteEvents(ctx, p, gone)
}

// dueEvents is the state of a delivery.
type dueEvents struct {
	position int64
	run      string
	pending  bool
}

// needed returns the events of a range that must be kept.
func (s *retentionRows) needed(ctx context.Context, p *retentionPage, first, last int64) (map[int64]bool, error) {
	var deliveries []dueEvents
	for _, query := range []string{
		`SELECT d.position, d.run_id, d.status = 'pending' FROM deliveries d WHERE d.project = $1 AND d.position BETWEEN $2
			AND $3`,
		`SELECT x.position, d.run_id, d.status = 'pending' FROM delivery_events x JOIN deliveries d ON d.id = x.delivery
WHERE x.project = $1 AND x.position BETWEEN $2 AND $3`,
	} {
		found, err := sqlrow.Collect(ctx, p.c, query, []any{p.cut.Project, first, last},
			func(row sqlrow.Scanner) (d dueEvents, err error) {
				err = row.Scan(&d.position, &d.run, &d.pending)
				return d, err
			})
		if err != nil {
			return nil, err
		}
		deliveries = append(deliveries, found...)
	}
	ids := make([]string, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.run
	}
	still, err := s.open(ctx, p, ids)
	if err != nil {
		return nil, err
	}
	needed := map[int64]bool{}
	for _, d := range deliveries {
		needed[d.position] = needed[d.position] || d.pending || still[d.run]
	}
	sets, err := sqlrow.Collect(ctx, p.c, `SELECT positions FROM partials WHERE project = $1`, []any{p.cut.Project},
		func(row sqlrow.Scanner) (positions []int64, err error) {
			err = row.Scan(sqlrow.JSONInto(&positions))
			return positions, err
		})
	for _, positions := range sets {
		for _, position := range positions {
			needed[position] = true
		}
	}
	return needed, err
}

// deleteEvents deletes events with their deliveries, and the routings of ranges without events.
func (s *retentionRows) deleteEvents(ctx context.Context, p *retentionPage, gone []int64) error {
	for part := range sqlrow.Chunks(gone) {
		args := []any{p.cut.Project}
		for _, position := range part {
			args = append(args, position)
		}
		marks := sqlrow.Tuples(s.db.Dialect(), 1, 1, len(part))
		for _, table := range []string{"events", "deliveries", "delivery_events"} {
			if _, err := p.remove(ctx, table, `DELETE FROM `+table+` WHERE project = $1 AND position IN `+marks,
				args...); err != nil {
				return err
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	// The range of an event is the first one that does not end before it, so ranges before the first event have none.
	_, err := p.remove(ctx, "routings", `DELETE FROM routings WHERE project = $1 AND last < COALESCE(
(SELECT MIN(position) FROM events WHERE project = $1),
(SELECT routed FROM dispatchers WHERE project = $1))`, p.cut.Project)
	return err
}
