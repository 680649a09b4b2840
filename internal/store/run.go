package store

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// openStatuses are the statuses of runs that have not ended.
const openStatuses = `('queued', 'running', 'waiting')`

// executedHere selects the runs that this platform executes: an imported run may be open on another engine.
const executedHere = `trigger_kind <> 'import'`

// insertedFields are the columns of a run that lists show and that a new row has.
func insertedFields(r *run.Run) sqlrow.Fields {
	return sqlrow.Row(
		"id", &r.ID, "project", &r.Project, "workflow", &r.Workflow, "version", &r.Version,
		"document_hash", &r.DocumentHash, "status", &r.Status, "queued_reason", &r.QueuedReason,
		"waiting_kind", &r.WaitingKind, "status_at", sqlrow.TimeInto(&r.StatusAt),
		"cancel_requested", &r.CancelRequested, "cancel_reason", &r.CancelReason,
		"request_id", sqlrow.TextInto(&r.RequestID), "trigger_kind", &r.Trigger, "actor", &r.Actor,
		"created_at", sqlrow.TimeInto(&r.CreatedAt), "started_at", sqlrow.TimeInto(&r.StartedAt),
		"ended_at", sqlrow.TimeInto(&r.EndedAt), "steps_total", &r.StepsTotal, "steps_done", &r.StepsDone,
		"sequence", &r.Sequence, "position", &r.Position, "interpreter", &r.Interpreter, "execution_id", &r.ExecutionID,
	)
}

// headFields are the columns that lists show: all except the large ones. In SQLite the expiry is stored after those: it
// is read only for statuses that use it.
func headFields(r *run.Run) sqlrow.Fields {
	return append(insertedFields(r), sqlrow.Col("error", sqlrow.JSONInto(&r.Error)),
		sqlrow.Col(`CASE WHEN status = 'queued' AND queued_reason = 'engine' THEN expires_at END`,
			sqlrow.TimeInto(&r.ExpiresAt)),
		sqlrow.Col(`CASE WHEN trigger_kind = 'import' THEN (SELECT engine FROM run_legacy WHERE run_id = runs.id) END`,
			sqlrow.TextInto(&r.LegacyEngine)))
}

func scanHead(row sqlrow.Scanner) (run.Run, error) { return sqlrow.Scan(headFields)(row) }

func runFields(r *run.Run) sqlrow.Fields {
	return append(headFields(r), sqlrow.Row(
		"metered", &r.Metered, "input", sqlrow.RawInto(&r.Input), "output", sqlrow.RawInto(&r.Output),
		"redacted", &r.Redacted, "input_redacted", &r.InputRedacted, "end_redacted", &r.EndRedacted,
		"request_digest", &r.RequestDigest, "written_at", sqlrow.TimeInto(&r.WrittenAt),
	)...)
}

