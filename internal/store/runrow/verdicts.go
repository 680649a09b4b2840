package runrow

import (
	"context"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Inbox commits events within a transaction; the store of events implements it.
type Inbox interface {
	// Add reports whether the project's dispatcher is parked.
	Add(ctx context.Context, c sqldb.Conn, project string, list []event.Event) ([]event.Accepted, bool, error)
}

// VerdictRows stores verdicts. It is safe for concurrent use.
type VerdictRows struct {
	db    *sqldb.DB
	inbox Inbox
}

var _ sealed.VerdictStore = (*VerdictRows)(nil)

// NewVerdictRows returns a store on an open database. Package store migrates its schema.
func NewVerdictRows(db *sqldb.DB, inbox Inbox) *VerdictRows {
	return &VerdictRows{db: db, inbox: inbox}
}

// Verdicts implements [diagnose.Rows].
func (s *VerdictRows) Verdicts(ctx context.Context, after string,
	limit int) (list []diagnose.StoredVerdict, err error) {
	err = s.db.Read(ctx, "list verdicts", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT v.run_id, v.project, COALESCE(r.workflow, ''), COALESCE(r.version, ''), COALESCE(r.status, ''),
v.code, v.cause, v.since, v.detail, v.advice, v.checked_at, v.sequence, COALESCE(r.sequence, 0)
FROM run_verdicts v LEFT JOIN runs r ON r.id = v.run_id WHERE v.run_id > $1
ORDER BY v.run_id`+sqlrow.Limit(limit), []any{after}, scanGiven)
		return err
	})
	return list, err
}

func scanGiven(row sqlrow.Scanner) (g diagnose.StoredVerdict, err error) {
	var now int64
	err = row.Scan(&g.RunID, &g.Project, &g.Workflow, &g.Version, &g.Status, &g.Code, &g.Cause, sqlrow.TimeInto(&g.Since),
		&g.Detail, &g.Advice,
		sqlrow.TimeInto(&g.CheckedAt), &g.Sequence, &now)
	g.Moved = now != g.Sequence
	return g, err
}

// lockedRun is a run with a row that the transaction has locked.
type lockedRun struct {
	id        string
	workflow  string
	status    run.Status
	sequence  int64
	createdAt int64
}

// ChangeVerdicts implements [sealed.VerdictStore].
func (s *VerdictRows) ChangeVerdicts(ctx context.Context, project string, at time.Time,
	changes []sealed.Sealed[diagnose.Change]) (done diagnose.Changed, err error) {
	err = s.db.Write(ctx, "change verdicts", func(ctx context.Context, c sqldb.Conn) error {
		done = diagnose.Changed{}
		made, err := s.lockApplicable(ctx, c, sealed.Values(changes))
		if err != nil {
			return err
		}
		if err := s.apply(ctx, c, project, made, at); err != nil {
			return err
		}
		var told []event.Event
		for _, m := range made {
			done.Runs = append(done.Runs, m.RunID)
			for _, e := range m.Events {
				e.ID += "-" + strconv.FormatInt(m.Sequence, 10)
				told = append(told, e)
			}
		}
		if len(told) == 0 {
			return nil
		}
		_, done.Wake, err = s.inbox.Add(ctx, c, project, told)
		return err
	})
	if err != nil {
		return diagnose.Changed{}, err
	}
	return done, nil
}

// change is a change that is applied; its sequence is the run's after it.
type change struct {
	diagnose.Change

	workflow  string
	createdAt int64
	// current reports that the run still has the sequence of before, and gets the next one.
	current bool
}

// lockApplicable returns the changes that are not too late, and locks their runs until the transaction ends.
func (s *VerdictRows) lockApplicable(ctx context.Context, c sqldb.Conn,
	changes []diagnose.Change) (made []change, err error) {
	ids := make([]string, len(changes))
	for i, k := range changes {
		ids[i] = k.RunID
	}
	runs, verdicts := map[string]lockedRun{}, map[string]int64{}
	err = sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(ids), nil,
		func(ctx context.Context, marks string, args []any) error {
			locked, err := sqlrow.Collect(ctx, c,
				`SELECT id, workflow, status, sequence, created_at FROM runs WHERE id IN `+marks+` ORDER BY id`+
					s.db.Dialect().LockRows,
				args, func(row sqlrow.Scanner) (r lockedRun, err error) {
					return r, row.Scan(&r.id, &r.workflow, &r.status, &r.sequence, &r.createdAt)
				})
			if err != nil {
				return err
			}
			for _, r := range locked {
				runs[r.id] = r
			}
			kept, err := sqlrow.Collect(ctx, c,
				`SELECT run_id, sequence FROM run_verdicts WHERE run_id IN `+marks+` ORDER BY run_id`+s.db.Dialect().LockRows,
				args, func(row sqlrow.Scanner) (r lockedRun, err error) { return r, row.Scan(&r.id, &r.sequence) })
			for _, k := range kept {
				verdicts[k.id] = k.sequence
			}
			return err
		})
	for _, k := range changes {
		r, known := runs[k.RunID]
		m := change{
			Change: k, workflow: r.workflow, createdAt: r.createdAt, current: known && !r.status.Terminal() &&
				r.sequence == k.Sequence,
		}
		if sequence, there := verdicts[k.RunID]; k.To == nil && (!there || sequence != k.Sequence) || k.To != nil &&
			!m.current {
			continue
		}
		if m.current {
			m.Sequence++
		}
		made = append(made, m)
	}
	return made, err
}

// apply writes the changes.
func (s *VerdictRows) apply(ctx context.Context, c sqldb.Conn, project string, made []change, at time.Time) error {
	var moved, gone []string
	var given []change
	for _, m := range made {
		if m.current {
			moved = append(moved, m.RunID)
		}
		if m.To == nil {
			gone = append(gone, m.RunID)
		} else {
			given = append(given, m)
		}
	}
	for _, statement := range []struct {
		text string
		ids  []string
	}{
		{`UPDATE runs SET sequence = sequence + 1 WHERE id IN `, moved},
		{`DELETE FROM run_verdicts WHERE run_id IN `, gone},
	} {
		err := sqlrow.In(ctx, s.db.Dialect(), statement.ids, nil, func(ctx context.Context, marks string, args []any) error {
			_, err := c.ExecContext(ctx, statement.text+marks, args...)
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "run_verdicts",
		sqlrow.Replace("run_id", "workflow", "code", "cause", "sequence", "since", "checked_at", "detail", "advice"), given,
		func(m change) sqlrow.Fields {
			v := m.To
			k := kept{m.RunID, m.Sequence,
				run.Stuck{Code: v.Code, Cause: v.Cause, Since: v.Since, Detail: v.Detail, Advice: v.Advice, CheckedAt: at}}
			return append(keptFields(&k), sqlrow.Row(
				"project", project, "workflow", m.workflow, "created_at", m.createdAt,
			)...)
		})
	return err
}

// CheckVerdicts implements [diagnose.Rows].
func (s *VerdictRows) CheckVerdicts(ctx context.Context, runIDs []string, at time.Time) error {
	return s.db.Write(ctx, "confirm verdicts", func(ctx context.Context, c sqldb.Conn) error {
		return sqlrow.In(ctx, s.db.Dialect(), runIDs, []any{sqlrow.Micros(at)},
			func(ctx context.Context, marks string, args []any) error {
				_, err := c.ExecContext(ctx, `UPDATE run_verdicts SET checked_at = $1 WHERE run_id IN `+marks, args...)
				return err
			})
	})
}

// kept is a verdict as a row stores it.
type kept struct {
	run      string
	sequence int64
	stuck    run.Stuck
}

func keptFields(k *kept) sqlrow.Fields {
	return sqlrow.Row(
		"run_id", &k.run, "sequence", &k.sequence, "code", &k.stuck.Code, "cause", &k.stuck.Cause,
		"since", sqlrow.TimeInto(&k.stuck.Since), "detail", sqlrow.MendedInto(&k.stuck.Detail),
		"advice", sqlrow.MendedInto(&k.stuck.Advice), "checked_at", sqlrow.TimeInto(&k.stuck.CheckedAt),
	)
}

// StuckOf returns why a run is stuck; nil if it is not, or has changed since the verdict.
func StuckOf(ctx context.Context, c sqldb.Conn, r run.Run) (*run.Stuck, error) {
	if r.Status.Terminal() {
		return nil, nil //nolint:nilnil // no verdict is a valid result
	}
	found, err := sqlrow.Collect(ctx, c,
		`SELECT `+sqlrow.Columns(keptFields)+
			` FROM run_verdicts WHERE run_id = $1 AND sequence = $2`, []any{r.ID, r.Sequence}, sqlrow.Scan(keptFields))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0].stuck, nil
}

// AttachStuck sets the reason why runs are stuck, for those that are and have not changed since.
func AttachStuck(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []run.Run) error {
	at := map[string]*run.Run{}
	var ids []string
	for i := range runs {
		if !runs[i].Status.Terminal() {
			at[runs[i].ID], ids = &runs[i], append(ids, runs[i].ID)
		}
	}
	return sqlrow.In(ctx, d, ids, nil, func(ctx context.Context, marks string, args []any) error {
		found, err := sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(keptFields)+` FROM run_verdicts WHERE run_id IN `+marks,
			args, sqlrow.Scan(keptFields))
		for _, k := range found {
			if r := at[k.run]; r.Sequence == k.sequence {
				r.Stuck = &k.stuck
			}
		}
		return err
	})
}
