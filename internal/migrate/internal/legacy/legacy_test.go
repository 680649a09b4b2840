package legacy_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/migrate/internal/legacy"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

// old is a legacy database that a test fills.
type old struct {
	*sql.DB
	driver sqldb.Driver
	dsn    string
	// into is the project of its runs.
	into string
}

// tables are those of docs/migration.md.
const tables = `
CREATE TABLE workflow_runs (id TEXT PRIMARY KEY, project TEXT NOT NULL, workflow TEXT NOT NULL, version TEXT, engine TEXT, status TEXT NOT NULL,
  input JSON, output JSON, error TEXT, created_at TIMESTAMPTZ NOT NULL, started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ, note TEXT);
CREATE TABLE workflow_run_steps (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT, status TEXT NOT NULL, attempt INTEGER,
  input JSON, output JSON, error TEXT, started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ);
CREATE INDEX workflow_run_steps_run ON workflow_run_steps (run_id);
CREATE TABLE workflow_run_waits (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, created_at TIMESTAMPTZ, resolved_at TIMESTAMPTZ);
CREATE INDEX workflow_run_waits_run ON workflow_run_waits (run_id);
CREATE TABLE workflow_run_snapshots (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, snapshot JSON NOT NULL, created_at TIMESTAMPTZ);
CREATE INDEX workflow_run_snapshots_run ON workflow_run_snapshots (run_id);`

func onBoth(t *testing.T, test func(t *testing.T, from old, to *storetest.Plain)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		onSQLite(t, test)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		from, into := open(t, sqldb.Postgres, storetest.Postgres(t)), storetest.Postgres(t)
		from.into = into
		test(t, from, target(t, store.Postgres, into))
	})
}

func onSQLite(t *testing.T, test func(t *testing.T, from old, to *storetest.Plain)) {
	t.Helper()
	from, into := open(t, sqldb.SQLite, filepath.Join(t.TempDir(), "legacy.db")),
		filepath.Join(t.TempDir(), "signalbox.db")
	from.into = into
	test(t, from, target(t, store.SQLite, into))
}

func open(t *testing.T, driver sqldb.Driver, dsn string) old {
	t.Helper()
	o := connect(t, driver, dsn)
	o.exec(t, tables)
	return o
}

// connect opens any database with a connection of its own.
func connect(t *testing.T, driver sqldb.Driver, dsn string) old {
	t.Helper()
	name := map[sqldb.Driver]string{sqldb.SQLite: "sqlite", sqldb.Postgres: "pgx"}[driver]
	db, err := sql.Open(name, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return old{DB: db, driver: driver, dsn: dsn}
}

func (o old) exec(t *testing.T, statement string) {
	t.Helper()
	_, err := o.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

func target(t *testing.T, driver sqldb.Driver, dsn string) *storetest.Plain {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: driver, DSN: dsn, AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Start(ctx))
	return s
}

var importedAt = time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)

func (o old) options(at time.Time) legacy.Options {
	return legacy.Options{DSN: o.dsn, Namespace: "legacy", Now: func() time.Time { return at }}
}

