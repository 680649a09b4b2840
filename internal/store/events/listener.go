package events

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// add adds a listener that waits for the events after a position. It reports whether there was none with this ID.
func (s *Interests) add(ctx context.Context, c sqldb.Conn, l event.Listener, since int64, spec string) (bool, error) {
	made, err := sqlrow.Affected(ctx, c,
		`INSERT INTO listeners (project, id, run_id, since, spec) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (project, id) DO NOTHING`, l.Project, l.ID, l.RunID, since, spec)
	if err != nil || !made {
		return made, err
	}
	_, err = sqlrow.InsertMany(ctx, c, s.db.Dialect(), "listener_types", "", entriesOf(l),
		func(e event.Entry) sqlrow.Fields {
			return sqlrow.Row("project", l.Project, "type", e.Type, "shape", e.Shape, "value", e.Values, "listener", l.ID)
		})
	return made, err
}

// entriesOf returns the entries of a listener as they are stored, each once.
func entriesOf(l event.Listener) []event.Entry {
	var entries []event.Entry
	for _, e := range l.Entries {
		e.Type = sqlrow.Mended(e.Type)
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// Unlisten implements [event.Rows].
func (s *Interests) Unlisten(ctx context.Context, project, id string) error {
	return s.db.Exec(ctx, "stop listening", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM listeners WHERE project = $1 AND id = $2`, project, id)
		return err
	})
}

// EndListeners removes the listeners of runs that end in this transaction, and which events the runs have taken.
func EndListeners(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []string) error {
	return sqlrow.In(ctx, d, runs, nil, func(ctx context.Context, marks string, args []any) error {
		for _, table := range []string{"listeners", "taken_events"} {
			if _, err := c.ExecContext(ctx, `DELETE FROM `+table+` WHERE run_id IN `+marks, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// GetListener implements [event.Rows].
func (s *Interests) GetListener(ctx context.Context, project, id string) (l event.Listener, there bool, err error) {
	err = s.db.Read(ctx, "get listener", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err := sqlrow.Collect(ctx, c, selectListener+` WHERE project = $1 AND id = $2`, []any{project, id},
			scanListener)
		if there = len(list) > 0; there {
			l = list[0]
		}
		return err
	})
	return l, there && err == nil, err
}

const selectListener = `SELECT project, id, run_id, since, spec FROM listeners`

func scanListener(row sqlrow.Scanner) (l event.Listener, err error) {
	err = row.Scan(&l.Project, &l.ID, &l.RunID, &l.Since, sqlrow.JSONInto(&l.Spec))
	return l, err
}

// ListenersOf reads those listeners of a run that have one of the IDs, as they are stored.
func ListenersOf(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, project, runID string,
	ids []string) (list []event.Listener, err error) {
	err = sqlrow.In(ctx, d, ids, []any{project, runID}, func(ctx context.Context, marks string, args []any) error {
		found, err := sqlrow.Collect(ctx, c,
			selectListener+` WHERE project = $1 AND run_id = $2 AND id IN `+marks+` ORDER BY id`, args, scanListener)
		list = append(list, found...)
		return err
	})
	return list, err
}

// ListeningFor reads up to limit listeners that can match events of a type, those first that began to wait last, as
// they are stored.
func ListeningFor(ctx context.Context, c sqldb.Conn, project, typ string, limit int) ([]explain.Listening, error) {
	anyType := "''"
	if event.ReportsFailure(typ) {
		anyType = "$2" // only filters that name the type match
	}
	return sqlrow.Collect(ctx, c,
		`SELECT l.project, l.id, l.run_id, l.since, l.spec, runs.workflow, runs.version, `+RunStart+`
FROM listeners l JOIN runs ON runs.id = l.run_id WHERE l.project = $1 AND l.id IN (
SELECT listener FROM listener_types WHERE project = $1 AND type IN ($2, `+anyType+`))
ORDER BY l.since DESC, l.id`+sqlrow.Limit(limit),
		[]any{project, sqlrow.Mended(typ)}, func(row sqlrow.Scanner) (l explain.Listening, err error) {
			err = row.Scan(&l.Project, &l.ID, &l.RunID, &l.Since, sqlrow.JSONInto(&l.Spec), &l.Workflow, &l.Version, &l.Start)
			return l, err
		})
}

// newestRead is the number of events of a type among which [NotTaken] searches: a run may have taken very many.
const newestRead = 200

// NotTaken reads up to limit of the newest events with their originals, newest first, that were accepted since a run's
// start and have no delivery to the run: of one of the types, or of any.
func NotTaken(
	ctx context.Context, c sqldb.Conn, project, runID string, types []string, limit int,
) (list []event.Event, start int64, err error) {
	known, err := found(c.QueryRowContext(ctx, `SELECT `+RunStart+` FROM runs WHERE id = $1 AND project = $2`, runID,
		project), &start)
	if err != nil || !known {
		return nil, 0, err
	}
	read := func(condition string, args []any) error {
		found, err := sqlrow.Collect(ctx, c, selectWhole()+` WHERE e.project = $1 AND e.position IN (
SELECT position FROM events WHERE project = $1 AND position > $2`+condition+`
ORDER BY position DESC`+sqlrow.Limit(newestRead)+`)
AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.run_id = $3 AND d.project = e.project AND d.position = e.position)
ORDER BY e.position DESC`+sqlrow.Limit(limit), args, scanWhole)
		list = append(list, found...)
		return err
	}
	args := []any{project, start, runID}
	if types == nil {
		return list, start, read("", args)
	}
	for _, typ := range types {
		if err := read(` AND type = $4`, append(slices.Clone(args), sqlrow.Mended(typ))); err != nil {
			return nil, 0, err
		}
	}
	slices.SortFunc(list, func(a, b event.Event) int { return cmp.Compare(b.Position, a.Position) })
	return list[:min(len(list), limit)], start, nil
}

func sortedValues[T any](byName map[string]T) []T {
	var list []T
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

// found reads one row into the targets and reports whether there is one.
func found(row *sql.Row, into ...any) (bool, error) {
	err := row.Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
