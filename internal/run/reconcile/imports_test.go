package reconcile_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/signalbox-dev/signalbox/internal/migrate"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestImportedRunsThatWereSetBackAreCanceled(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		path := filepath.Join(t.TempDir(), "legacy.db")
		execute(t, path, `CREATE TABLE workflow_runs (id TEXT PRIMARY KEY, project TEXT, workflow TEXT, engine TEXT, status TEXT, created_at TEXT, completed_at TEXT);
CREATE TABLE workflow_run_steps (id TEXT PRIMARY KEY, run_id TEXT, name TEXT, status TEXT);
CREATE TABLE workflow_run_waits (id TEXT PRIMARY KEY, run_id TEXT, kind TEXT, status TEXT, resolved_at TEXT);
CREATE TABLE workflow_run_snapshots (id TEXT PRIMARY KEY, run_id TEXT);
INSERT INTO workflow_runs VALUES ('a', 'default', 'order', 'db', 'RUNNING', '2026-03-01 12:00:00', NULL), ('b', 'default', 'order', 'temporal', 'RUNNING', '2026-03-01 12:00:00', NULL)`)
		_, err := migrate.Import(b.ctx, b.store.Store, migrate.Options{DSN: path, Namespace: "legacy", Now: time.Now})
		require.NoError(t, err)
		report, err := b.Reconcile(b.ctx, false)
		require.NoError(t, err)
		require.Zero(t, report.Total)

		execute(t, b.file, `UPDATE runs SET status = 'running', ended_at = NULL WHERE id = 'a'`)
		report, err = b.Reconcile(b.ctx, true)
		require.NoError(t, err)
		require.Len(t, report.Corrections, 1)
		require.Equal(t, []any{run.CorrectionEngineGone, "a", false},
			[]any{report.Corrections[0].Kind, report.Corrections[0].RunID, report.Corrections[0].Applied})
		r, err := b.store.GetRun(b.ctx, here, "a")
		require.NoError(t, err)
		require.Equal(t, run.Running, r.Status, "nothing was changed")

		report, err = b.Reconcile(b.ctx, false)
		require.NoError(t, err)
		require.True(t, report.Corrections[0].Applied)
		r, err = b.store.GetRun(b.ctx, here, "a")
		require.NoError(t, err)
		require.Equal(t, run.Canceled, r.Status)
		r, err = b.store.GetRun(b.ctx, here, "b")
		require.NoError(t, err)
		require.Equal(t, run.Running, r.Status, "the run of another Temporal is unchanged")
		require.Equal(t, map[string]int{"engine_gone": 1}, b.metrics.kinds)
		require.Equal(t, []string{"default canceled"}, b.metrics.ended)
		require.Empty(t, b.engine.called(), "Temporal was not queried")
	})
}

func execute(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}
