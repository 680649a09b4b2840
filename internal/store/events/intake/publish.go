package intake

import (
	"context"
	"errors"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Publish implements [vault.EventStore].
func (s *Store) Publish(ctx context.Context, project string, given []vault.Sealed[event.Event]) (accepted []event.Accepted, wake bool, err error) {
	list := vault.Values(given)
	if err := Storable(list); err != nil {
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

// Storable refuses attributes that cannot be kept. Data and extensions are JSON, in which such characters are escaped.
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

// identity is what no two events of a project share.
type identity struct{ id, source string }

func identityOf(e event.Event) identity { return identity{e.ID, e.Source} }

// Add gives positions out under the inbox's row, which it holds until the transaction ends: all who publish to a project
// come one after the other, so that two batches with the same events cannot wait for each other.
func (s *Store) Add(ctx context.Context, c sqldb.Conn, project string, list []event.Event) ([]event.Accepted, bool, error) {
	a, err := s.Lock(ctx, c, project, s.db.Dialect().LockRows)
	if err != nil {
		return nil, false, err
	}
	a.ReceivedAt = max(a.ReceivedAt, a.Now)
	places := map[identity]event.Accepted{}
	kept, err := s.insertEvents(ctx, c, project, a, list, places)
	if err != nil {
		return nil, false, err
	}
	if kept > 0 {
		_, err := c.ExecContext(ctx, `UPDATE inboxes SET head = $2, received_at = $3 WHERE project = $1`, project, a.Head+kept, a.ReceivedAt)
		if err != nil {
			return nil, false, err
		}
	}
	accepted := make([]event.Accepted, len(list))
	for i, e := range list {
		key := identityOf(e)
		accepted[i] = places[key]
		// Whatever else the batch has of it comes later.
		places[key] = event.Accepted{Position: places[key].Position, Duplicate: true}
	}
	return accepted, a.Parked, nil
}

// errTaken: some of the events are there already.
var errTaken = errors.New("duplicates among the events")

// insertEvents adds the events that are not there yet, fills in where each is, and returns how many it added. Most batches are all
// new, so it looks for duplicates only when it has met one.
func (s *Store) insertEvents(
	ctx context.Context, c sqldb.Conn, project string, a Inbox, list []event.Event, places map[identity]event.Accepted,
) (int64, error) {
	kept, err := s.insertNew(ctx, c, project, a, list, places)
	if !errors.Is(err, errTaken) {
		return kept, err
	}
	if _, err := c.ExecContext(ctx, `DELETE FROM events WHERE project = $1 AND position > $2`, project, a.Head); err != nil {
		return 0, err
	}
	clear(places)
	if err := s.findEvents(ctx, c, project, list, places); err != nil {
		return 0, err
	}
	return s.insertNew(ctx, c, project, a, list, places)
}

// insertNew adds the events that have no place, each once.
func (s *Store) insertNew(
	ctx context.Context, c sqldb.Conn, project string, a Inbox, list []event.Event, places map[identity]event.Accepted,
) (int64, error) {
	fresh := make([]event.Event, 0, len(list))
	for _, e := range list {
		key := identityOf(e)
		if _, there := places[key]; there {
			continue
		}
		e.Position = a.Head + int64(len(fresh)) + 1
		places[key] = event.Accepted{Position: e.Position}
		fresh = append(fresh, e)
	}
	added, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "events", `project, position, id, source, type, subject, occurred_at,
data_content_type, data_schema, data_base64, received_at, actor, extensions, data, original_key, original`, ` ON CONFLICT (project, id, source) DO NOTHING`, fresh,
		func(e event.Event) ([]any, error) {
			var key, sealed any
			if e.Original != nil {
				key, sealed = e.Original.KeyID, e.Original.Sealed
			}
			return []any{
				project, e.Position, e.ID, e.Source, e.Type, e.Subject, sqlrow.Micros(e.Time), e.DataContentType, e.DataSchema,
				e.DataBase64, a.ReceivedAt, sqlrow.Mended(e.Actor), sqlrow.Raw(e.Extensions), sqlrow.Raw(e.Data), key, sealed,
			}, nil
		})
	if err == nil && added < int64(len(fresh)) {
		return 0, errTaken
	}
	return added, err
}

// findEvents fills in the places of those events that are there.
func (s *Store) findEvents(
	ctx context.Context, c sqldb.Conn, project string, list []event.Event, places map[identity]event.Accepted,
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
					places[key] = event.Accepted{Position: position, Duplicate: true}
				}
				return key, err
			})
		return err
	})
}
