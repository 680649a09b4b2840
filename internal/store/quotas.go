package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Quotas stores the quotas of projects and enforces them: it gives slots to runs in order of acceptance, and grants the
// steps of a period in blocks. It is safe for concurrent use.
//
// Grants are decided in the database, under the lock of the project's row, by any number of processes. Only its own row
// determines whether a run uses a slot, so a crash leaves no slot in use.
type Quotas struct{ db *sqldb.DB }

var _ quota.Store = (*Quotas)(nil)

// GetQuota implements [quota.Store].
func (s *Quotas) GetQuota(ctx context.Context, project string) (u quota.Usage, err error) {
	err = s.db.Read(ctx, "get quota", func(ctx context.Context, c sqldb.Conn) (err error) {
		u, err = s.usage(ctx, c, project)
		return err
	})
	return u, err
}

// SetQuota implements [quota.Store].
func (s *Quotas) SetQuota(ctx context.Context, project string, q quota.Quota, e audit.Entry) (u quota.Usage, err error) {
	err = s.db.Write(ctx, "set quota", func(ctx context.Context, c sqldb.Conn) (err error) {
		if err := ledger.NeedProject(ctx, c, project); err != nil {
			return err
		}
		before, err := s.lockPeriod(ctx, c, project)
		if err != nil {
			return err
		}
		if err := s.carry(ctx, c, project, before, q); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx,
			`INSERT INTO quotas (project, concurrent_runs, steps, period_seconds, accepted) VALUES ($1, $2, $3, $4, 0)
ON CONFLICT (project) DO UPDATE
SET concurrent_runs = excluded.concurrent_runs, steps = excluded.steps, period_seconds = excluded.period_seconds`,
			project, q.ConcurrentRuns, q.Steps, int64(q.Period/time.Second)); err != nil {
			return err
		}
		if u, err = s.usage(ctx, c, project); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return u, err
}

// usage reads a project's quota and its use.
func (s *Quotas) usage(ctx context.Context, c sqldb.Conn, project string) (u quota.Usage, err error) {
	p, err := s.periodOf(ctx, c, project)
	if err != nil {
		return u, err
	}
	if u.Quota = p.quota; u.Steps > 0 {
		u.Used, u.Next = p.Granted+p.Extra, p.next()
		u.Left, u.Age = max(0, u.Steps-p.Granted), p.now.Sub(p.begun)
	}
	if u == (quota.Usage{}) {
		if err := ledger.NeedProject(ctx, c, project); err != nil {
			return u, err
		}
	}
	if u.Admitted, err = sqlrow.Count(ctx, c, countSlots, project); err != nil {
		return u, err
	}
	if u.Queued, err = sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM runs WHERE project = $1 AND `+waitsForSlot,
		project); err != nil {
		return u, err
	}
	u.Waiting, err = sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM runs WHERE project = $1 AND `+waitsForSteps, project)
	return u, err
}

// quotaOf reads a project's quota; lock is the suffix that locks its row, or empty. The quota is zero if there is none.
func quotaOf(ctx context.Context, c sqldb.Conn, project, lock string) (quota.Quota, error) {
	return sqlrow.One(ctx, c, `SELECT concurrent_runs, steps, period_seconds FROM quotas WHERE project = $1`+lock,
		[]any{project},
		scanQuota, func() error { return nil })
}

func scanQuota(row sqlrow.Scanner) (q quota.Quota, err error) {
	var seconds int64
	err = row.Scan(&q.ConcurrentRuns, &q.Steps, &seconds)
	q.Period = time.Duration(seconds) * time.Second
	return q, err
}

// Exclusive implements [quota.Store].
func (s *Quotas) Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error) {
	return s.db.Exclusive(ctx, name, fn)
}

// HeldUp implements [quota.Store].
func (s *Quotas) HeldUp(ctx context.Context) (held []quota.Held, err error) {
	err = s.db.Read(ctx, "count runs that quotas hold up", func(ctx context.Context, c sqldb.Conn) (err error) {
		held, err = sqlrow.Collect(ctx, c, `SELECT q.project,
(SELECT COUNT(*) FROM runs r WHERE r.project = q.project AND r.`+waitsForSlot+`),
(SELECT COUNT(*) FROM runs r WHERE r.project = q.project AND r.`+waitsForSteps+`) FROM quotas q
ORDER BY q.project`, nil,
			func(row sqlrow.Scanner) (h quota.Held, err error) {
				return h, row.Scan(&h.Project, &h.Queued, &h.Waiting)
			})
		return err
	})
	return held, err
}
