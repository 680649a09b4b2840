package runrow

import (
	"context"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Waits reads the stored parts of what a run waits for: its open steps, its listeners and the runs that it awaits. It
// implements [explain.Store]. It is safe for concurrent use.
type Waits struct{ db *sqldb.DB }

var _ explain.Store = (*Waits)(nil)

// NewWaits returns a store on an open database.
func NewWaits(db *sqldb.DB) *Waits { return &Waits{db} }

// Pending implements [explain.Store]. Each query reads the data committed when it starts. Inputs and outputs of steps
// may be large and are not read.
func (s *Waits) Pending(ctx context.Context, project, runID string, p explain.Page) (rows explain.Rows, err error) {
	err = s.db.Read(ctx, "read what a run waits for", func(ctx context.Context, c sqldb.Conn) (err error) {
		rows = explain.Rows{}
		rows.Steps, err = sqlrow.Collect(ctx, c, selectOpen+` AND number > $2 ORDER BY number`+sqlrow.Limit(p.Limit+1),
			[]any{runID, p.After}, scanStep)
		if err != nil || len(rows.Steps) == 0 {
			return err
		}
		if rows.More = len(rows.Steps) > p.Limit; rows.More {
			rows.Steps = rows.Steps[:p.Limit]
		}
		keys := make([]string, len(rows.Steps))
		for i := range rows.Steps {
			keys[i] = p.Key(rows.Steps[i].Path)
		}
		if rows.Around, err = around(ctx, c, runID, p.After, rows.Steps); err != nil {
			return err
		}
		if rows.Listeners, err = events.ListenersOf(ctx, c, s.db.Dialect(), project, runID, keys); err != nil {
			return err
		}
		return sqlrow.In(ctx, s.db.Dialect(), keys, []any{runID}, func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c,
				`SELECT a.call_key, r.id, r.workflow, r.version, r.status, r.queued_reason, r.waiting_kind
FROM run_awaited a JOIN runs r ON r.id = a.run_id WHERE a.parent = $1 AND a.call_key IN `+marks+`
ORDER BY r.id`, args, scanChild)
			rows.Children = append(rows.Children, found...)
			return err
		})
	})
	return rows, err
}

// Listening implements [explain.Store].
func (s *Waits) Listening(ctx context.Context, project, typ string, limit int) (list []explain.Listening, err error) {
	err = s.db.Read(ctx, "read who listens for events", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = events.ListeningFor(ctx, c, project, typ, limit)
		return err
	})
	return list, err
}

// NotTaken implements [explain.Store].
func (s *Waits) NotTaken(
	ctx context.Context, project, runID string, types []string, limit int,
) (list []event.Event, start int64, err error) {
	err = s.db.Read(ctx, "read which events a run has not taken", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, start, err = events.NotTaken(ctx, c, project, runID, types, limit)
		return err
	})
	return list, start, err
}

const selectOpen = `SELECT number, path, pointer, task, kind, status, waiting_kind, wait_until, started_at, attempts,
	wait_details
FROM steps WHERE run_id = $1 AND ended_at IS NULL`

// around returns the open steps up to a number that contain some of the given ones.
func around(ctx context.Context, c sqldb.Conn, runID string, upTo int64, inner []run.Step) ([]run.Step, error) {
	if upTo == 0 {
		return nil, nil
	}
	open, err := sqlrow.Collect(ctx, c, selectOpen+` AND number <= $2 ORDER BY number`, []any{runID, upTo}, scanStep)
	prefixes := map[string]bool{}
	for i := range inner {
		for path := inner[i].Path; path != ""; path = path[:strings.LastIndexByte(path, '/')] {
			prefixes[path] = true
		}
	}
	return slices.DeleteFunc(open, func(t run.Step) bool { return !prefixes[t.Path] }), err
}

func scanStep(row sqlrow.Scanner) (t run.Step, err error) {
	err = row.Scan(&t.Number, &t.Path, &t.Pointer, &t.Task, &t.Kind, &t.Status, &t.WaitingKind,
		sqlrow.TimeInto(&t.WaitUntil),
		sqlrow.TimeInto(&t.StartedAt), sqlrow.JSONInto(&t.Attempts), sqlrow.JSONInto(&t.Wait))
	return t, err
}

func scanChild(row sqlrow.Scanner) (c explain.Child, err error) {
	err = row.Scan(&c.Key, &c.RunID, &c.Workflow, &c.Version, &c.Status, &c.QueuedReason, &c.WaitingKind)
	return c, err
}