// fill creates a run of each engine in each state, each with an open and a closed step, an open and a resolved wait,
// and a snapshot.
func (o old) fill(t *testing.T) {
	t.Helper()
	for _, engine := range []string{"NULL", "'db'", "'temporal'"} {
		for _, status := range []string{"RUNNING", "WAITING", "COMPLETED", "FAILED"} {
			id := strings.Trim(strings.ToLower(engine), "'") + "-" + strings.ToLower(status)
			completed, output, failure := "NULL", "NULL", "NULL"
			if status == "COMPLETED" || status == "FAILED" {
				completed = "'2026-03-01 12:00:09+00:00'"
				output, failure = map[string]string{"COMPLETED": `'{"ok": true}'`, "FAILED": "NULL"}[status],
					map[string]string{"COMPLETED": "NULL", "FAILED": "'it broke'"}[status]
			}
			o.exec(t, fmt.Sprintf(`INSERT INTO workflow_runs VALUES ('%[1]s', 'shop', 'order', '1.2.0', %[2]s, '%[3]s', '{"n": 1}',
%[5]s, %[6]s,
'2026-03-01 12:00:00+00:00', '2026-03-01 12:00:01+00:00', %[4]s, 'kept')`, id, engine, status, completed, output, failure))
			o.exec(t, fmt.Sprintf(`INSERT INTO workflow_run_steps VALUES
('%[1]s-b', '%[1]s', 'charge', 'http', '%[2]s', 2, '{"a": 1}', NULL, NULL, '2026-03-01 12:00:03+00:00', NULL),
('%[1]s-c', '%[1]s', 'check', 'set', 'COMPLETED', NULL, NULL, '5', NULL, '2026-03-01 12:00:02+00:00', '2026-03-01 12:00:03+00:00')`, id,
				map[bool]string{true: "RUNNING", false: "FAILED"}[completed == "NULL"]))
			o.exec(t, fmt.Sprintf(`INSERT INTO workflow_run_waits VALUES
('%[1]s-1', '%[1]s', 'timer', 'RESOLVED', '2026-03-01 12:00:02+00:00', '2026-03-01 12:00:03+00:00'),
('%[1]s-2', '%[1]s', 'event', 'OPEN', '2026-03-01 12:00:04+00:00', NULL)`, id))
			o.exec(t, fmt.Sprintf(`INSERT INTO workflow_run_snapshots VALUES ('%[1]s-s', '%[1]s', '{"state": {"x": [1, 2]}}', '2026-03-01 12:00:05+00:00')`, id))
		}
	}
}

// kept is the structure of Run.Legacy.
type kept struct {
	Row   map[string]any
	Waits []struct {
		ID         string
		Status     string
		ResolvedAt *string `json:"resolved_at"`
	}
	Snapshots []map[string]any
}

func TestEveryEngineInEveryState(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.fill(t)
		report, err := legacy.Import(t.Context(), to.Database(), from.options(importedAt))
		require.NoError(t, err)
		require.Equal(t, legacy.Report{Runs: 12, New: 12, Canceled: 4, Waits: 4, Steps: 24, Projects: []string{"shop"}},
			report)
		for _, engine := range []string{"null", "db", "temporal"} {
			for _, status := range []string{"running", "waiting", "completed", "failed"} {
				t.Run(engine+" "+status, func(t *testing.T) { requireImported(t, to, engine, status) })
			}
		}
		list, err := to.ListRuns(t.Context(), run.Filter{Project: "shop", Workflow: "legacy/order", Limit: 50})
		require.NoError(t, err)
		require.Len(t, list, 12)
		open, err := to.OpenRuns(t.Context(), "", 50)
		require.NoError(t, err)
		require.Empty(t, open, "they are not compared with Temporal")
		entries, err := to.ListAudit(t.Context(), audit.Filter{Project: "shop", Action: audit.RunImport, Limit: 50})
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.JSONEq(t, `{"runs": 12, "settled": 4}`, string(entries[0].Detail))
	})
}

