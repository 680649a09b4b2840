package legacy_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/migrate/internal/legacy"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

// pass runs a pass at a time, with a new follower: its progress is stored with the runs.
func (o old) pass(t *testing.T, to *storetest.Plain, at time.Time) legacy.Pass {
	t.Helper()
	p, err := legacy.NewFollower(to.Database(), o.options(at)).Pass(t.Context())
	require.NoError(t, err)
	return p
}

// add adds a run that is open on an engine that no longer exists, with an open step and an open wait.
func (o old) add(t *testing.T, id string, at time.Time) {
	t.Helper()
	stamp := at.Format("2006-01-02 15:04:05-07:00")
	o.exec(t, fmt.Sprintf(`INSERT INTO workflow_runs (id, project, workflow, engine, status, created_at) VALUES ('%s', 'shop', 'order', 'db', 'RUNNING', '%s')`, id, stamp))
	o.exec(t, fmt.Sprintf(`INSERT INTO workflow_run_steps (id, run_id, name, status, started_at) VALUES ('%[1]s', '%[1]s', 'charge', 'RUNNING', '%[2]s')`, id, stamp))
	o.exec(t, fmt.Sprintf(`INSERT INTO workflow_run_waits VALUES ('%[1]s', '%[1]s', 'event', 'OPEN', '%[2]s', NULL)`, id,
		stamp))
}

func TestRunsAddedLaterAreEnded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.fill(t)
		require.Equal(t, legacy.Pass{New: 12, Canceled: 4}, from.pass(t, to, importedAt))
		for _, engine := range []string{"null", "db", "temporal"} {
			for _, status := range []string{"running", "waiting", "completed", "failed"} {
				requireImported(t, to, engine, status)
			}
		}
		later := importedAt.Add(time.Minute)
		require.Zero(t, from.pass(t, to, later), "nothing is new")

		from.add(t, "late", later)
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, engine, status, created_at) VALUES ('late-temporal', 'shop', 'order', 'temporal', 'RUNNING', '2026-05-01 08:01:00+00:00')`)
		require.Equal(t, legacy.Pass{New: 2, Canceled: 1}, from.pass(t, to, later))
		late, err := to.GetRun(t.Context(), "shop", "late")
		require.NoError(t, err)
		require.Equal(t, []any{run.Canceled, later, "Engine gone"}, []any{late.Status, late.EndedAt, late.Error.Title})
		var original kept
		require.NoError(t, json.Unmarshal(late.Legacy, &original))
		require.Equal(t, "canceled", original.Waits[0].Status)
		stepsPage, err := to.ListSteps(t.Context(), "shop", "late", run.StepFilter{Limit: 10})
		require.NoError(t, err)
		steps := stepsPage.Steps
		require.Equal(t, "canceled", steps[0].Status)
		alive, err := to.GetRun(t.Context(), "shop", "late-temporal")
		require.NoError(t, err)
		require.Equal(t, run.Running, alive.Status, "Temporal's are left as they are")

		// It ends after all, on its engine.
		from.exec(t, `UPDATE workflow_runs SET status = 'COMPLETED', completed_at = '2026-05-01 08:02:00+00:00' WHERE id = 'late'`)
		require.Equal(t, legacy.Pass{Changed: 1}, from.pass(t, to, later.Add(time.Minute)))
		late, err = to.GetRun(t.Context(), "shop", "late")
		require.NoError(t, err)
		require.Equal(t, run.Completed, late.Status)

		entries, err := to.ListAudit(t.Context(), audit.Filter{Project: "shop", Action: audit.RunImport, Limit: 50})
		require.NoError(t, err)
		require.Len(t, entries, 3, "one for each time that something was written")
		require.JSONEq(t, `{"runs": 2, "settled": 1}`, string(entries[1].Detail))

		// A deleted run is not imported again.
		page, err := to.DeletePage(t.Context(), retention.Runs,
			retention.Cut{Project: "shop", Before: importedAt.Add(-time.Hour), EndedBefore: importedAt}, "", 100)
		require.NoError(t, err)
		require.EqualValues(t, 6, page.Deleted["runs"], "those that ended long ago")
		require.Zero(t, from.pass(t, to, later.Add(time.Minute)))
		report, err := legacy.Import(t.Context(), to.Database(), from.options(later))
		require.NoError(t, err)
		require.Equal(t, legacy.Report{Runs: 14, Unchanged: 8, Removed: 6}, report)
	})
}

// TestMoreThanOnePassReads has more runs than one pass reads, and several followers one after the other.
// TestNewRunsAreFoundByTime adds runs that the scan of all runs has passed.
func TestNewRunsAreFoundByTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.exec(t, `ALTER TABLE workflow_runs ADD COLUMN updated_at TIMESTAMPTZ`)
		from.add(t, "a", importedAt)
		require.Equal(t, legacy.Pass{New: 1, Canceled: 1}, from.pass(t, to, importedAt))
		here := connect(t, from.driver, from.into)
		later := importedAt
		for n := range 3 { // the marks move on
			later = later.Add(3 * time.Minute)
			id := fmt.Sprintf("b%d", n)
			from.add(t, id, later)
			here.exec(t, `UPDATE legacy_sources SET walked = '{"text": "z"}'`)
			require.Equal(t, legacy.Pass{New: 1, Canceled: 1}, from.pass(t, to, later))
			from.exec(t, fmt.Sprintf(`UPDATE workflow_runs SET note = 'moved', updated_at = '%s' WHERE id = 'a'`,
				later.Format("2006-01-02 15:04:05-07:00")))
			here.exec(t, `UPDATE legacy_sources SET walked = '{"text": "z"}'`)
			require.Equal(t, legacy.Pass{Changed: 1, Canceled: 1}, from.pass(t, to, later), "updated_at shows the change")
		}
	})
}

func TestMoreThanOnePassReads(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, from old, to *storetest.Plain) {
		const runs = 5_200
		series := fmt.Sprintf("(WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < %d) "+
			"SELECT value FROM n)", runs)
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, engine, status, created_at, completed_at) SELECT printf('%08d', value), 'shop', 'order', 'db', 'COMPLETED', '2026-03-01 12:00:00+00:00', '2026-03-01 12:00:02+00:00' FROM `+series)
		from.exec(t, `UPDATE workflow_runs SET created_at = '2026-03-01 12:00:01+00:00' WHERE id = '00005200'`)
		at := importedAt
		require.Equal(t, legacy.Pass{New: 5_000, First: true}, from.pass(t, to, at), "a part of it")
		from.add(t, "00000000", at)
		require.Equal(t, legacy.Pass{New: 201, Canceled: 1}, from.pass(t, to, at),
			"the rest, and what has come where the round was already")

		// The scan is at its beginning: runs at its end are found by their times.
		at = at.Add(5 * time.Minute)
		from.add(t, "b", at)
		from.exec(t, `UPDATE workflow_runs SET note = 'moved' WHERE id = '00005150'`)
		require.Equal(t, legacy.Pass{New: 1, Canceled: 1}, from.pass(t, to, at))
		require.Equal(t, legacy.Pass{Changed: 1}, from.pass(t, to, at), "a change without a new time is found by the scan")
		for n := range 4 { // the marks move on
			at = at.Add(3 * time.Minute)
			from.add(t, fmt.Sprintf("c%d", n), at)
			require.Equal(t, legacy.Pass{New: 1, Canceled: 1}, from.pass(t, to, at))
		}
	})
}

