package events

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Publish implements [sealed.EventStore].
func (s *Intake) Publish(ctx context.Context, project string,
	given []sealed.Sealed[event.Event]) (accepted []event.Accepted, wake bool, err error) {
	list := sealed.Values(given)
	if err := Storable(list); err != nil {
		return nil, false, err
	}
	if err := s.active(ctx, project); err != nil {
		return nil, false, err
	}
	err = s.db.Write(ctx, "publish events", func(ctx context.Context, c sqldb.Conn) (err error) {
		accepted, wake, err = s.Add(ctx, c, project, list)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return accepted, wake, nil
}

// Storable refuses attributes that cannot be stored. Data and extensions are JSON, in which such characters are
// escaped.
func Storable(list []event.Event) error {
	for _, e := range list {
		for _, field := range [][2]string{
			{"id", e.ID},
			{"source", e.Source},
			{"type", e.Type},
			{"subject", e.Subject},
			{"datacontenttype", e.DataContentType},
			{"dataschema", e.DataSchema},
			{"extensions", string(e.Extensions)},
			{"data", string(e.Data)},
		} {
			if err := sqlrow.Storable(field[0], field[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// identity is unique among the events of a project.
type identity struct{ id, source string }

func identityOf(e event.Event) identity { return identity{e.ID, e.Source} }

// Add assigns positions with the inbox's row locked until the transaction ends: publications to a project are
// serialised, so that two batches with the same events cannot deadlock.
func (s *Intake) Add(ctx context.Context, c sqldb.Conn, project string,
	list []event.Event) ([]event.Accepted, bool, error) {
	a, err := s.Lock(ctx, c, project, s.db.Dialect().LockRows)
	if err != nil {
		return nil, false, err
	}
	a.ReceivedAt = max(a.ReceivedAt, a.Now)
	positions := map[identity]event.Accepted{}
	kept, err := s.insertEvents(ctx, c, project, a, list, positions)
	if err != nil {
		return nil, false, err
	}
	if kept > 0 {
		_, err := c.ExecContext(ctx, `UPDATE inboxes SET head = $2, received_at = $3 WHERE project = $1`, project,
			a.Head+kept, a.ReceivedAt)
		if err != nil {
			return nil, false, err
		}
	}
	accepted := make([]event.Accepted, len(list))
	for i, e := range list {
		key := identityOf(e)
		accepted[i] = positions[key]
		// Further events of the batch with this identity are duplicates.
		positions[key] = event.Accepted{Position: positions[key].Position, Duplicate: true}
	}
	return accepted, a.Parked, nil
}

// errTaken: some of the events exist already.
var errTaken = errors.New("duplicates among the events")

// insertEvents adds the events that do not exist yet, sets the position of each, and returns how many it added. Most
// batches have no duplicates, so it searches for them only after a conflict.
func (s *Intake) insertEvents(
	ctx context.Context, c sqldb.Conn, project string, a Inbox, list []event.Event, positions map[identity]event.Accepted,
) (int64, error) {
	kept, err := s.insertNew(ctx, c, project, a, list, positions)
	if !errors.Is(err, errTaken) {
		return kept, err
	}
	if _, err := c.ExecContext(ctx, `DELETE FROM events WHERE project = $1 AND position > $2`, project,
		a.Head); err != nil {
		return 0, err
	}
	clear(positions)
	if err := s.findEvents(ctx, c, project, list, positions); err != nil {
		return 0, err
	}
	return s.insertNew(ctx, c, project, a, list, positions)
}

// insertNew adds the events without a position, each once.
func (s *Intake) insertNew(
	ctx context.Context, c sqldb.Conn, project string, a Inbox, list []event.Event, positions map[identity]event.Accepted,
) (int64, error) {
	fresh := make([]event.Event, 0, len(list))
	for _, e := range list {
		key := identityOf(e)
		if _, there := positions[key]; there {
			continue
		}
		e.Position = a.Head + int64(len(fresh)) + 1
		positions[key] = event.Accepted{Position: e.Position}
		fresh = append(fresh, e)
	}
	added, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "events", ` ON CONFLICT (project, id, source) DO NOTHING`,
		fresh, func(e event.Event) sqlrow.Fields {
			e.Project, e.ReceivedAt = project, time.UnixMicro(a.ReceivedAt)
			original := event.Original{}
			if e.Original != nil {
				original = *e.Original
			}
			return append(append(eventFields(&e), originalFields(&original)...),
				sqlrow.Col("traceparent", sqlrow.TextInto(&e.Traceparent)))
		})
	if err == nil && added < int64(len(fresh)) {
		return 0, errTaken
	}
	return added, err
}

// findEvents sets the positions of those events that exist.
func (s *Intake) findEvents(
	ctx context.Context, c sqldb.Conn, project string, list []event.Event, positions map[identity]event.Accepted,
) error {
	wanted := map[identity]bool{}
	var ids []string
	for _, e := range list {
		if key := identityOf(e); !wanted[key] {
			wanted[key] = true
			ids = append(ids, e.ID)
		}
	}
	return sqlrow.In(ctx, s.db.Dialect(), ids, []any{project}, func(ctx context.Context, marks string, args []any) error {
		_, err := sqlrow.Collect(ctx, c, `SELECT position, id, source FROM events WHERE project = $1 AND id IN `+marks, args,
			func(row sqlrow.Scanner) (key identity, err error) {
				var position int64
				if err = row.Scan(&position, &key.id, &key.source); err == nil && wanted[key] {
					positions[key] = event.Accepted{Position: position, Duplicate: true}
				}
				return key, err
			})
		return err
	})
}
