package store

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	// inQueue selects the runs in the queue, including the one that is being handed over. The text equals the condition
	// of the index.
	inQueue = `queued_reason IN ('engine', 'starting') AND expires_at IS NOT NULL`
	// waitsForEngine selects those that wait.
	waitsForEngine = inQueue + ` AND queued_reason = 'engine'`
	// notHandedOver selects the runs that no process has tried to hand to Temporal, or none is handing over now.
	notHandedOver = `status = 'queued' AND queued_reason IN ('engine', 'admission')`
	// queueKey is the lock that serialises additions to the queue.
	queueKey = "run queue"
)

// EnqueueRun implements [sealed.Store].
func (s *Store) EnqueueRun(ctx context.Context, given sealed.Sealed[run.Run], limit int,
	e audit.Entry) (stored run.Run, made bool, err error) {
	asked, err := newStart(given.Value(), e)
	if err != nil {
		return stored, false, err
	}
	if err := s.activity.Record(ctx, asked.run.Project); err != nil {
		return stored, false, err
	}
	err = s.db.Write(ctx, "queue run", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := s.db.Serialize(ctx, c, queueKey); err != nil {
			return err
		}
		one := *asked
		if err := s.startRuns(ctx, c, one.run.Project, []*start{&one}); err != nil || one.err != nil {
			return errors.Join(err, one.err)
		}
		stored, made = one.run, one.made
		if !made || stored.QueuedReason == run.QueuedAdmission {
			return nil
		}
		total, err := sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM runs WHERE `+inQueue)
		if err != nil {
			return err
		}
		if total > int64(limit) {
			return run.ErrQueueFull
		}
		stored.QueuePosition, err = queuePosition(ctx, c, stored)
		return err
	})
	if err != nil {
		return run.Run{}, false, err
	}
	s.notifyQueued(stored, made)
	return stored, made, nil
}

// queuePosition counts from 1; it is 0 for a run that is not queued.
func queuePosition(ctx context.Context, c sqldb.Conn, r run.Run) (int64, error) {
	switch {
	case r.Status == run.Queued && r.QueuedReason == run.QueuedAdmission:
		return admissionPosition(ctx, c, r.Project, r.ID)
	case r.Status != run.Queued || r.QueuedReason != run.QueuedEngine:
		return 0, nil
	}
	return sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM runs WHERE `+waitsForEngine+` AND (created_at, id) <= ($1, $2)`,
		r.CreatedAt.UnixMicro(), r.ID)
}

// TakeQueued implements [run.Store].
func (s *Store) TakeQueued(ctx context.Context, id string, at time.Time) (bool, error) {
	return s.moveQueued(ctx, "take run from the queue", id, run.QueuedEngine, run.QueuedStarting, at)
}

// ReturnQueued implements [run.Store].
func (s *Store) ReturnQueued(ctx context.Context, id string, at time.Time) (bool, error) {
	return s.moveQueued(ctx, "return run to the queue", id, run.QueuedStarting, run.QueuedEngine, at)
}

// moveQueued changes the reason for which a run is queued. A run with an update has started.
func (s *Store) moveQueued(ctx context.Context, doing, id, from, to string, at time.Time) (moved bool, err error) {
	err = s.db.Exec(ctx, doing, func(ctx context.Context, c sqldb.Conn) (err error) {
		moved, err = sqlrow.Affected(ctx, c, `UPDATE runs SET queued_reason = $3, status_at = $4, sequence = sequence + 1
WHERE id = $1 AND `+inQueue+` AND queued_reason = $2 AND position = 0`, id, from, to, sqlrow.Micros(at))
		return err
	})
	return moved && err == nil, err
}

// FinishQueued implements [sealed.Store].
func (s *Store) FinishQueued(ctx context.Context, given sealed.Sealed[run.Run],
	note sealed.Sealed[audit.Entry]) (finished bool, err error) {
	r, e := given.Value(), note.Value()
	if err := sqlrow.Storable("reason", r.CancelReason); err != nil {
		return false, err
	}
	runError, err := sqlrow.AsJSON(r.Error, r.Error == nil)
	if err != nil {
		return false, err
	}
	err = s.db.Write(ctx, "finish queued run", func(ctx context.Context, c sqldb.Conn) error {
		ended, err := identityOf(ctx, c, r.ID)
		if err != nil {
			return err
		}
		ended.Status, ended.Error, ended.EndedAt = r.Status, r.Error, sqlrow.Kept(r.EndedAt)
		finished, err = sqlrow.Affected(ctx, c, `UPDATE runs
SET status = $2, queued_reason = '', status_at = $3, ended_at = $3, error = $4, cancel_requested = $5,
cancel_reason = $6,
failure_group = $7, sequence = sequence + 1
WHERE id = $1 AND `+notHandedOver, r.ID, r.Status, sqlrow.Micros(r.EndedAt), runError, r.CancelRequested, r.CancelReason, run.FailureGroup(ended))
		if err != nil {
			return err
		}
		if !finished {
			return needRun(ctx, c, r.ID)
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

// ListQueued implements [run.Store].
func (s *Store) ListQueued(ctx context.Context, f run.QueueFilter) (list []run.Run, err error) {
	var w sqlrow.Where
	w.Conditions = []string{inQueue}
	if f.After != nil {
		w.Conditions = append(w.Conditions,
			"(created_at, id) > ("+w.Arg(f.After.CreatedAt.UnixMicro())+", "+w.Arg(f.After.ID)+")")
	}
	if !f.ExpiredAt.IsZero() {
		w.Conditions = append(w.Conditions, "queued_reason = 'engine'")
		w.Is("expires_at", "<=", f.ExpiredAt.UnixMicro())
	}
	err = s.db.Read(ctx, "list the queue", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(headFields)+` FROM runs`+w.String()+` ORDER BY created_at, id`+
				sqlrow.Limit(f.Limit), w.Args, scanHead)
		return err
	})
	return list, err
}

// CountQueued implements [run.Store].
func (s *Store) CountQueued(ctx context.Context) (waiting, total int64, err error) {
	err = s.db.Read(ctx, "count the queue", func(ctx context.Context, c sqldb.Conn) error {
		return c.QueryRowContext(ctx,
			`SELECT COUNT(CASE WHEN queued_reason = 'engine' THEN 1 END), COUNT(*) FROM runs WHERE `+inQueue).
			Scan(&waiting, &total)
	})
	return waiting, total, err
}

// MarkDisclosed implements [run.Store].
func (s *Store) MarkDisclosed(ctx context.Context, project, id string) (r run.Run, err error) {
	err = s.db.Write(ctx, "mark a run as disclosed", func(ctx context.Context, c sqldb.Conn) (err error) {
		if _, err := c.ExecContext(ctx,
			`UPDATE runs SET disclosed = TRUE WHERE id = $1 AND project = $2 AND status = $3 AND queued_reason = $4
				AND NOT disclosed`,
			id, project, run.Queued, run.QueuedStarting); err != nil {
			return err
		}
		r, err = getRun(ctx, c, project, id)
		return err
	})
	return r, err
}
