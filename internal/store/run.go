package store

import (
	"context"
	"errors"
	"slices"
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

// InsertRun implements [sealed.Store].
func (s *Store) InsertRun(ctx context.Context, given sealed.Sealed[run.Run],
	e audit.Entry) (stored run.Run, made bool, err error) {
	r := given.Value()
	if err := storableRun(r); err != nil {
		return stored, false, err
	}
	r.Sequence = max(r.Sequence, 1)
	err = s.db.Write(ctx, "insert run", func(ctx context.Context, c sqldb.Conn) (err error) {
		stored, made, err = insertOrFind(ctx, c, r)
		if err != nil || !made {
			return err
		}
		if err := s.writeParts(ctx, c, &stored); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	if err != nil {
		return run.Run{}, false, err
	}
	s.notifyQueued(stored, made)
	return stored, made, nil
}

// writeParts writes the labels, the warnings and the originals of a run that was inserted.
func (s *Store) writeParts(ctx context.Context, c sqldb.Conn, r *run.Run) error {
	list := runrow.OriginalRows(r.ID, r.Originals...)
	r.Redacted, r.InputRedacted = len(list) > 0, slices.ContainsFunc(r.Originals, func(o run.Original) bool {
		return o.What == run.OriginalInput
	})
	r.Originals, r.MissingLabels = nil, nil
	return errors.Join(runrow.AddLabels(ctx, c, s.db.Dialect(), *r), runrow.AddWarnings(ctx, c, s.db.Dialect(), *r),
		runrow.WriteOriginals(ctx, c, s.db.Dialect(), list))
}

// notifyQueued reports a run that waits for a slot to OnAdmissible: one may have become free while the store decided
// that there was none.
func (s *Store) notifyQueued(r run.Run, made bool) {
	if made && r.QueuedReason == run.QueuedAdmission {
		s.notifyAdmissible(r.Project)
	}
}

func storableRun(r run.Run) error {
	if err := sqlrow.Storable("input", string(r.Input)); err != nil {
		return err
	}
	return sqlrow.Storable("request_id", r.RequestID)
}

// insertOrFind adds a run, or finds the one that an earlier call with its request ID made. Without a limit of runs it
// is one statement; with one, that statement adds nothing, and [acceptRun] decides whether there is a slot.
func insertOrFind(ctx context.Context, c sqldb.Conn, r run.Run) (run.Run, bool, error) {
	condition := ` AND ` + unlimited
	if exempt(r) {
		condition = ""
	}
	for {
		made, err := insert(ctx, c, &r, condition, admissionNumber(r))
		if err != nil || made {
			return r, made, err
		}
		if condition != "" {
			if accepted, made, err := insertLimited(ctx, c, r); err != nil || made {
				return accepted, made, err
			}
		}
		earlier, err := sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(runFields)+` FROM runs WHERE project = $1 AND request_id = $2`,
			[]any{r.Project, r.RequestID}, sqlrow.Scan(runFields))
		if err != nil {
			return r, false, err
		}
		if len(earlier) > 0 {
			return earlier[0], false, nil
		}
		if err := ledger.NeedProject(ctx, c, r.Project); err != nil {
			return r, false, err
		}
		// The run with this request ID was removed between the two statements: the ID is free again.
	}
}

// insertLimited adds a run in a project that has, or had, a limit of runs: with a slot, or in the queue for one.
func insertLimited(ctx context.Context, c sqldb.Conn, r run.Run) (run.Run, bool, error) {
	limited, slot, number, err := acceptRun(ctx, c, r.Project)
	if err != nil {
		return r, false, err
	}
	// A queue may exist without a limit, of rows that were created otherwise: new runs do not wait behind those.
	if !limited || slot {
		made, err := insert(ctx, c, &r, "", admissionNumber(r))
		return r, made, err
	}
	r.QueuedReason, r.ExpiresAt = run.QueuedAdmission, time.Time{}
	made, err := insert(ctx, c, &r, "", number)
	if err != nil || !made {
		return r, false, err
	}
	r.QueuePosition, err = admissionPosition(ctx, c, r.Project, r.ID)
	return r, true, err
}

// insert adds a run unless a run with its request ID exists, or condition is false; admission is its number in the
// queue if it has one. A run that waits for a slot counts as disclosed to its caller.
func insert(ctx context.Context, c sqldb.Conn, r *run.Run, condition string, admission any) (bool, error) {
	fresh := *r
	fresh.WaitingKind, fresh.CancelReason, fresh.StartedAt, fresh.EndedAt = "", "", time.Time{}, time.Time{}
	fresh.StepsTotal, fresh.StepsDone, fresh.Position = 0, 0, 0
	row := append(insertedFields(&fresh), sqlrow.Row(
		"state_position", 0, "input", sqlrow.RawInto(&r.Input), "expires_at", sqlrow.TimeInto(&r.ExpiresAt),
		"disclosed", r.QueuedReason == run.QueuedAdmission, "admission", admission, "request_digest", r.RequestDigest,
	)...)
	args, err := row.Args()
	if err != nil {
		return false, err
	}
	// The project is the second argument, also in the conditions.
	metered, err := sqlrow.Collect(ctx, c, `INSERT INTO runs (`+row.Names("")+`, metered, events_after)
SELECT `+sqlrow.Marks(len(row))+`, `+metered+`, COALESCE((SELECT head FROM inboxes WHERE project = $2), 0)
WHERE EXISTS (SELECT 1 FROM projects WHERE name = $2)`+condition+` ON CONFLICT (project, request_id) DO NOTHING
RETURNING metered`, args,
		func(row sqlrow.Scanner) (metered bool, err error) { return metered, row.Scan(&metered) })
	if err != nil || len(metered) == 0 {
		return false, err
	}
	r.CreatedAt, r.StatusAt, r.ExpiresAt = sqlrow.Kept(r.CreatedAt), sqlrow.Kept(r.StatusAt), sqlrow.Kept(r.ExpiresAt)
	r.Metered = metered[0]
	if err := runrow.Link(ctx, c, *r); err != nil {
		return false, err
	}
	return true, runrow.NeedOpenAncestors(ctx, c, *r)
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
		if err := errors.Join(runrow.Unlink(ctx, c, id), runrow.RemoveLabels(ctx, c, id), runrow.RemoveWarnings(ctx, c, id),
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

// MarkHandedOver implements [run.Store].
func (s *Store) MarkHandedOver(ctx context.Context, id, executionID string, at time.Time) error {
	return s.db.Exec(ctx, "mark run as handed over", func(ctx context.Context, c sqldb.Conn) error {
		changed, err := sqlrow.Affected(ctx, c, `UPDATE runs
SET queued_reason = $2, status_at = $3, execution_id = $4, sequence = sequence + 1
WHERE id = $1 AND status = $5 AND queued_reason = $6`,
			id, run.QueuedWorker, sqlrow.Micros(at), executionID, run.Queued, run.QueuedStarting)
		if err != nil || changed {
			return err
		}
		return needRun(ctx, c, id)
	})
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
		if err := events.ReportRuns(ctx, c, s.db.Dialect(), []run.Run{ended}); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	if finished && err == nil {
		s.notifyAdmissible(e.Project)
	}
	return finished && err == nil, err
}