func TestTwoFollowers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.fill(t)
		followers := []*legacy.Follower{
			legacy.NewFollower(to.Database(), from.options(importedAt)),
			legacy.NewFollower(to.Database(), from.options(importedAt))}
		const passes = 4
		results := make(chan legacy.Pass, 2*passes)
		var group sync.WaitGroup
		for _, f := range followers {
			group.Go(func() {
				for range passes {
					if p, err := f.Pass(t.Context()); err == nil {
						results <- p
					}
				}
			})
		}
		group.Wait()
		close(results)
		var all legacy.Pass
		count := 0
		for p := range results {
			count++
			all.New, all.Changed, all.Canceled = all.New+p.New, all.Changed+p.Changed, all.Canceled+p.Canceled
		}
		require.Equal(t, 2*passes, count, "none failed")
		require.Equal(t, legacy.Pass{New: 12, Canceled: 4}, all, "each run once")
		list, err := to.ListRuns(t.Context(), run.Filter{Project: "shop", Limit: 50})
		require.NoError(t, err)
		require.Len(t, list, 12)
		for _, r := range list {
			require.EqualValues(t, 1, r.Sequence)
		}
	})
}

func TestInvalidRunsAreSkipped(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.add(t, "good", importedAt)
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, status, created_at) VALUES ('odd', 'shop', 'order', 'ODD', '2026-05-01 08:30:00+00:00')`)
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, status, created_at) VALUES ('where', 'My Shop', 'order', 'FAILED', '2026-05-01 08:30:00+00:00')`)
		p := from.pass(t, to, importedAt)
		require.Equal(t, legacy.Pass{
			New: 1, Canceled: 1, LeftOut: 2,
			Why: `the run "odd" has the status "ODD", which is none of those that can be imported`}, p)
		from.exec(t, `UPDATE workflow_runs SET status = 'FAILED'`)
		o := from.options(importedAt)
		o.Project = "default"
		p, err := legacy.NewFollower(to.Database(), o).Pass(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, p.New)
	})
}

func TestSourceUnavailable(t *testing.T) {
	t.Parallel()
	to := target(t, store.SQLite, filepath.Join(t.TempDir(), "signalbox.db"))
	path := filepath.Join(t.TempDir(), "later.db")
	f := legacy.NewFollower(to.Database(), old{dsn: path}.options(importedAt))
	_, err := f.Pass(t.Context())
	require.ErrorContains(t, err, "there is no such file")
	from := open(t, sqldb.SQLite, path)
	from.add(t, "a", importedAt)
	p, err := f.Pass(t.Context())
	require.NoError(t, err)
	require.Equal(t, legacy.Pass{New: 1, Canceled: 1}, p)
	from.exec(t, `ALTER TABLE workflow_runs DROP COLUMN engine`)
	_, err = f.Pass(t.Context())
	require.ErrorContains(t, err, "has no column engine")
}