func requireImported(t *testing.T, to *storetest.Plain, engine, status string) {
	t.Helper()
	r, err := to.GetRun(t.Context(), "shop", engine+"-"+status)
	require.NoError(t, err)
	var original kept
	require.NoError(t, json.Unmarshal(r.Legacy, &original))
	stepsPage, err := to.ListSteps(t.Context(), "shop", r.ID, run.StepFilter{Limit: 10})
	require.NoError(t, err)
	steps := stepsPage.Steps
	require.Len(t, steps, 2)

	require.Equal(t, run.TriggerImport, r.Trigger)
	require.Equal(t, map[string]string{"null": "", "db": "db", "temporal": "temporal"}[engine], r.LegacyEngine)
	require.Equal(t, "legacy/order", r.Workflow)
	require.Equal(t, "1.2.0", r.Version)
	require.JSONEq(t, `{"n": 1}`, string(r.Input))
	require.Equal(t, time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC), r.StartedAt)
	require.Equal(t, "kept", original.Row["note"])
	require.Equal(t, strings.ToUpper(status), original.Row["status"], "what it was stays readable")
	require.Equal(t, map[string]any{"state": map[string]any{"x": []any{1.0, 2.0}}}, original.Snapshots[0]["snapshot"])
	require.Equal(t, []string{"check", "charge"}, []string{steps[0].Task, steps[1].Task},
		"in the order of their beginning")
	require.Equal(t, "completed", steps[0].Status)
	require.JSONEq(t, `5`, string(steps[0].Output))
	require.Equal(t, 2, steps[1].Attempts[0].Number)
	require.Equal(t, "RESOLVED", original.Waits[0].Status)

	open := status == "running" || status == "waiting"
	switch {
	case open && engine != "temporal":
		require.Equal(t, run.Canceled, r.Status)
		require.Equal(t, importedAt, r.EndedAt)
		require.Equal(t, "Engine gone", r.Error.Title)
		require.Contains(t, r.Error.Detail, "the run was "+status+" on the engine")
		require.Equal(t, "canceled", steps[1].Status)
		require.Equal(t, importedAt, steps[1].EndedAt)
		require.Equal(t, "canceled", original.Waits[1].Status)
		require.NotNil(t, original.Waits[1].ResolvedAt)
		require.Equal(t, r.StepsTotal, r.StepsDone)
		return
	case open:
		require.Equal(t, run.Status(status), r.Status)
		require.Zero(t, r.EndedAt)
		require.Nil(t, r.Error)
		require.Equal(t, "running", steps[1].Status)
		require.Zero(t, steps[1].EndedAt)
	case status == "completed":
		require.Equal(t, run.Completed, r.Status)
		require.JSONEq(t, `{"ok": true}`, string(r.Output))
	default:
		require.Equal(t, run.Failed, r.Status)
		require.Equal(t, "it broke", r.Error.Detail)
	}
	if !open {
		require.Equal(t, time.Date(2026, 3, 1, 12, 0, 9, 0, time.UTC), r.EndedAt)
	}
	require.Equal(t, "OPEN", original.Waits[1].Status)
	require.Nil(t, original.Waits[1].ResolvedAt)
}

func TestUsualSecretsAreHidden(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, engine, status, input, output, error, created_at, note) VALUES ('a', 'shop', 'order', 'db', 'FAILED',
'{"password": "planted-4711", "n": 1}', NULL, 'no planted-4711 here', '2026-05-01 08:30:00+00:00', '{"api_key": "planted-4712"}')`)
		from.exec(t, `INSERT INTO workflow_run_steps (id, run_id, name, status, input, error) VALUES ('s', 'a', 'login', 'FAILED', '{"q": "planted-4711"}', 'planted-4711')`)
		from.exec(t, `INSERT INTO workflow_run_snapshots VALUES ('x', 'a', '{"vars": {"token": "planted-4713"}}', NULL)`)
		from.exec(t, `INSERT INTO workflow_run_steps (id, run_id, name, status, error) VALUES
('t', 'a', 'call', 'FAILED', '{"code": 7, "token": "planted-4714", "pin": {"secret": "p4"}}'),
('u', 'a', 'tell', 'FAILED', '{"message": "no planted-4715", "password": "planted-4715", "type": "x:planted-4715", "title": "planted-4715", "instance": "/planted-4715"}')`)
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, engine, status, created_at) VALUES ('b', 'shop', 'order', 'db', 'FAILED', '2026-05-01 08:30:00+00:00')`)
		from.exec(t, `INSERT INTO workflow_run_steps (id, run_id, name, status, error) VALUES ('v', 'b', 'call', 'FAILED', '{"token": "planted-4716"}')`)
		_, err := legacy.Import(t.Context(), to.Database(), from.options(importedAt))
		require.NoError(t, err)
		all := everything(t, to)
		require.NotContains(t, all, "planted")
		require.NotContains(t, all, "p4")
		require.Contains(t, all, "no ⟦redacted⟧")
		r, err := to.GetRun(t.Context(), "shop", "a")
		require.NoError(t, err)
		require.JSONEq(t, `{"password": "⟦redacted⟧", "n": 1}`, string(r.Input))
		require.Equal(t, "no ⟦redacted⟧ here", r.Error.Detail)
		require.True(t, r.Redacted)
	})
}

