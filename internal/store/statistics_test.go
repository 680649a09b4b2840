package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// manyRuns is the number of runs in the tests and the benchmark of statistics: 20 workflows, one run every second.
const manyRuns = 100_000

var manyWindow = statistics.Window{Since: time.UnixMicro(0), Until: time.UnixMicro(manyRuns * 1_000_000)}

// insertManyRuns creates the workflows w/0 to w/19 with [manyRuns] runs and returns the database, which the test
// closes.
func insertManyRuns(tb testing.TB, o store.Options) *sqldb.DB {
	tb.Helper()
	db, err := sqldb.Open(tb.Context(), sqldb.Options{Driver: o.Driver, DSN: o.DSN, MaxConns: 1, CallTimeout: patience})
	require.NoError(tb, err)
	numbers := func(n int) string {
		return fmt.Sprintf(`(WITH RECURSIVE t (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM t WHERE i < %d) SELECT i FROM t) AS n`, n-1)
	}
	for _, statement := range []string{
		`INSERT INTO workflows (project, name, short_name, title, summary, state, latest_version, pause_reason, created_at, updated_at)
SELECT 'default', 'w/' || i, 'w' || i, '', '', 'published', '1', '', 0, 0 FROM ` + numbers(20),
		`INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at, cancel_requested, cancel_reason,
request_id, trigger_kind, actor, created_at, started_at, ended_at, steps_total, steps_done, sequence, position, state_position, interpreter, execution_id)
SELECT 'run-' || i, 'default', 'w/' || (i % 20), '1', 'h', CASE WHEN i % 50 = 1 THEN 'failed' WHEN i % 1000 = 2 THEN 'running' ELSE 'completed' END, '', '', i,
FALSE, '', 'order-' || i, 'api', '', i * CAST(1000000 AS BIGINT), i * CAST(1000000 AS BIGINT), CASE WHEN i % 1000 <> 2 THEN i * CAST(1000000 AS BIGINT) + i END,
0, 0, 1, 0, 0, 1, '' FROM ` + numbers(manyRuns),
	} {
		require.NoError(tb, db.Write(tb.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
			_, err := c.ExecContext(ctx, statement)
			return err
		}))
	}
	if o.Driver == store.Postgres {
		vacuum(tb, o.DSN, "runs", "workflows", "run_verdicts")
	}
	return db
}

// TestStatisticsOfManyRuns reads the statistics of workflows with far more runs than a sample has.
func TestStatisticsOfManyRuns(t *testing.T) {
	t.Parallel()
	for name, options := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			s := start(t, o)
			db := insertManyRuns(t, o)
			defer func() { require.NoError(t, db.Close()) }()
			service := statistics.NewService(statistics.Options{Store: s.Statistics(), Now: func() time.Time {
				return manyWindow.Until
			}})
			got, err := service.OfWorkflows(t.Context(), project.Default, []string{"w/1", "w/2", "w/3"}, 24*time.Hour)
			require.NoError(t, err)
			require.Equal(t, map[run.Status]int64{run.Completed: 3456, run.Failed: 864}, got["w/1"].Statuses)
			require.Equal(t, int64(statistics.MaxSample), got["w/1"].Sample)
			require.InDelta(t, 0.8, *got["w/1"].SuccessRate, 1e-9)
			// The newest 1,000 runs of w/1 are those with i = 80,001, 80,021, … 99,981; a run takes i microseconds.
			require.Equal(t, 89_981*time.Microsecond, *got["w/1"].P50)
			require.Equal(t, 98_981*time.Microsecond, *got["w/1"].P95)
			require.Equal(t, "run-99981", got["w/1"].Recent[0].ID)
			require.Len(t, got["w/1"].Recent, statistics.MaxRecent)
			require.Equal(t, int64(100), got["w/2"].Open)
			require.Empty(t, got["w/2"].More)
		})
	}
}

// TestPostgresStatisticsReadBoundedRanges measures the blocks that Postgres reads for the statistics of one workflow.
func TestPostgresStatisticsReadBoundedRanges(t *testing.T) {
	t.Parallel()
	o := postgres(t)
	start(t, o)
	db := insertManyRuns(t, o)
	defer func() { require.NoError(t, db.Close()) }()
	query, args := runrow.WorkflowStatistics(db.Dialect(), project.Default, []string{"w/1"}, manyWindow)
	require.Less(t, blocksOf(t, db, query, args), 6000,
		"a sample is 1,000 rows, each looked up in an index and in the table: 4,000 blocks")
}

// TestSQLiteStatisticsUseIndexes finds a part of the query that reads a whole table.
func TestSQLiteStatisticsUseIndexes(t *testing.T) {
	t.Parallel()
	o := sqlite(t)
	db := database(t, o)
	query, args := runrow.WorkflowStatistics(db.Dialect(), project.Default, []string{"w/1", "w/2"}, manyWindow)
	plan := sqlitePlan(t, db, query, args)
	require.Contains(t, plan, "SEARCH runs USING COVERING INDEX runs_workflow (project=? AND workflow=? AND status=? "+
		"AND created_at>? AND created_at<?)")
	require.NotContains(t, plan, "SCAN runs")
	require.NotContains(t, plan, "SCAN w\n")
}

// TestSQLiteGridReadsRangesOfSteps finds a part of the query for a grid that reads a whole table.
func TestSQLiteGridReadsRangesOfSteps(t *testing.T) {
	t.Parallel()
	o := sqlite(t)
	db := database(t, o)
	query, args := runrow.GridCells(db.Dialect(), []string{"a", "b"})
	plan := sqlitePlan(t, db, query, args)
	require.Contains(t, plan, "SEARCH s USING INDEX sqlite_autoindex_steps_1 (run_id=? AND number<?)")
	require.Contains(t, plan, "SEARCH s USING INDEX sqlite_autoindex_steps_1 (run_id=? AND number>?)")
	require.NotContains(t, plan, "SCAN s\n")
	require.NotContains(t, plan, "SCAN r\n")
}

// sqlitePlan returns SQLite's plan of a query, one step per line.
func sqlitePlan(t *testing.T, db *sqldb.DB, query string, args []any) string {
	t.Helper()
	var lines []string
	require.NoError(t, db.Read(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) (err error) {
		lines, err = sqlrow.Collect(ctx, c, `EXPLAIN QUERY PLAN `+query, args,
			func(row sqlrow.Scanner) (step string, err error) {
				var id, parent, unused int64
				err = row.Scan(&id, &parent, &unused, &step)
				return step, err
			})
		return err
	}))
	return strings.Join(lines, "\n") + "\n"
}

// BenchmarkStatistics reads the statistics of a page of 20 workflows with 100,000 runs.
func BenchmarkStatistics(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			o := options(b)
			s := start(b, o)
			db := insertManyRuns(b, o)
			defer func() { require.NoError(b, db.Close()) }()
			var names []string
			for i := range 20 {
				names = append(names, fmt.Sprintf("w/%d", i))
			}
			for b.Loop() {
				got, err := s.Statistics().ReadWorkflows(b.Context(), project.Default, names, manyWindow)
				require.NoError(b, err)
				require.Len(b, got, len(names))
			}
		})
	}
}
