package runrow

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Repairs stores requests to repair rows from Temporal's histories. It is safe for concurrent use.
type Repairs struct{ db *sqldb.DB }

var _ run.RepairRows = (*Repairs)(nil)

// NewRepairs returns a store on an open database.
func NewRepairs(db *sqldb.DB) *Repairs { return &Repairs{db: db} }

// RequestRepairs implements [run.RepairRows].
func (s *Repairs) RequestRepairs(ctx context.Context, list []run.RepairRequest) error {
	if len(list) == 0 {
		return nil
	}
	now := s.db.Dialect().Now
	return s.db.Write(ctx, "request repairs", func(ctx context.Context, c sqldb.Conn) error {
		for _, r := range list {
			_, err := c.ExecContext(ctx, `INSERT INTO run_repairs
(run_id, requested_at, due_at, reason, behind, forced, correction, attempts, done, problem, claim, generation)
SELECT id, `+now+`, `+now+` + $2, $3, $4, $5, $6, 0, '', '', 0, 1 FROM runs WHERE id = $1
ON CONFLICT (run_id) DO UPDATE SET
behind = run_repairs.behind OR excluded.behind,
forced = run_repairs.forced OR excluded.forced,
done = CASE WHEN excluded.forced THEN '' ELSE run_repairs.done END,
correction = CASE WHEN excluded.correction <> '' THEN excluded.correction ELSE run_repairs.correction END,
generation = run_repairs.generation + 1,
due_at = CASE WHEN run_repairs.attempts = 0
AND excluded.due_at < run_repairs.due_at THEN excluded.due_at ELSE run_repairs.due_at END`,
				r.RunID, r.After.Microseconds(), sqlrow.Mended(r.Reason), r.Behind, r.Force, string(r.Correction))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ClaimRepair implements [run.RepairRows].
func (s *Repairs) ClaimRepair(ctx context.Context,
	lease func(attempt int) time.Duration) (claimed run.Repair, ok bool, err error) {
	now := s.db.Dialect().Now
	err = s.db.Read(ctx, "find repairs", func(ctx context.Context, c sqldb.Conn) (err error) {
		ok, err = sqlrow.Exists(ctx, c, `SELECT 1 FROM run_repairs WHERE due_at <= `+now)
		return err
	})
	if err != nil || !ok {
		return run.Repair{}, false, err
	}
	err = s.db.Write(ctx, "claim a repair", func(ctx context.Context, c sqldb.Conn) error {
		ok = false
		// The lock makes a concurrent claim wait and then skip this request.
		due, err := sqlrow.Collect(ctx, c, `SELECT run_id, attempts FROM run_repairs WHERE due_at <= `+now+
			` ORDER BY due_at, run_id LIMIT 1`+s.db.Dialect().LockRows, nil, func(row sqlrow.Scanner) (r run.Repair, err error) {
			err = row.Scan(&r.RunID, &r.Attempts)
			return r, err
		})
		if err != nil || len(due) == 0 {
			return err
		}
		list, err := sqlrow.Collect(ctx, c,
			`UPDATE run_repairs SET claim = claim + 1, attempts = attempts + 1, due_at = `+now+` + $2
WHERE run_id = $1
RETURNING run_id, reason, behind, forced, correction, attempts, done, claim, generation,
COALESCE((SELECT project FROM runs WHERE id = run_id), '')`,
			[]any{due[0].RunID, lease(due[0].Attempts + 1).Microseconds()}, scanRepair)
		if err != nil || len(list) == 0 {
			return err
		}
		claimed, ok = list[0], true
		return nil
	})
	if err != nil || !ok {
		return run.Repair{}, false, err
	}
	return claimed, true, nil
}

func scanRepair(row sqlrow.Scanner) (r run.Repair, err error) {
	err = row.Scan(&r.RunID, &r.Reason, &r.Behind, &r.Force, &r.Correction, &r.Attempts, &r.Done, &r.Claim, &r.Generation,
		&r.Project)
	return r, err
}

// HoldRepair implements [run.RepairRows]. It never shortens the back-off of an attempt.
func (s *Repairs) HoldRepair(ctx context.Context, r run.Repair, lease time.Duration) (held bool, err error) {
	now := s.db.Dialect().Now
	err = s.db.Exec(ctx, "hold a repair", func(ctx context.Context, c sqldb.Conn) (err error) {
		held, err = sqlrow.Affected(ctx, c, `UPDATE run_repairs
SET due_at = CASE WHEN due_at < `+now+` + $3 THEN `+now+` + $3 ELSE due_at END,
done = CASE WHEN generation = $5 THEN $4 ELSE done END
WHERE run_id = $1 AND claim = $2`, r.RunID, r.Claim, lease.Microseconds(), r.Done, r.Generation)
		return err
	})
	return held && err == nil, err
}

// EndRepair implements [run.RepairRows].
func (s *Repairs) EndRepair(ctx context.Context, r run.Repair) error {
	return s.db.Write(ctx, "end a repair", func(ctx context.Context, c sqldb.Conn) error {
		gone, err := sqlrow.Affected(ctx, c, `DELETE FROM run_repairs WHERE run_id = $1 AND claim = $2 AND generation = $3`,
			r.RunID, r.Claim, r.Generation)
		if err != nil || gone {
			return err
		}
		_, err = c.ExecContext(ctx, `UPDATE run_repairs SET attempts = 0, problem = '', due_at = `+s.db.Dialect().Now+
			` WHERE run_id = $1 AND claim = $2`, r.RunID, r.Claim)
		return err
	})
}

// PostponeRepair implements [sealed.Store].
func (s *Repairs) PostponeRepair(ctx context.Context, r run.Repair, after time.Duration,
	failure sealed.Sealed[string]) error {
	return s.db.Exec(ctx, "postpone a repair", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE run_repairs SET due_at = `+s.db.Dialect().Now+` + $3,
attempts = CASE WHEN $4 = '' THEN attempts - 1 ELSE attempts END,
problem = CASE WHEN $4 = '' THEN problem ELSE $4 END,
done = CASE WHEN generation = $6 THEN $5 ELSE done END
WHERE run_id = $1 AND claim = $2`, r.RunID, r.Claim, after.Microseconds(), sqlrow.Mended(failure.Value()), r.Done, r.Generation)
		return err
	})
}

// BehindOf returns how the rows of a run are behind; nil if they are not known to be.
func BehindOf(ctx context.Context, c sqldb.Conn, runID string) (*run.Behind, error) {
	found, err := sqlrow.Collect(ctx, c, `SELECT `+behindColumns+` FROM run_repairs WHERE run_id = $1 AND `+known,
		[]any{runID}, scanBehind)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0].behind, nil
}

// AttachBehind adds to runs how their rows are behind.
func AttachBehind(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []run.Run) error {
	at := make(map[string]*run.Run, len(runs))
	ids := make([]string, len(runs))
	for i := range runs {
		at[runs[i].ID], ids[i] = &runs[i], runs[i].ID
	}
	return sqlrow.In(ctx, d, ids, nil, func(ctx context.Context, marks string, args []any) error {
		found, err := sqlrow.Collect(ctx, c, `SELECT `+behindColumns+` FROM run_repairs WHERE `+known+` AND run_id IN `+marks,
			args, scanBehind)
		for _, b := range found {
			at[b.run].Behind = &b.behind
		}
		return err
	})
}

const (
	behindColumns = `run_id, requested_at, reason, problem`
	// known selects the requests for rows that are known to be behind, as opposed to rows that are only to be compared.
	known = `(behind OR forced OR problem <> '')`
)

type behindRow struct {
	run    string
	behind run.Behind
}

func scanBehind(row sqlrow.Scanner) (b behindRow, err error) {
	err = row.Scan(&b.run, sqlrow.TimeInto(&b.behind.Since), &b.behind.Reason, &b.behind.Failure)
	return b, err
}
