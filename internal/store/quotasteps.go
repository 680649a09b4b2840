package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// quotaPeriod is a period of a project's quota with the steps granted in it. Times are the database's, which all processes
// share.
type quotaPeriod struct {
	quota.Period

	quota quota.Quota
	begun time.Time
	now   time.Time
}

// next returns the beginning of the next period.
func (p quotaPeriod) next() time.Time { return p.begun.Add(p.quota.Period) }

// scanPeriod reads quota, row and time, and starts a new period if the last one is over.
func scanPeriod(row sqlrow.Scanner) (p quotaPeriod, err error) {
	var seconds int64
	err = row.Scan(&p.quota.ConcurrentRuns, &p.quota.Steps, &seconds, sqlrow.TimeInto(&p.begun), &p.Granted, &p.Extra,
		sqlrow.TimeInto(&p.now))
	p.quota.Period = time.Duration(seconds) * time.Second
	if err != nil || p.quota.Steps == 0 {
		return p, err
	}
	if begun := periodBegan(p.now, p.quota.Period); begun.After(p.begun) {
		p.begun, p.Period = begun, quota.Period{}
	}
	return p, nil
}

// periodBegan returns the beginning of the period that contains now.
func periodBegan(now time.Time, length time.Duration) time.Time {
	return now.Add(-time.Duration(now.UnixMicro()%length.Microseconds()) * time.Microsecond)
}

// periodOf reads a project's period; there is no quota of steps if its length is zero.
func (s *Quotas) periodOf(ctx context.Context, c sqldb.Conn, project string) (quotaPeriod, error) {
	return sqlrow.One(ctx, c,
		`SELECT q.concurrent_runs, q.steps, q.period_seconds, COALESCE(p.begun_at, 0), COALESCE(p.granted, 0),
			COALESCE(p.extra, 0), `+
			s.db.Dialect().Now+` FROM quotas q LEFT JOIN quota_periods p ON p.project = q.project WHERE q.project = $1`,
		[]any{project}, scanPeriod,
		func() error { return nil })
}

// lockPeriod locks the grants of steps of the project until the transaction ends, and reads its period.
func (s *Quotas) lockPeriod(ctx context.Context, c sqldb.Conn, project string) (quotaPeriod, error) {
	if _, err := c.ExecContext(ctx, `INSERT INTO quota_periods (project, begun_at, granted, extra) VALUES ($1, 0, 0, 0)
ON CONFLICT (project) DO UPDATE SET project = excluded.project`, project); err != nil {
		return quotaPeriod{}, err
	}
	return s.periodOf(ctx, c, project)
}

func writePeriod(ctx context.Context, c sqldb.Conn, project string, p quotaPeriod) error {
	_, err := c.ExecContext(ctx, `UPDATE quota_periods SET begun_at = $2, granted = $3, extra = $4 WHERE project = $1`,
		project, sqlrow.Micros(p.begun), p.Granted, p.Extra)
	return err
}

// GrantSteps implements [quota.Store].
func (s *Quotas) GrantSteps(ctx context.Context, r quota.Request) (g quota.Grant, err error) {
	err = s.db.Write(ctx, "grant steps", func(ctx context.Context, c sqldb.Conn) error {
		p, err := s.lockPeriod(ctx, c, r.Project)
		if err != nil {
			return err
		}
		if p.quota.Steps == 0 {
			g = quota.Free(time.Now())
			return nil
		}
		a, err := accountOf(ctx, c, r.RunID, p.begun)
		if err != nil {
			return err
		}
		before := a
		g = quota.Grant{Steps: quota.Give(p.quota.Steps, &p.Period, &a, r), Until: p.next(), Limit: p.quota.Steps}
		g.Used = p.Granted + p.Extra
		if g.Steps == 0 || a == before {
			return nil
		}
		if _, err := c.ExecContext(ctx,
			`INSERT INTO quota_grants (run_id, project, begun_at, taken, entered, total) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_id) DO UPDATE SET begun_at = excluded.begun_at, taken = excluded.taken, entered = excluded.entered,
total = excluded.total,
resumed_in = NULL`, r.RunID, r.Project, sqlrow.Micros(p.begun), a.Taken, a.Entered, a.Total); err != nil {
			return err
		}
		return writePeriod(ctx, c, r.Project, p)
	})
	return g, err
}

// accountOf reads the steps that a run was granted in the period that began at begun. In a new period it starts with
// none, and a grant of an earlier period with a lost response is void.
func accountOf(ctx context.Context, c sqldb.Conn, id string, begun time.Time) (quota.Account, error) {
	return sqlrow.One(ctx, c, `SELECT begun_at, taken, entered, total, resumed_in FROM quota_grants WHERE run_id = $1`,
		[]any{id},
		func(row sqlrow.Scanner) (a quota.Account, err error) {
			var last, resumed time.Time
			err = row.Scan(sqlrow.TimeInto(&last), &a.Taken, &a.Entered, &a.Total, sqlrow.TimeInto(&resumed))
			if !last.Equal(begun) {
				a = quota.Account{}
			}
			a.Resumed = resumed.Equal(begun)
			return a, err
		}, func() error { return nil })
}

