package events

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Backlogs returns the backlog of each project that is not parked, sorted by name: a parked one has none. It depends on
// the database alone, whether or not a process serves the project. A dispatcher is an orphan if its last owner has not
// written to the database for orphanAfter, and work has been due for longer than that without progress. A project
// without a dispatcher so far may have events that wait, and is no orphan.
func (s *Deliveries) Backlogs(ctx context.Context, orphanAfter time.Duration) (list []event.Backlog, err error) {
	now := s.db.Dialect().Now
	err = s.db.Read(ctx, "read backlogs", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		var at time.Time
		if err := c.QueryRowContext(ctx, `SELECT `+now).Scan(sqlrow.TimeInto(&at)); err != nil {
			return err
		}
		list, err = sqlrow.Collect(ctx, c,
			`SELECT p.name, COALESCE(i.head, 0), COALESCE(d.routed, 0), COALESCE(d.pending, 0), d.progressed_at,
`+waitingSince("p.name", "d.routed")+`,
d.project IS NOT NULL AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.server_id = d.holder
AND w.beat_at >= `+now+` - $1)
FROM projects p LEFT JOIN inboxes i ON i.project = p.name LEFT JOIN dispatchers d ON d.project = p.name
WHERE p.parked_at IS NULL ORDER BY p.name`,
			[]any{orphanAfter.Microseconds()}, func(row sqlrow.Scanner) (b event.Backlog, err error) {
				var p progress
				var gone bool
				err = row.Scan(&b.Project, &p.Head, &p.Routed, &p.Pending, sqlrow.TimeInto(&p.progressed),
					sqlrow.TimeInto(&p.received),
					sqlrow.TimeInto(&p.due),
					sqlrow.TimeInto(&p.oldest), &gone)
				now := p.at(at)
				b.Pending, b.Oldest = now.Pending, now.Oldest
				still := now.SinceProgress < 0 || now.SinceProgress > orphanAfter
				b.Orphan = gone && still && now.Lag > orphanAfter
				return b, err
			})
		return err
	})
	return list, err
}
