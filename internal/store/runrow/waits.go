// This file reads the stored parts of what a run waits for: its open steps, its listeners and the runs that it awaits. It
// implements [explain.Store]; package store opens it.

package runrow

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Waits is safe for concurrent use.
type Waits struct{ db *sqldb.DB }

var _ explain.Store = (*Waits)(nil)

// NewWaits returns a store on an open database.
func NewWaits(db *sqldb.DB) *Waits { return &Waits{db} }

// Pending implements [explain.Store]. Each query reads the data committed when it starts. Inputs and outputs of steps may be large and are not read.
func (s *Waits) Pending(ctx context.Context, project, runID string, limit int) (rows explain.Rows, err error) {
	err = s.db.Read(ctx, "read what a run waits for", func(ctx context.Context, c sqldb.Conn) (err error) {
		rows = explain.Rows{}
		rows.Steps, err = sqlrow.Collect(ctx, c, `SELECT number, path, pointer, task, kind, status, waiting_kind, wait_until, started_at, attempts, wait_details
FROM steps WHERE run_id = $1 AND ended_at IS NULL ORDER BY number`+sqlrow.Limit(limit+1), []any{runID}, scanStep)
		if err != nil {
			return err
		}
		if rows.More = len(rows.Steps) > limit; rows.More {
			rows.Steps = rows.Steps[:limit]
		}
		if rows.Listeners, err = events.ListenersOf(ctx, c, project, runID, limit); err != nil {
			return err
		}
		rows.Children, err = sqlrow.Collect(ctx, c, `SELECT a.call_key, r.id, r.workflow, r.version, r.status, r.queued_reason, r.waiting_kind
FROM run_awaited a JOIN runs r ON r.id = a.run_id WHERE a.parent = $1 ORDER BY r.id`+sqlrow.Limit(limit), []any{runID}, scanChild)
		return err
	})
	return rows, err
}

func scanStep(row sqlrow.Scanner) (t run.Step, err error) {
	err = row.Scan(&t.Number, &t.Path, &t.Pointer, &t.Task, &t.Kind, &t.Status, &t.WaitingKind, sqlrow.TimeInto(&t.WaitUntil),
		sqlrow.TimeInto(&t.StartedAt), sqlrow.JSONInto(&t.Attempts), sqlrow.JSONInto(&t.Wait))
	return t, err
}

func scanChild(row sqlrow.Scanner) (c explain.Child, err error) {
	err = row.Scan(&c.Key, &c.RunID, &c.Workflow, &c.Version, &c.Status, &c.QueuedReason, &c.WaitingKind)
	return c, err
}
