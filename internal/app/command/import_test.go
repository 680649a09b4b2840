package command_test

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/signalbox-dev/signalbox/internal/app/command"
	"github.com/signalbox-dev/signalbox/internal/config"
)

// migrate runs `signalbox migrate` and returns its output.
func migrate(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := command.Migrate(config.NewEnvironment(nil), nil)
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestMigrateImport(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "legacy.db"), filepath.Join(t.TempDir(), "signalbox.db")
	db, err := sql.Open("sqlite", from)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(),
		`CREATE TABLE workflow_runs (id TEXT PRIMARY KEY, tenant TEXT, workflow_name TEXT, engine TEXT, status TEXT, created_at TEXT, finished_at TEXT);
CREATE TABLE workflow_run_steps (id INTEGER PRIMARY KEY, run_id TEXT, step_name TEXT, status TEXT);
CREATE TABLE workflow_run_waits (id INTEGER PRIMARY KEY, run_id TEXT, kind TEXT, status TEXT, resolved_at TEXT);
CREATE TABLE workflow_run_snapshots (id INTEGER PRIMARY KEY, run_id TEXT);
INSERT INTO workflow_runs VALUES ('a', 'shop', 'order', 'db', 'running', '2026-03-01 12:00:00', NULL), ('b', 'shop', 'order', NULL, 'completed', '2026-03-01 12:00:00', '2026-03-01 12:00:01');`)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	for _, args := range [][]string{
		{"import", "--from", from, "--store-dsn", to, "--dry-run"}, {"import", "--from", from, "--store-dsn", to}} {
		out, progress, err := migrate(t, args...)
		require.NoError(t, err)
		require.Regexp(t, `runs in the source +2\n`, out)
		require.Regexp(t, `new, (would be )?imported +2\n`, out)
		require.Regexp(t, `of these canceled, as their engine is gone +1\n`, out)
		require.Regexp(t, `took .*\nmemory +\d+ MiB\n`, out)
		require.Contains(t, progress, "2 of 2 runs read")
	}
	out, _, err := migrate(t, "import", "--from", from, "--store-dsn", to)
	require.NoError(t, err)
	require.Regexp(t, `there already, left alone +2\n`, out)

	_, _, err = migrate(t, "import", "--store-dsn", to)
	require.ErrorContains(t, err, "it takes the URL")
	_, _, err = migrate(t, "import", "--from", "postgres://me:open@h/d", "--store-dsn", to)
	require.ErrorContains(t, err, "password in plain text")
	_, _, err = migrate(t, "import", "--from", "postgres://me:${env:GONE}@h/d", "--store-dsn", to)
	require.ErrorContains(t, err, "the variable is not set")
}