// everything returns all rows that an import writes, as text.
func everything(t *testing.T, to *storetest.Plain) string {
	t.Helper()
	list, err := to.ListRuns(t.Context(), run.Filter{Project: "shop", Limit: 500})
	require.NoError(t, err)
	var all strings.Builder
	for _, r := range list {
		whole, err := to.GetRun(t.Context(), "shop", r.ID)
		require.NoError(t, err)
		stepsPage, err := to.ListSteps(t.Context(), "shop", r.ID, run.StepFilter{Limit: 100})
		require.NoError(t, err)
		steps := stepsPage.Steps
		text, err := json.Marshal([]any{whole, steps})
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

func TestRepeatedImport(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.fill(t)
		_, err := legacy.Import(t.Context(), to.Database(), from.options(importedAt))
		require.NoError(t, err)
		before := everything(t, to)

		later := importedAt.Add(time.Hour)
		report, err := legacy.Import(t.Context(), to.Database(), from.options(later))
		require.NoError(t, err)
		require.Equal(t, legacy.Report{Runs: 12, Unchanged: 12}, report)
		require.Equal(t, before, everything(t, to), "a second run changes nothing")

		// An old process continues: a new run, one that ends, one that only changes.
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, status, created_at) VALUES ('late', 'shop', 'order', 'RUNNING', '2026-05-01 08:30:00+00:00')`)
		from.exec(t, `UPDATE workflow_runs SET status = 'COMPLETED', output = '7', completed_at = '2026-05-01 08:31:00+00:00' WHERE id = 'db-waiting'`)
		from.exec(t, `UPDATE workflow_runs SET note = 'moved' WHERE id = 'db-running'`)
		report, err = legacy.Import(t.Context(), to.Database(), from.options(later))
		require.NoError(t, err)
		require.Equal(t, legacy.Report{Runs: 13, New: 1, Changed: 2, Unchanged: 10, Canceled: 2, Waits: 1, Steps: 4}, report)
		late, err := to.GetRun(t.Context(), "shop", "late")
		require.NoError(t, err)
		require.Equal(t, run.Canceled, late.Status)
		require.Equal(t, later, late.EndedAt)
		ended, err := to.GetRun(t.Context(), "shop", "db-waiting")
		require.NoError(t, err)
		require.Equal(t, run.Completed, ended.Status)
		require.EqualValues(t, 2, ended.Sequence, "who watches sees the change")
		moved, err := to.GetRun(t.Context(), "shop", "db-running")
		require.NoError(t, err)
		require.Equal(t, run.Canceled, moved.Status)
		require.Equal(t, importedAt, moved.EndedAt, "it ended when it was settled")
	})
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.fill(t)
		o := from.options(importedAt)
		o.DryRun = true
		report, err := legacy.Import(t.Context(), to.Database(), o)
		require.NoError(t, err)
		require.Equal(t, legacy.Report{Runs: 12, New: 12, Canceled: 4, Waits: 4, Steps: 24, Projects: []string{"shop"}},
			report)
		_, err = to.ListRuns(t.Context(), run.Filter{Project: "shop", Limit: 1})
		require.ErrorContains(t, err, "shop", "not even the project was made")
	})
}

func TestInvalidSources(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.exec(t, `INSERT INTO workflow_runs (id, project, workflow, status, created_at) VALUES ('a', 'My Shop', 'order', 'ODD', '2026-05-01 08:30:00+00:00')`)
		_, err := legacy.Import(t.Context(), to.Database(), from.options(importedAt))
		require.ErrorContains(t, err, `the status "ODD" (rows: 1) is none of CANCELED, CANCELLED`)
		require.ErrorContains(t, err, `"My Shop" is not a project's name`)

		from.exec(t, `UPDATE workflow_runs SET status = 'COMPLETED'`)
		o := from.options(importedAt)
		o.Project = "default"
		report, err := legacy.Import(t.Context(), to.Database(), o)
		require.NoError(t, err)
		require.EqualValues(t, 1, report.New)

		from.exec(t, `DROP TABLE workflow_run_waits`)
		from.exec(t, `ALTER TABLE workflow_runs DROP COLUMN engine`)
		_, err = legacy.Import(t.Context(), to.Database(), o)
		require.ErrorContains(t, err, "the table workflow_run_waits cannot be read")
		require.ErrorContains(t, err, "the table workflow_runs has no column engine")
		require.ErrorContains(t, err, "docs/migration.md")

		o.DSN = filepath.Join(t.TempDir(), "gone.db")
		_, err = legacy.Import(t.Context(), to.Database(), o)
		require.ErrorContains(t, err, "there is no such file")
		require.NoFileExists(t, o.DSN)
	})
}

func TestIDOfAnotherRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		from.fill(t)
		_, made, err := to.InsertRun(t.Context(), run.Run{
			ID: "db-running", Project: "default", Workflow: "a/b", Version: "1.0.0", Status: run.Queued,
			QueuedReason: run.QueuedStarting,
			StatusAt:     importedAt, CreatedAt: importedAt, RequestID: "r", Trigger: run.TriggerAPI,
		}, audit.NewEntry(t.Context(), importedAt, audit.RunStart, "default", "db-running", ""))
		require.NoError(t, err)
		require.True(t, made)
		report, err := legacy.Import(t.Context(), to.Database(), from.options(importedAt))
		require.NoError(t, err)
		require.EqualValues(t, 11, report.New)
		require.EqualValues(t, 1, report.Taken)
		require.Equal(t, []string{"db-running"}, report.TakenIDs)
		r, err := to.GetRun(t.Context(), "default", "db-running")
		require.NoError(t, err)
		require.Equal(t, run.Queued, r.Status)
	})
}

// TestManyRuns imports more runs than a page holds. The tests of the command import a million, and measure its memory.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	const runs = 2_000
	onBoth(t, func(t *testing.T, from old, to *storetest.Plain) {
		series := fmt.Sprintf("generate_series(1, %d) AS s(value)", runs)
		id := "lpad(CAST(value AS TEXT), 8, '0')"
		if from.driver == sqldb.SQLite {
			series = fmt.Sprintf("(WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < %d) "+
				"SELECT value FROM n)", runs)
			id = "printf('%08d', value)"
		}
		from.exec(t, `INSERT INTO workflow_runs SELECT `+id+`, 'shop', 'order', '1.0.0',
CASE value % 3 WHEN 0 THEN 'db' WHEN 1 THEN 'temporal' END, CASE value % 10 WHEN 0 THEN 'RUNNING' WHEN 1 THEN 'WAITING' WHEN 2 THEN 'FAILED' ELSE 'COMPLETED' END,
'{"order": 1}', '{"ok": true}', NULL, '2026-03-01 12:00:00+00:00', '2026-03-01 12:00:01+00:00', NULL, NULL FROM `+series)
		from.exec(t, `INSERT INTO workflow_run_steps SELECT `+id+`, `+id+
			`, 'charge', 'http', 'COMPLETED', 1, '{"a": 1}', '{"b": 2}', NULL, '2026-03-01 12:00:02+00:00', '2026-03-01 12:00:03+00:00' FROM `+series)
		from.exec(t, `INSERT INTO workflow_run_waits SELECT `+id+`, `+id+
			`, 'event', 'OPEN', '2026-03-01 12:00:02+00:00', NULL FROM `+series)
		from.exec(t, `INSERT INTO workflow_run_snapshots SELECT `+id+`, `+id+
			`, '{"state": 1}', '2026-03-01 12:00:02+00:00' FROM `+series)
		var progress bytes.Buffer
		o := from.options(importedAt)
		o.Now, o.Progress = time.Now, &progress
		first, err := legacy.Import(t.Context(), to.Database(), o)
		require.NoError(t, err)
		require.EqualValues(t, runs, first.New)
		require.EqualValues(t, runs, first.Steps)
		var settled int64
		for n := 1; n <= runs; n++ {
			if n%3 != 1 && n%10 < 2 {
				settled++
			}
		}
		require.Equal(t, settled, first.Canceled)
		require.Equal(t, settled, first.Waits)
		require.Contains(t, progress.String(), fmt.Sprintf("%d of %d runs read", runs, runs))
		second, err := legacy.Import(t.Context(), to.Database(), o)
		require.NoError(t, err)
		require.EqualValues(t, runs, second.Unchanged)
	})
}
