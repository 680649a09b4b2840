package verdicts

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// candidate are the columns of runs r and failures f that every candidate has.
const candidate = `r.id, r.project, r.workflow, r.version, r.status, r.queued_reason, r.waiting_kind, r.status_at, r.sequence, r.cancel_requested, f.at, COALESCE(f.message, '')`

// Overdue implements [stuck.Store]. The condition on the status is that of the index, word for word.
func (s *Store) Overdue(ctx context.Context, before time.Time, after stuck.Cursor, limit int) (list []stuck.Candidate, err error) {
	err = s.db.Read(ctx, "list runs that are overdue", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+candidate+`, CASE WHEN r.status = 'running' THEN
(SELECT COALESCE(t.ended_at, t.started_at) FROM steps t WHERE t.run_id = r.id ORDER BY t.sequence DESC, t.number DESC LIMIT 1) END, NULL
FROM runs r LEFT JOIN task_failures f ON f.run_id = r.id
WHERE r.status IN ('queued', 'running') AND r.status_at <= $1 AND (r.status_at, r.id) > ($2, $3) AND r.queued_reason <> 'admission' AND r.trigger_kind <> 'import'
ORDER BY r.status_at, r.id`+sqlrow.Limit(limit), []any{before.UnixMicro(), after.StatusAt.UnixMicro(), after.ID}, scanCandidate)
		return err
	})
	return list, err
}

// OverdueWaits implements [stuck.Store].
func (s *Store) OverdueWaits(ctx context.Context, before time.Time, limit int) (list []stuck.Candidate, err error) {
	err = s.db.Read(ctx, "list waits that are overdue", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+candidate+`, NULL, t.wait_until
FROM steps t JOIN runs r ON r.id = t.run_id LEFT JOIN task_failures f ON f.run_id = r.id
WHERE t.status = 'waiting' AND t.wait_until IS NOT NULL AND t.wait_until <= $1 AND r.status = 'waiting' AND r.waiting_kind IN ('timer', 'retry')
ORDER BY t.wait_until, t.run_id`+sqlrow.Limit(limit), []any{before.UnixMicro()}, scanCandidate)
		return err
	})
	return list, err
}

// Suspects implements [stuck.Store]. The condition on the cancellation is that of the index, word for word.
func (s *Store) Suspects(ctx context.Context, since time.Time, limit int) (list []stuck.Candidate, err error) {
	err = s.db.Read(ctx, "list runs that should take note of something", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+candidate+`, NULL, NULL
FROM task_failures f JOIN runs r ON r.id = f.run_id WHERE f.at >= $1 AND r.status = 'waiting'
UNION
SELECT `+candidate+`, NULL, NULL
FROM runs r LEFT JOIN task_failures f ON f.run_id = r.id WHERE r.status = 'waiting' AND r.cancel_requested
ORDER BY 1`+sqlrow.Limit(limit), []any{since.UnixMicro()}, scanCandidate)
		return err
	})
	return list, err
}

// Waiting implements [stuck.Store].
func (s *Store) Waiting(ctx context.Context, ids []string) (list []stuck.Candidate, err error) {
	err = s.db.Read(ctx, "list runs that wait", func(ctx context.Context, c sqldb.Conn) error {
		return sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c, `SELECT `+candidate+`, NULL, NULL
FROM runs r LEFT JOIN task_failures f ON f.run_id = r.id WHERE r.status = 'waiting' AND r.id IN `+marks, args, scanCandidate)
			list = append(list, found...)
			return err
		})
	})
	return list, err
}

func scanCandidate(row sqlrow.Scanner) (k stuck.Candidate, err error) {
	var failure verdict.Failure
	err = row.Scan(&k.ID, &k.Project, &k.Workflow, &k.Version, &k.Status, &k.QueuedReason, &k.WaitingKind, sqlrow.TimeInto(&k.StatusAt),
		&k.Sequence, &k.CancelRequested, sqlrow.TimeInto(&failure.At), &failure.Text, sqlrow.TimeInto(&k.MovedAt), sqlrow.TimeInto(&k.WaitUntil))
	if !failure.At.IsZero() {
		k.Failure = &failure
	}
	return k, err
}

// NoteFailures implements [stuck.Store].
func (s *Store) NoteFailures(ctx context.Context, failures []stuck.TaskFailure) error {
	return s.db.Write(ctx, "note failed tasks", func(ctx context.Context, c sqldb.Conn) error {
		for _, f := range failures {
			_, err := c.ExecContext(ctx, `INSERT INTO task_failures (run_id, at, message)
SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM runs WHERE id = $1 AND status IN ('queued', 'running', 'waiting'))
ON CONFLICT (run_id) DO UPDATE SET at = excluded.at, message = excluded.message
WHERE task_failures.at <= excluded.at`,
				f.RunID, sqlrow.Micros(f.At), sqlrow.Mended(f.Text))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ForgetFailures implements [stuck.Store].
func (s *Store) ForgetFailures(ctx context.Context) error {
	return s.db.Exec(ctx, "forget failed tasks", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM task_failures WHERE NOT EXISTS
(SELECT 1 FROM runs r WHERE r.id = task_failures.run_id AND r.status IN ('queued', 'running', 'waiting'))`)
		return err
	})
}
