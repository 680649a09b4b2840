package events

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/outbox"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// maxProjects is how many projects with events to move are returned at a time.
const maxProjects = 500

// Outbox stores events that report failures: they are written in the transactions that write the failures, and moved
// into the inboxes of their projects. It implements [outbox.Store], and is safe for concurrent use.
//
// A failure is written only where a webhook, a trigger or a listener of its project may receive the event: otherwise,
// the transaction has one more query, of indexes. Move deletes the rows in the transaction that adds the events. If two
// processes move the same rows, the events of the second are duplicates by their IDs, which the inbox does not add.
type Outbox struct {
	db    *sqldb.DB
	inbox *Intake
}

var _ outbox.Store = (*Outbox)(nil)

// Waiting implements [outbox.Store].
func (s *Outbox) Waiting(ctx context.Context) (projects []string, err error) {
	err = s.db.Read(ctx, "find events to publish", func(ctx context.Context, c sqldb.Conn) error {
		projects, err = sqlrow.Collect(ctx, c,
			`SELECT DISTINCT project FROM event_outbox ORDER BY project`+sqlrow.Limit(maxProjects), nil, sqlrow.ScanText)
		return err
	})
	return projects, err
}

// Backlog returns the events that are not moved yet. Their times are those of servers and of Temporal, so the age is by
// the clock of this process, not by the database's.
func (s *Outbox) Backlog(ctx context.Context) (b event.Unpublished, err error) {
	err = s.db.Read(ctx, "read unpublished events", func(ctx context.Context, c sqldb.Conn) error {
		var oldest time.Time
		if err := c.QueryRowContext(ctx, `SELECT COUNT(*), MIN(occurred_at) FROM event_outbox`).Scan(&b.Count,
			sqlrow.TimeInto(&oldest)); err != nil {
			return err
		}
		b.Oldest = 0
		if b.Count > 0 {
			b.Oldest = max(time.Since(oldest), 0)
		}
		return nil
	})
	return b, err
}

// Move implements [outbox.Store].
func (s *Outbox) Move(ctx context.Context, project string, limit int,
	complete func(event.Event) event.Event) (moved int, wake bool, err error) {
	if err := s.inbox.active(ctx, project); err != nil {
		return 0, false, err
	}
	err = s.db.Write(ctx, "publish events", func(ctx context.Context, c sqldb.Conn) error {
		moved, wake = 0, false
		list, err := sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(outboxFields)+` FROM event_outbox
WHERE project = $1 ORDER BY occurred_at, id`+sqlrow.Limit(limit), []any{project}, sqlrow.Scan(outboxFields))
		if err != nil || len(list) == 0 {
			return err
		}
		ids := make([]string, len(list))
		for i := range list {
			ids[i] = list[i].ID
			list[i] = complete(list[i])
		}
		if _, wake, err = s.inbox.Add(ctx, c, project, list); err != nil {
			return err
		}
		moved = len(list)
		return sqlrow.In(ctx, s.db.Dialect(), ids, []any{project, sqlrow.Micros(list[moved-1].Time)},
			func(ctx context.Context, marks string, args []any) error {
				_, err := c.ExecContext(ctx, `DELETE FROM event_outbox WHERE project = $1 AND occurred_at <= $2 AND id IN `+marks,
					args...)
				return err
			})
	})
	if err != nil {
		return 0, false, err
	}
	return moved, wake, nil
}

func outboxFields(e *event.Event) sqlrow.Fields {
	return sqlrow.Row(
		"project", &e.Project, "occurred_at", sqlrow.TimeInto(&e.Time), "id", &e.ID, "type", &e.Type,
		"source", &e.Source, "subject", sqlrow.MendedInto(&e.Subject), "extensions", sqlrow.RawInto(&e.Extensions),
		"data", sqlrow.MendedRawInto(&e.Data),
	)
}

// addToOutbox writes events that are not in the outbox.
func addToOutbox(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, list []event.Event) error {
	_, err := sqlrow.InsertMany(ctx, c, d, "event_outbox", ` ON CONFLICT DO NOTHING`, list,
		func(e event.Event) sqlrow.Fields {
			return outboxFields(&e)
		})
	return err
}
