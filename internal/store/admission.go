package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// The texts equal the conditions of the indexes.
const (
	// usesSlot selects the runs that use a slot, except children. Imported runs use none: this platform does not
	// execute them.
	usesSlot = `status IN ('queued', 'running', 'waiting') AND queued_reason <> 'admission' AND trigger_kind <> 'parent'
		AND trigger_kind <> 'import'`
	// childUsesSlot selects the children that use a slot of their own: those that are not awaited. Their admission
	// number marks them.
	childUsesSlot = `trigger_kind = 'parent' AND status IN ('queued', 'running', 'waiting')
		AND queued_reason <> 'admission' AND admission IS NOT NULL`
	// countSlots counts the slots that are used in project $1, by an index for each part.
	countSlots = `SELECT (SELECT COUNT(*) FROM runs WHERE project = $1 AND ` + usesSlot +
		`) + (SELECT COUNT(*) FROM runs WHERE project = $1 AND ` + childUsesSlot + `)`
	// waitsForSlot selects the runs that wait for a slot.
	waitsForSlot = `queued_reason = 'admission'`
	// waitsForSteps selects those that wait for steps.
	waitsForSteps = `waiting_kind = 'quota'`
	// unlimited is whether a run of a row of projects is inserted without a check for a slot: there is no limit, and no
	// earlier run waits.
	unlimited = `NOT EXISTS (SELECT 1 FROM quotas q WHERE q.project = projects.name AND q.concurrent_runs > 0)
AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.project = projects.name AND r.` + waitsForSlot + `)`
	// metered is whether a run of a row of projects must request its steps.
	metered = `EXISTS (SELECT 1 FROM quotas q WHERE q.project = projects.name AND q.steps > 0)`
)

// exempt reports whether a run that is inserted needs no slot of its own: it uses that of its parent, which awaits it,
// or it is executed already.
func exempt(r run.Run) bool {
	return r.Parent.Awaited || r.Status != run.Queued || r.QueuedReason == run.QueuedWorker
}

// admissionNumber returns the admission number of a run that is inserted with a slot: none, except for a child with a
// slot of its own.
func admissionNumber(r run.Run) sql.NullInt64 {
	return sql.NullInt64{Valid: r.Trigger == run.TriggerParent && !exempt(r)}
}

// acceptance is what a project has for new runs.
type acceptance struct {
	// slots is the number of free slots.
	slots int64
	// first is the number of the first of the runs in the order of acceptance.
	first int64
}

// acceptRuns decides how many of n runs of a project get a slot, in the transaction that then inserts them: other calls
// wait until it ends. In a project that never had a limit, all do: a queue may exist there, of rows that were created
// otherwise, and new runs do not wait behind those.
func acceptRuns(ctx context.Context, c sqldb.Conn, project string, n int) (a acceptance, err error) {
	var limit, last int64
	err = c.QueryRowContext(ctx,
		`UPDATE quotas SET accepted = accepted + $2 WHERE project = $1 RETURNING concurrent_runs, accepted`, project, n).
		Scan(&limit, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return acceptance{slots: math.MaxInt64}, nil
	}
	if err != nil {
		return a, err
	}
	a.first = last - int64(n) + 1
	queue, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM runs WHERE project = $1 AND `+waitsForSlot+` LIMIT 1`, project)
	switch {
	case err != nil || queue:
		return a, err
	case limit == 0:
		a.slots = math.MaxInt64
		return a, nil
	}
	used, err := sqlrow.Count(ctx, c, countSlots, project)
	a.slots = limit - used
	return a, err
}

// admissionPosition returns a run's position in its project's queue, from 1.
func admissionPosition(ctx context.Context, c sqldb.Conn, project, id string) (int64, error) {
	return sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM runs WHERE project = $1 AND `+waitsForSlot+
		` AND admission <= (SELECT admission FROM runs WHERE id = $2)`, project, id)
}

// Admit implements [start.AdmissionStore].
func (s *Quotas) Admit(ctx context.Context, project string, most int, at time.Time) (ids []string, err error) {
	queue := false
	err = s.db.Read(ctx, "find runs that wait for a slot", func(ctx context.Context, c sqldb.Conn) (err error) {
		queue, err = sqlrow.Exists(ctx, c, `SELECT 1 FROM runs WHERE project = $1 AND `+waitsForSlot+` LIMIT 1`, project)
		return err
	})
	if err != nil || !queue {
		return nil, err
	}
	err = s.db.Write(ctx, "admit runs", func(ctx context.Context, c sqldb.Conn) error {
		ids = nil
		q, err := quotaOf(ctx, c, project, s.db.Dialect().LockRows)
		if err != nil {
			return err
		}
		free := int64(most)
		if q.ConcurrentRuns > 0 {
			placed, err := sqlrow.Count(ctx, c, countSlots, project)
			if err != nil {
				return err
			}
			free = min(free, q.ConcurrentRuns-placed)
		}
		if free <= 0 {
			return nil
		}
		ids, err = admitRuns(ctx, c, project, int(free), at)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// admitRuns gives slots to the first runs of the queue. A run that is canceled concurrently is skipped.
func admitRuns(ctx context.Context, c sqldb.Conn, project string, free int, at time.Time) ([]string, error) {
	type admitted struct {
		id     string
		number int64
	}
	list, err := sqlrow.Collect(ctx, c, `UPDATE runs SET queued_reason = $2, status_at = $3, sequence = sequence + 1
WHERE `+waitsForSlot+` AND id IN (SELECT id FROM runs WHERE project = $1 AND `+waitsForSlot+`
ORDER BY admission`+sqlrow.Limit(free)+`)
RETURNING id, admission`, []any{project, run.QueuedStarting, sqlrow.Micros(at)}, func(row sqlrow.Scanner) (a admitted, err error) {
		return a, row.Scan(&a.id, &a.number)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b admitted) int { return cmp.Compare(a.number, b.number) })
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = a.id
	}
	return ids, nil
}

// ReturnAdmitted implements [start.AdmissionStore].
func (s *Quotas) ReturnAdmitted(ctx context.Context, id string, at time.Time) (returned bool, err error) {
	err = s.db.Exec(ctx, "return run to its project's queue", func(ctx context.Context, c sqldb.Conn) (err error) {
		returned, err = sqlrow.Affected(ctx, c, `UPDATE runs SET queued_reason = $2, status_at = $3, sequence = sequence + 1
WHERE id = $1 AND status = $4 AND queued_reason = $5 AND admission IS NOT NULL AND position = 0`,
			id, run.QueuedAdmission, sqlrow.Micros(at), run.Queued, run.QueuedStarting)
		return err
	})
	return returned && err == nil, err
}

// AdmissionQueues implements [start.AdmissionStore].
func (s *Quotas) AdmissionQueues(ctx context.Context) (map[string]int64, error) {
	return s.perProject(ctx, "count runs that wait for a slot", waitsForSlot)
}

// perProject counts the runs of each project that has any.
func (s *Quotas) perProject(ctx context.Context, doing, condition string) (counts map[string]int64, err error) {
	err = s.db.Read(ctx, doing, func(ctx context.Context, c sqldb.Conn) error {
		counts = map[string]int64{}
		_, err := sqlrow.Collect(ctx, c, `SELECT project, COUNT(*) FROM runs WHERE `+condition+` GROUP BY project`, nil,
			func(row sqlrow.Scanner) (struct{}, error) {
				var project string
				var count int64
				err := row.Scan(&project, &count)
				counts[project] = count
				return struct{}{}, err
			})
		return err
	})
	return counts, err
}
