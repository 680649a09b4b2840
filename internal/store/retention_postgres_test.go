package store_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

// TestTablesOfRuns requires that retention handles every table with rows of runs, or that it is listed here.
func TestTablesOfRuns(t *testing.T) {
	t.Parallel()
	o := sqlite(t)
	require.NoError(t, start(t, o).Ping(t.Context()))
	db, err := sqldb.Open(t.Context(), sqldb.Options{Driver: sqldb.SQLite, DSN: o.DSN, CallTimeout: patience})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.Writer().QueryContext(t.Context(),
		`SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'run_id'`)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	known := append(store.TablesOfRuns(),
		"deliveries",     // deleted with their events
		"batch_items",    // deleted with their batches
		"listeners",      // removed at the end of the run
		"payloads",       // deleted after their run: DeleteOrphans
		"poison_endings", // are deleted after the hour that they count for
		"legacy_removed") // kept after their run, so that the import does not copy it again
	for rows.Next() {
		var table string
		require.NoError(t, rows.Scan(&table))
		require.Contains(t, known, table, "has rows of runs: name it in TablesOfRuns, or excuse it here")
	}
	require.NoError(t, rows.Err())
}

// TestDeletionAmongManyRows deletes a tenth of 20,000 runs and events, of 100,000 at full length, while other rows are
// written, page by page and by indexes.
func TestDeletionAmongManyRows(t *testing.T) {
	t.Parallel()
	many, aim := 20_000, patience // on a machine that runs other tests at the same time
	o := postgres(t)
	if os.Getenv("SIGNALBOX_PROVE") == "1" {
		many, aim = 100_000, 3*time.Second
		o.CallTimeout = 5 * time.Second
	}
	old := int64(many / 10)
	open := func() *storetest.Plain {
		s, err := storetest.Open(t.Context(), t, o)
		require.NoError(t, err)
		require.NoError(t, s.Start(t.Context()))
		return s
	}
	// Sessions report their reads when they end, including those of migrations.
	require.NoError(t, open().Stop(context.WithoutCancel(t.Context())))
	fill(t, o.DSN, many)
	s := open()

	ctx, done := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	var slowest time.Duration
	writer.Go(func() {
		for n := 1_000_000; ctx.Err() == nil; n++ {
			r, begun := benchRun(n), time.Now()
			_, _, err := s.InsertRun(t.Context(), r,
				audit.Entry{Time: r.CreatedAt, Action: audit.RunStart, Project: r.Project, Subject: r.ID})
			if err != nil {
				t.Errorf("insert a run meanwhile: %v", err)
				return
			}
			slowest = max(slowest, time.Since(begun))
		}
	})
	cut := retention.Cut{Project: project.Default, Before: time.UnixMicro(old), EndedBefore: time.UnixMicro(int64(many))}
	for kind, want := range map[retention.Kind]int64{
		retention.Runs: old - 1, retention.Events: old - 1, retention.Audit: old - 1} {
		begun, pages := time.Now(), 0
		deleted, longest := int64(0), time.Duration(0)
		for after := ""; pages == 0 || after != ""; pages++ {
			at := time.Now()
			page, err := s.DeletePage(t.Context(), kind, cut, after, 500)
			require.NoError(t, err)
			deleted += page.Deleted[string(kind)]
			longest, after = max(longest, time.Since(at)), page.Next
		}
		t.Logf("%s: %d of %d deleted in %s, %d pages, the longest %s", kind, deleted, many, time.Since(begun), pages, longest)
		require.Equal(t, want, deleted, kind)
		require.Less(t, longest, aim, kind)
	}
	done()
	writer.Wait()
	t.Logf("the slowest run inserted meanwhile took %s", slowest)
	require.Less(t, slowest, aim)
	require.NoError(t, s.Stop(context.WithoutCancel(t.Context())))
	requireIndexes(t, o.DSN)
}

// fill adds many rows of each kind, each a microsecond younger than the one before.
func fill(t *testing.T, dsn string, many int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	for _, statement := range []string{
		`INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at, cancel_requested, cancel_reason,
request_id, trigger_kind, actor, created_at, started_at, ended_at, steps_total, steps_done, sequence, position, state_position, interpreter, execution_id)
SELECT 'run-' || lpad(n::text, 8, '0'), 'default', 'a/b', '1.0.0', 'sha256:aa', 'completed', '', '', n, FALSE, '', 'q' || n, 'api', 'ada', n, n, n, 1, 1, 1, 1, 1, 1, 'x'
FROM generate_series(1, %[1]d) n`,
		`INSERT INTO steps (run_id, number, path, pointer, task, kind, status, waiting_kind, sequence, position)
SELECT 'run-' || lpad(n::text, 8, '0'), 1, '/do/0', '/do/0', 't', 'set', 'completed', '', 1, 1 FROM generate_series(1, %[1]d) n`,
		`INSERT INTO inboxes (project, head, parked, received_at) VALUES ('default', %[1]d, FALSE, 0)`,
		`INSERT INTO dispatchers (project, task_queue, epoch, holder, routed, pending) VALUES ('default', 'q', 1, 'h', %[1]d, 0)`,
		`INSERT INTO events (project, position, id, source, type, subject, data_content_type, data_schema, data_base64, received_at, actor)
SELECT 'default', n, 'e' || n, '/s', 't', '', '', '', FALSE, n, 'ada' FROM generate_series(1, %[1]d) n`,
		`INSERT INTO routings (project, last, first, status, reason) SELECT 'default', n, n, 'routed', '' FROM generate_series(1, %[1]d) n`,
		`INSERT INTO deliveries (id, project, position, kind, status, claimed_by, attempts, workflow, version, run_id, listener, created_at, updated_at, reason, positions)
SELECT 'd' || n, 'default', n, 'start', 'done', 1, 1, 'a/b', '1.0.0', 'run-' || lpad(n::text, 8, '0'), '', n, n, '', '[]' FROM generate_series(1, %[1]d) n`,
		`INSERT INTO audit (at, actor_kind, actor_name, action, project, subject, reason) SELECT n, 'local', 'ada', 'run.start', 'default', 'x', '' FROM generate_series(1, %[1]d) n`,
		`ANALYZE`,
		`SELECT pg_stat_reset()`,
	} {
		if _, err := c.Exec(t.Context(), strings.ReplaceAll(statement, "%[1]d", fmt.Sprint(many))); err != nil {
			require.NoError(t, err, statement)
		}
	}
}

// requireIndexes checks that no large table was read as a whole.
func requireIndexes(t *testing.T, dsn string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	for _, table := range []string{"runs", "steps", "events", "deliveries", "audit", "routings"} {
		var scans int
		require.NoError(t, c.QueryRow(t.Context(), `SELECT seq_scan FROM pg_stat_user_tables WHERE relname = $1`,
			table).Scan(&scans))
		require.Zero(t, scans, "%s was read as a whole", table)
	}
}
