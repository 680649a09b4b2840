package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
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
	// unlimited is the condition under which a run of project $2 is inserted without a check for a slot: there is no
	// limit, and no earlier run waits.
	unlimited = `NOT EXISTS (SELECT 1 FROM quotas WHERE project = $2 AND concurrent_runs > 0) ` +
		`AND NOT EXISTS (SELECT 1 FROM runs WHERE project = $2 AND ` + waitsForSlot + `)`
	// metered reports whether a run of project $2 must request its steps.
	metered = `EXISTS (SELECT 1 FROM quotas WHERE project = $2 AND steps > 0)`
)

// exempt reports whether a run that is inserted needs no slot of its own: it uses that of its parent, which awaits it,
// or it is executed already.
func exempt(r run.Run) bool {
	return r.Parent.Awaited || r.Status != run.Queued || r.QueuedReason == run.QueuedWorker
}

// admissionNumber returns the admission number of a run that is inserted with a slot: NULL, except for a child with a slot of
// its own.
func admissionNumber(r run.Run) any {
	if r.Trigger == run.TriggerParent && !exempt(r) {
		return 0
	}
	return nil
}

// acceptRun decides whether a run of the project gets a slot, in the transaction that then inserts it: other calls wait
// until it ends. If the run does not get one, number is its number in the order of acceptance. limited is false in a
// project that never had a limit.
func acceptRun(ctx context.Context, c sqldb.Conn, project string) (limited, slot bool, number int64, err error) {
	var limit int64
	err = c.QueryRowContext(ctx,
		`UPDATE quotas SET accepted = accepted + 1 WHERE project = $1 RETURNING concurrent_runs, accepted`, project).
		Scan(&limit, &number)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, 0, nil
	}
	if err != nil {
		return false, false, 0, err
	}
	queue, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM runs WHERE project = $1 AND `+waitsForSlot+` LIMIT 1`, project)
	if err != nil || queue || limit == 0 {
		return true, !queue, number, err
	}
	placed, err := sqlrow.Count(ctx, c, countSlots, project)
	return true, placed < limit, number, err
}

// admissionPosition returns a run's position in its project's queue, from 1.
func admissionPosition(ctx context.Context, c sqldb.Conn, project, id string) (int64, error) {
	return sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM runs WHERE project = $1 AND `+waitsForSlot+
		` AND admission <= (SELECT admission FROM runs WHERE id = $2)`, project, id)
}

// Admit implements [run.AdmissionStore].
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

// ReturnAdmitted implements [run.AdmissionStore].
func (s *Quotas) ReturnAdmitted(ctx context.Context, id string, at time.Time) (returned bool, err error) {
	err = s.db.Exec(ctx, "return run to its project's queue", func(ctx context.Context, c sqldb.Conn) (err error) {
		returned, err = sqlrow.Affected(ctx, c, `UPDATE runs SET queued_reason = $2, status_at = $3, sequence = sequence + 1
WHERE id = $1 AND status = $4 AND queued_reason = $5 AND admission IS NOT NULL AND position = 0`,
			id, run.QueuedAdmission, sqlrow.Micros(at), run.Queued, run.QueuedStarting)
		return err
	})
	return returned && err == nil, err
}

// AdmissionQueues implements [run.AdmissionStore].
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
