package events

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// FindListeners implements [event.Rows].
func (s *Interests) FindListeners(ctx context.Context, project string,
	lookups []event.Lookup) (found event.Found, err error) {
	if len(lookups) == 0 {
		return found, nil
	}
	err = s.db.Read(ctx, "find listeners", func(ctx context.Context, c sqldb.Conn) error {
		found = event.Found{}
		byID := map[string]event.Listener{}
		entries := make([]event.Entry, 0, len(lookups))
		for _, w := range lookups {
			if !w.Summary {
				entries = append(entries, w.Entry)
				continue
			}
			summary, err := summarize(ctx, c, project, w.Entry)
			if err != nil {
				return err
			}
			found.Summaries = append(found.Summaries, summary)
		}
		if err := s.readEntries(ctx, c, project, entries, byID); err != nil {
			return err
		}
		found.Listeners = sortedValues(byID)
		return nil
	})
	return found, err
}

// summarize counts the listeners with a shape.
func summarize(ctx context.Context, c sqldb.Conn, project string, e event.Entry) (event.Summary, error) {
	found := event.Summary{Type: e.Type, Shape: e.Shape, First: event.Listener{Project: project}}
	err := c.QueryRowContext(ctx,
		`SELECT f.count, COALESCE(f.first, ''),
			COALESCE((SELECT run_id FROM listeners WHERE project = $1 AND id = f.first), '')
FROM (SELECT COUNT(*) AS count, MIN(listener) AS first FROM listener_types WHERE project = $1 AND type = $2
AND shape = $3) f`,
		project, e.Type, e.Shape).Scan(&found.Count, &found.First.ID, &found.First.RunID)
	return found, err
}

// readEntries reads the listeners with one of the entries.
func (s *Interests) readEntries(ctx context.Context, c sqldb.Conn, project string, entries []event.Entry,
	byID map[string]event.Listener) error {
	const columns = 3
	for part := range sqlrow.Chunks(entries) {
		args := []any{project}
		for _, e := range part {
			args = append(args, e.Type, e.Shape, e.Values)
		}
		list, err := sqlrow.Collect(ctx, c, `WITH wanted (project, type, shape, value) AS (
SELECT CAST($1 AS TEXT), v.column1, v.column2, v.column3
FROM (VALUES `+sqlrow.Tuples(s.db.Dialect(), 1, len(part), columns)+`) v)
`+selectListener+` WHERE project = $1 AND id IN (SELECT t.listener FROM wanted w
JOIN listener_types t ON t.project = w.project AND t.type = w.type AND t.shape = w.shape
AND t.value = w.value)`, args, scanListener)
		if err != nil {
			return err
		}
		for _, l := range list {
			byID[l.ID] = l
		}
	}
	return nil
}

// Waiting reads the shapes of the listeners that can match events of these types, and the listeners with a shape that
// this release does not compute for them.
func (s *Interests) Waiting(
	ctx context.Context, c sqldb.Conn, project string, types []string,
) (shapes []event.Shape, listeners []event.Listener, err error) {
	byID := map[string]event.Listener{}
	examples, err := s.examples(ctx, c, project, types)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range examples {
		if of, known := e.shape(); known {
			shapes = append(shapes, of)
			continue
		}
		// Another release computed it, or the values of the filter are not valid.
		list, err := sqlrow.Collect(ctx, c, selectListener+` WHERE project = $1 AND id IN (
SELECT listener FROM listener_types WHERE project = $1 AND type = $2
AND shape = $3)`, []any{project, e.typ, e.hash}, scanListener)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range list {
			byID[l.ID] = l
		}
	}
	return shapes, sortedValues(byID), nil
}

// example is a shape in the index, with the filters of a listener that has it.
type example struct {
	typ, hash string
	spec      event.Spec
}

// shape returns the shape, unless no filter of the listener has it.
func (e example) shape() (event.Shape, bool) {
	if e.hash == event.EveryEvent {
		return event.Shape{Hash: e.hash}, true
	}
	for _, f := range e.spec.Filters {
		if of, _, err := event.ShapeOf(f); err == nil && of.Hash == e.hash && of.Type == e.typ {
			return of, true
		}
	}
	return event.Shape{}, false
}

// examples reads the shapes of the listeners for these types. It reads one row of the index for each, however many
// listeners share a shape.
func (s *Interests) examples(ctx context.Context, c sqldb.Conn, project string,
	types []string) (list []example, err error) {
	for part := range sqlrow.Chunks(types) {
		args := []any{project}
		for _, typ := range part {
			args = append(args, typ)
		}
		found, err := sqlrow.Collect(ctx, c, `WITH RECURSIVE wanted (project, type) AS (
SELECT CAST($1 AS TEXT), v.column1 FROM (VALUES `+sqlrow.Tuples(s.db.Dialect(), 1, len(part), 1)+`) v),
shapes (project, type, shape) AS (
SELECT w.project, w.type, (SELECT MIN(t.shape) FROM listener_types t WHERE t.project = w.project AND t.type = w.type)
FROM wanted w
UNION ALL
SELECT s.project, s.type, (SELECT MIN(t.shape) FROM listener_types t WHERE t.project = s.project AND t.type = s.type
AND t.shape > s.shape)
FROM shapes s WHERE s.shape IS NOT NULL)
SELECT s.type, s.shape, (SELECT l.spec FROM listeners l WHERE l.project = s.project AND l.id = (
SELECT t.listener FROM listener_types t WHERE t.project = s.project AND t.type = s.type AND t.shape = s.shape
ORDER BY t.value, t.listener LIMIT 1))
FROM shapes s WHERE s.shape IS NOT NULL`, args, scanExample)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return slices.Clip(list), nil
}

func scanExample(row sqlrow.Scanner) (e example, err error) {
	err = row.Scan(&e.typ, &e.hash, sqlrow.JSONInto(&e.spec))
	return e, err
}