// ResumeSteps implements [quota.Store].
func (s *Quotas) ResumeSteps(ctx context.Context, project, id string) (resumed bool, err error) {
	err = s.db.Write(ctx, "resume a run that waits for steps", func(ctx context.Context, c sqldb.Conn) error {
		p, err := s.lockPeriod(ctx, c, project)
		if err != nil || p.quota.Steps == 0 {
			return err
		}
		resumed, err = sqlrow.Affected(ctx, c,
			`INSERT INTO quota_grants (run_id, project, begun_at, taken, entered, total, resumed_in)
SELECT id, project, 0, 0, 0, 0, $3 FROM runs WHERE id = $2 AND project = $1 AND `+waitsForSteps+`
ON CONFLICT (run_id) DO UPDATE SET resumed_in = excluded.resumed_in`, project, id, sqlrow.Micros(p.begun))
		return err
	})
	return resumed && err == nil, err
}

// WaitingForSteps implements [quota.Store].
func (s *Quotas) WaitingForSteps(ctx context.Context, project string, most int) (ids []string, err error) {
	err = s.db.Read(ctx, "list runs that wait for steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		ids, err = sqlrow.Collect(ctx, c,
			`SELECT id FROM runs WHERE project = $1 AND `+waitsForSteps+` ORDER BY status_at, id`+sqlrow.Limit(most),
			[]any{project}, sqlrow.ScanText)
		return err
	})
	return ids, err
}

// ResumedSteps implements [quota.Store].
func (s *Quotas) ResumedSteps(ctx context.Context, project string, most int) (ids []string, err error) {
	err = s.db.Read(ctx, "list resumed runs that wait for steps", func(ctx context.Context, c sqldb.Conn) error {
		p, err := s.periodOf(ctx, c, project)
		if err != nil || p.quota.Steps == 0 {
			return err
		}
		ids, err = sqlrow.Collect(ctx, c,
			`SELECT r.id FROM quota_grants g JOIN runs r ON r.id = g.run_id WHERE g.project = $1 AND g.resumed_in = $2
AND r.`+waitsForSteps+` ORDER BY r.status_at,
r.id`+sqlrow.Limit(most), []any{project, sqlrow.Micros(p.begun)}, sqlrow.ScanText)
		return err
	})
	return ids, err
}

// ReturnSteps implements [quota.Store].
func (s *Quotas) ReturnSteps(ctx context.Context, most int) (ended int, err error) {
	var list []stepAccount
	err = s.db.Read(ctx, "find ended runs with steps", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT g.run_id, g.project, COALESCE(r.steps_total, $1) FROM quota_grants g LEFT JOIN runs r ON r.id = g.run_id
WHERE r.id IS NULL OR r.status NOT IN ('queued', 'running',
'waiting')`+sqlrow.Limit(most), []any{int64(quota.MostSteps)},
			func(row sqlrow.Scanner) (a stepAccount, err error) {
				return a, row.Scan(&a.run, &a.project, &a.entered)
			})
		return err
	})
	if err != nil {
		return 0, err
	}
	projects := map[string][]stepAccount{}
	for _, a := range list {
		projects[a.project] = append(projects[a.project], a)
	}
	for project, ended := range projects {
		if err := s.returnSteps(ctx, project, ended); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// revoke returns all steps that a run was granted in this period, because it was not started and is removed.
func (s *Quotas) revoke(ctx context.Context, c sqldb.Conn, project, runID string) error {
	granted, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM quota_grants WHERE run_id = $1`, runID)
	if err != nil || !granted {
		return err
	}
	return s.returnTo(ctx, c, project, []stepAccount{{run: runID, project: project}})
}

// stepAccount is a run that has ended, with the number of all steps it has entered.
type stepAccount struct {
	run, project string
	entered      int64
}

// returnSteps returns the steps of this period that runs of a project were granted and have not entered, once.
func (s *Quotas) returnSteps(ctx context.Context, project string, list []stepAccount) error {
	return s.db.Write(ctx, "return steps", func(ctx context.Context, c sqldb.Conn) error {
		return s.returnTo(ctx, c, project, list)
	})
}

func (s *Quotas) returnTo(ctx context.Context, c sqldb.Conn, project string, list []stepAccount) error {
	p, err := s.lockPeriod(ctx, c, project)
	if err != nil {
		return err
	}
	unused := int64(0)
	for _, a := range list {
		taken, err := accountOf(ctx, c, a.run, p.begun)
		if err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, `DELETE FROM quota_grants WHERE run_id = $1`, a.run); err != nil {
			return err
		}
		unused += quota.Unused(taken, a.entered)
	}
	if unused == 0 {
		return nil
	}
	p.Granted -= unused
	return writePeriod(ctx, c, project, p)
}

// carry moves the steps granted in a period to a period of another length, so that a change of the length grants
// nothing twice.
func (s *Quotas) carry(ctx context.Context, c sqldb.Conn, project string, before quotaPeriod, q quota.Quota) error {
	if before.quota.Steps == 0 || q.Steps == 0 || before.quota.Period == q.Period {
		return nil
	}
	before.begun = periodBegan(before.now, q.Period)
	return writePeriod(ctx, c, project, before)
}

// stepUsage returns how much of its project's steps is used, for a run that waits for some.
func (s *Quotas) stepUsage(ctx context.Context, c sqldb.Conn, project string) (*run.QuotaUsage, error) {
	p, err := s.periodOf(ctx, c, project)
	if err != nil || p.quota.Steps == 0 {
		return nil, err
	}
	return &run.QuotaUsage{Used: p.Granted + p.Extra, Limit: p.quota.Steps, ResetAt: p.next()}, nil
}
