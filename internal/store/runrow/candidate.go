package runrow

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// candidate lists the columns of runs r and failures f of every candidate.
const candidate = `r.id, r.project, r.workflow, r.version, r.status, r.queued_reason, r.waiting_kind, r.status_at, r.sequence, r.cancel_requested, f.at, COALESCE(f.message, ''),
COALESCE(f.cause, ''), COALESCE(f.since, f.at), COALESCE(f.build, ''), COALESCE(f.other_build, '')`

// Overdue implements [diagnose.Rows]. The condition on the status equals that of the index.
func (s *VerdictRows) Overdue(ctx context.Context, before time.Time, after diagnose.Cursor,
	limit int) (list []diagnose.Candidate, err error) {
	err = s.db.Read(ctx, "list runs that are overdue", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+candidate+`, CASE WHEN r.status = 'running' THEN
(SELECT COALESCE(t.ended_at, t.started_at) FROM steps t WHERE t.run_id = r.id ORDER BY t.sequence DESC, t.number DESC
LIMIT 1) END, NULL
FROM runs r LEFT JOIN task_failures f ON f.run_id = r.id
WHERE r.status IN ('queued', 'running') AND r.status_at <= $1 AND (r.status_at, r.id) > ($2, $3)
AND r.queued_reason <> 'admission' AND r.trigger_kind <> 'import'
ORDER BY r.status_at, r.id`+sqlrow.Limit(limit), []any{before.UnixMicro(), after.StatusAt.UnixMicro(), after.ID}, scanCandidate)
		return err
	})
	return list, err
}

// OverdueWaits implements [diagnose.Rows].
func (s *VerdictRows) OverdueWaits(ctx context.Context, before time.Time,
	limit int) (list []diagnose.Candidate, err error) {
	err = s.db.Read(ctx, "list waits that are overdue", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT `+candidate+`, NULL, t.wait_until
FROM steps t JOIN runs r ON r.id = t.run_id LEFT JOIN task_failures f ON f.run_id = r.id
WHERE t.status = 'waiting' AND t.wait_until IS NOT NULL AND t.wait_until <= $1 AND r.status = 'waiting'
AND r.waiting_kind IN ('timer', 'retry')
ORDER BY t.wait_until, t.run_id`+sqlrow.Limit(limit), []any{before.UnixMicro()}, scanCandidate)
		return err
	})
	return list, err
}

// Suspects implements [diagnose.Rows]. The condition on the cancellation equals that of the index.
func (s *VerdictRows) Suspects(ctx context.Context, since time.Time, limit int) (list []diagnose.Candidate, err error) {
	err = s.db.Read(ctx, "list runs with unprocessed signals", func(ctx context.Context, c sqldb.Conn) (err error) {
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

// Left implements [diagnose.Rows]. The condition on the Temporal equals that of the index.
func (s *VerdictRows) Left(ctx context.Context, limit int) (list []diagnose.Candidate, err error) {
	err = s.db.Read(ctx, "list runs that were left in another Temporal",
		func(ctx context.Context, c sqldb.Conn) (err error) {
			var left run.ClusterID
			list, err = sqlrow.Collect(ctx, c, `SELECT `+candidate+`, NULL, NULL, r.left_in
FROM runs r LEFT JOIN task_failures f ON f.run_id = r.id WHERE r.left_in IS NOT NULL AND r.status IN `+openStatuses+`
ORDER BY r.id`+sqlrow.Limit(limit), nil,
				func(row sqlrow.Scanner) (diagnose.Candidate, error) {
					k, err := scanCandidateAnd(row, sqlrow.JSONInto(&left))
					k.LeftIn = left
					return k, err
				})
			return err
		})
	return list, err
}

// Waiting implements [diagnose.Rows].
func (s *VerdictRows) Waiting(ctx context.Context, ids []string) (list []diagnose.Candidate, err error) {
	err = s.db.Read(ctx, "list runs that wait", func(ctx context.Context, c sqldb.Conn) error {
		return sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c, `SELECT `+candidate+`, NULL, NULL
FROM runs r LEFT JOIN task_failures f ON f.run_id = r.id WHERE r.status = 'waiting'
AND r.id IN `+marks, args, scanCandidate)
			list = append(list, found...)
			return err
		})
	})
	return list, err
}

func scanCandidate(row sqlrow.Scanner) (diagnose.Candidate, error) { return scanCandidateAnd(row) }

// scanCandidateAnd scans a candidate and further columns.
func scanCandidateAnd(row sqlrow.Scanner, further ...any) (k diagnose.Candidate, err error) {
	var failure diagnose.Failure
	err = row.Scan(append([]any{
		&k.ID, &k.Project, &k.Workflow, &k.Version, &k.Status, &k.QueuedReason, &k.WaitingKind, sqlrow.TimeInto(&k.StatusAt),
		&k.Sequence, &k.CancelRequested, sqlrow.TimeInto(&failure.At), &failure.Text,
		&failure.Cause, sqlrow.TimeInto(&failure.Since), &failure.Build, &failure.OtherBuild, sqlrow.TimeInto(&k.MovedAt),
		sqlrow.TimeInto(&k.WaitUntil),
	}, further...)...)
	if !failure.At.IsZero() {
		k.Failure = &failure
	}
	return k, err
}

// sameFailure reports whether a failure continues the one in the row. Temporal retries a task within ten minutes plus
// its timeout, so failures an hour apart are not consecutive.
const sameFailure = `task_failures.cause = excluded.cause AND task_failures.message = excluded.message
	AND excluded.at - task_failures.at < 3600000000`

const noteFailure = `INSERT INTO task_failures (run_id, at, message, cause, build, other_build, since)
SELECT $1, $2, $3, $4, $5, '', $2
WHERE EXISTS (SELECT 1 FROM runs WHERE id = $1 AND status IN ('queued', 'running', 'waiting'))
ON CONFLICT (run_id) DO UPDATE SET at = excluded.at, message = excluded.message, cause = excluded.cause,
build = excluded.build,
since = CASE WHEN ` + sameFailure + ` THEN COALESCE(task_failures.since, task_failures.at) ELSE excluded.at END,
other_build = CASE WHEN NOT (` + sameFailure + `) THEN '' WHEN task_failures.build <> excluded.build THEN
task_failures.build
ELSE task_failures.other_build END
WHERE task_failures.at <= excluded.at`

// NoteFailures implements [sealed.VerdictStore].
func (s *VerdictRows) NoteFailures(ctx context.Context, failures []sealed.Sealed[diagnose.TaskFailure]) error {
	return s.db.Write(ctx, "note failed tasks", func(ctx context.Context, c sqldb.Conn) error {
		for _, f := range sealed.Values(failures) {
			_, err := c.ExecContext(ctx, noteFailure, f.RunID, sqlrow.Micros(f.At), sqlrow.Mended(f.Text), f.Cause, f.Build)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ForgetFailures implements [diagnose.Rows].
func (s *VerdictRows) ForgetFailures(ctx context.Context) error {
	return s.db.Exec(ctx, "forget failed tasks", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM task_failures WHERE NOT EXISTS
(SELECT 1 FROM runs r WHERE r.id = task_failures.run_id AND r.status IN ('queued', 'running', 'waiting'))`)
		return err
	})
}