// RemoveUnstarted implements [sealed.Store]. A run with an update has started, whatever its status is.
func (s *Store) RemoveUnstarted(ctx context.Context, id string,
	given sealed.Sealed[audit.Entry]) (removed bool, err error) {
	e := given.Value()
	err = s.db.Write(ctx, "remove run", func(ctx context.Context, c sqldb.Conn) (err error) {
		removed, err = sqlrow.Affected(ctx, c,
			`DELETE FROM runs WHERE id = $1 AND status = $2 AND queued_reason = $3 AND position = 0 AND NOT disclosed`,
			id, run.Queued, run.QueuedStarting)
		if err != nil {
			return err
		}
		if !removed {
			return needRun(ctx, c, id)
		}
		if err := errors.Join(runrow.Unlink(ctx, c, id), runrow.RemoveLabels(ctx, c, id), runrow.RemoveTerms(ctx, c, id),
			runrow.RemoveWarnings(ctx, c, id),
			runrow.RemoveOriginals(ctx, c, id),
			s.Quotas().revoke(ctx, c, e.Project, id)); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	if removed && err == nil {
		s.notifyAdmissible(e.Project)
	}
	return removed && err == nil, err
}

// GetRun implements [run.Store].
func (s *Store) GetRun(ctx context.Context, project, id string) (r run.Run, err error) {
	err = s.db.Read(ctx, "get run", func(ctx context.Context, c sqldb.Conn) (err error) {
		if r, err = getRun(ctx, c, project, id); err == nil && r.WaitingKind == run.WaitingQuota {
			r.Quota, err = s.Quotas().stepUsage(ctx, c, project)
		}
		return err
	})
	return r, err
}

// getRun reads a run and what belongs to it. For most runs that is one query, because it finds that they have nothing
// beside their row.
func getRun(ctx context.Context, c sqldb.Conn, project, id string) (run.Run, error) {
	var has runrow.Relations
	r, err := sqlrow.One(ctx, c,
		`SELECT `+sqlrow.Columns(runFields)+runrow.RelationColumns+
			` FROM runs WHERE id = $1 AND project = $2`, []any{id, project},
		func(row sqlrow.Scanner) (r run.Run, err error) {
			return r, row.Scan(append(runFields(&r).Into(), has.Into()...)...)
		}, func() error {
			if err := ledger.NeedProject(ctx, c, project); err != nil {
				return err
			}
			return noRun(id)
		})
	if err != nil {
		return r, err
	}
	if r.QueuePosition, err = queuePosition(ctx, c, r); err != nil {
		return r, err
	}
	if has.Verdict {
		if r.Stuck, err = runrow.StuckOf(ctx, c, r); err != nil {
			return r, err
		}
	}
	if has.Repair {
		if r.Behind, err = runrow.BehindOf(ctx, c, r.ID); err != nil {
			return r, err
		}
	}
	if r.FailedStep, err = runrow.FailedStep(ctx, c, r); err != nil {
		return r, err
	}
	if has.Labels {
		if r.Labels, err = runrow.LabelsOf(ctx, c, r.ID); err != nil {
			return r, err
		}
	}
	r.Summarized = has.Summary
	return r, runrow.Related(ctx, c, &r, has)
}

// identityOf returns the columns of a run that determine its failure group, and those that an event which reports its
// failure has.
func identityOf(ctx context.Context, c sqldb.Conn, id string) (run.Run, error) {
	return sqlrow.One(ctx, c,
		`SELECT id, project, workflow, version, trigger_kind, created_at, started_at FROM runs WHERE id = $1`, []any{id},
		func(row sqlrow.Scanner) (r run.Run, err error) {
			return r, row.Scan(&r.ID, &r.Project, &r.Workflow, &r.Version, &r.Trigger, sqlrow.TimeInto(&r.CreatedAt),
				sqlrow.TimeInto(&r.StartedAt))
		}, func() error { return noRun(id) })
}

func noRun(id string) error {
	return apperror.New(apperror.NotFound, apperror.RunNotFound,
		"run %q does not exist: `signalbox run list` shows those that do", id)
}

func needRun(ctx context.Context, c sqldb.Conn, id string) error {
	ok, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM runs WHERE id = $1`, id)
	if err == nil && !ok {
		return noRun(id)
	}
	return err
}

// MarkCancelRequested implements [run.Store].
func (s *Store) MarkCancelRequested(
	ctx context.Context, project, id, reason string, e audit.Entry,
) (r run.Run, err error) {
	if err := sqlrow.Storable("reason", reason); err != nil {
		return r, err
	}
	err = s.db.Write(ctx, "request cancellation", func(ctx context.Context, c sqldb.Conn) error {
		changed, err := sqlrow.Affected(ctx, c, `UPDATE runs
SET cancel_requested = TRUE, cancel_reason = $3, sequence = sequence + 1
WHERE id = $1 AND project = $2 AND NOT cancel_requested
AND (status = 'canceled' OR status IN `+openStatuses+`)`, id, project, reason)
		if err != nil {
			return err
		}
		if r, err = getRun(ctx, c, project, id); err != nil || !changed {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return r, err
}

// FinishMissing implements [sealed.Store]. It ends open steps with the run: no later update will.
func (s *Store) FinishMissing(
	ctx context.Context, id string, status run.Status, given sealed.Sealed[*run.Error], at time.Time,
	note sealed.Sealed[audit.Entry],
) (finished bool, err error) {
	e := note.Value()
	runError, err := sqlrow.AsJSON(given.Value(), given.Value() == nil)
	if err != nil {
		return false, err
	}
	err = s.db.Write(ctx, "finish run", func(ctx context.Context, c sqldb.Conn) (err error) {
		ended, err := identityOf(ctx, c, id)
		if err != nil {
			return err
		}
		ended.Status, ended.Error, ended.EndedAt = status, given.Value(), sqlrow.Kept(at)
		finished, err = sqlrow.Affected(ctx, c, `UPDATE runs
SET status = $2, queued_reason = '', waiting_kind = '', status_at = $3, ended_at = $3, error = $4, failure_group = $5,
sequence = sequence + 1
WHERE id = $1 AND status IN `+openStatuses, id, status, sqlrow.Micros(at), runError, run.FailureGroup(ended))
		if err != nil {
			return err
		}
		if !finished {
			return needRun(ctx, c, id)
		}
		_, err = c.ExecContext(ctx, `UPDATE steps
SET status = 'canceled', waiting_kind = '', wait_until = NULL, ended_at = $2,
sequence = (SELECT sequence FROM runs WHERE id = $1)
WHERE run_id = $1 AND status IN ('running', 'waiting')`, id, sqlrow.Micros(at))
		if err != nil {
			return err
		}
		if err := events.EndListeners(ctx, c, s.db.Dialect(), []string{id}); err != nil {
			return err
		}
		if err := s.reportEnds(ctx, c, []run.Run{ended}); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	if finished && err == nil {
		s.notifyAdmissible(e.Project)
	}
	return finished && err == nil, err
}
