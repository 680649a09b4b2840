package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// load is an element of a worker's load in the column busy: one for each project that it is busy with, and one without
// a project for what it gets of its machine's processors, which a server that does not know it ignores.
type load struct {
	worker.Busy

	Processor *processor.State `json:"processor,omitempty"`
}

func loadOf(w worker.Worker) []load {
	entries := []load{{Processor: &w.Processor}}
	for _, b := range w.Busy {
		entries = append(entries, load{Busy: b})
	}
	return entries
}

// BeatWorker implements [worker.Store].
func (s *Store) BeatWorker(ctx context.Context, w worker.Worker, forget time.Duration) error {
	projects, err := sqlrow.AsJSON(w.Projects, false)
	if err != nil {
		return err
	}
	busy, err := sqlrow.AsJSON(loadOf(w), false)
	if err != nil {
		return err
	}
	now := s.db.Dialect().Now
	return s.db.Write(ctx, "write a worker's sign of life", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := c.ExecContext(ctx, `DELETE FROM workers WHERE beat_at < `+now+` - $1`,
			forget.Microseconds()); err != nil {
			return err
		}
		f := w.Fingerprint
		_, err := c.ExecContext(ctx,
			`INSERT INTO workers (server_id, contract, address, namespace, namespace_id, projects, started_at, busy, beat_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, `+now+`)
ON CONFLICT (server_id) DO UPDATE
SET contract = excluded.contract, address = excluded.address, namespace = excluded.namespace,
namespace_id = excluded.namespace_id, projects = excluded.projects, started_at = excluded.started_at, busy = excluded.busy, beat_at = excluded.beat_at`,
			sqlrow.Mended(w.ServerID), sqlrow.Mended(f.Contract), sqlrow.Mended(f.Address), sqlrow.Mended(f.Namespace),
			sqlrow.Mended(f.NamespaceID), projects, w.StartedAt.UnixMicro(), busy)
		return err
	})
}

// LeaveWorker implements [worker.Store].
func (s *Store) LeaveWorker(ctx context.Context, serverID string) error {
	return s.db.Exec(ctx, "take a worker off the list", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM workers WHERE server_id = $1`, serverID)
		return err
	})
}

// ListWorkers implements [worker.Store].
func (s *Store) ListWorkers(ctx context.Context, within time.Duration, limit int) (list []worker.Worker, err error) {
	err = s.db.Read(ctx, "list workers", func(ctx context.Context, c sqldb.Conn) (err error) {
		now := s.db.Dialect().Now
		list, err = sqlrow.Collect(ctx, c,
			`SELECT server_id, contract, address, namespace, namespace_id, projects, started_at, `+now+` - beat_at, busy
FROM workers WHERE beat_at >= `+now+` - $1
ORDER BY server_id`+sqlrow.Limit(limit), []any{within.Microseconds()}, scanWorker)
		return err
	})
	return list, err
}

// scanWorker converts the age of the heartbeat, by the database's clock, to a time of this process's clock.
func scanWorker(row sqlrow.Scanner) (w worker.Worker, err error) {
	f, age := &w.Fingerprint, int64(0)
	var entries []load
	err = row.Scan(&w.ServerID, &f.Contract, &f.Address, &f.Namespace, &f.NamespaceID, sqlrow.JSONInto(&w.Projects),
		sqlrow.TimeInto(&w.StartedAt), &age, sqlrow.JSONInto(&entries))
	for _, e := range entries {
		if e.Processor != nil {
			w.Processor = *e.Processor
			continue
		}
		w.Busy = append(w.Busy, e.Busy)
	}
	w.BeatAt = time.Now().Add(-time.Duration(age) * time.Microsecond)
	return w, err
}
