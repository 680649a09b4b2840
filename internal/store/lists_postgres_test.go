package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// TestPostgresListsReadNoWholeTable measures the blocks that Postgres reads for each list, with enough rows to make it
// choose a plan.
func TestPostgresListsReadNoWholeTable(t *testing.T) {
	t.Parallel()
	o := postgres(t)
	db := database(t, o)
	// One run every 30 seconds for a week, from a time at which IDs begin with 0194 1f29.
	for _, statement := range []string{
		`INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at, cancel_requested,
cancel_reason, request_id, trigger_kind, actor, created_at, ended_at, error, steps_total, steps_done, sequence, position, state_position, interpreter, execution_id)
SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7000-8000-' || lpad(i::text, 12, '0'), 'default', 'w/' || i % 20, '1', 'h', CASE WHEN i % 50 = 1
THEN 'failed' WHEN i % 10 = 2 THEN 'queued' ELSE 'completed' END, '', '', i, FALSE, '', 'order-' || i % 100 || '-' || i, CASE WHEN i % 100 = 3 THEN 'replay' ELSE 'api' END,
'', at, CASE WHEN i % 10 <> 2 THEN at END, CASE WHEN i % 50 = 1 THEN '{"type":"https://signalbox.dev/errors/execution_missing","status":500}' END, 0, 0, i % 9, 0, 0, 1, '' FROM (SELECT i, lpad(to_hex(at / 1000), 12, '0') AS h, at FROM
(SELECT i, 1735689600000000 + i * 30000000::bigint AS at FROM generate_series(1, 20000) AS i) AS timed) AS made`,
		`INSERT INTO run_verdicts (run_id, project, workflow, code, created_at, sequence, since, checked_at, detail, advice)
SELECT id, project, workflow, 'NO_POLLER', created_at, sequence, 0, 0, '', '' FROM runs WHERE status = 'queued'`,
		`INSERT INTO run_links (run_id, parent, replay_of, path, depth)
SELECT id, 'p' || created_at / 30000000 % 400, 'q' || created_at / 30000000 % 300, '', 1 FROM runs WHERE created_at / 30000000 % 2 = 1`,
		`INSERT INTO batch_items (batch, number, run_id, status, begun, new_run_id, error)
SELECT 'b' || created_at / 30000000 % 150, row_number() OVER (), id, 'pending', FALSE, '', '' FROM runs`,
		`INSERT INTO run_labels (run_id, name, value, project, created_at)
SELECT id, 'order', (created_at / 30000000)::text, project, created_at FROM runs
UNION ALL SELECT id, 'stage', 'live', project, created_at FROM runs
UNION ALL SELECT id, 'customer', 'c' || created_at / 30000000 % 7, project, created_at FROM runs`,
	} {
		require.NoError(t, db.Write(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
			_, err := c.ExecContext(ctx, statement)
			return err
		}))
	}
	vacuum(t, o.DSN, "runs", "run_verdicts", "run_links", "batch_items", "run_labels")
	failed := []run.Status{run.Failed}
	for name, filter := range map[string]run.Filter{
		"newest":                       {},
		"a page in between":            {After: &run.Cursor{CreatedAt: time.UnixMicro(1735989600000000), ID: "x"}},
		"status":                       {Statuses: []run.Status{run.Failed, run.Queued}},
		"workflow":                     {Workflow: "w/7"},
		"a version of no run":          {Workflow: "w/7", Version: "0.0.9"},
		"trigger":                      {Trigger: run.TriggerReplay},
		"trigger and status":           {Trigger: run.TriggerReplay, Statuses: failed},
		"any code":                     {Stuck: []string{run.AnyCode}},
		"a code":                       {Stuck: []string{"NO_POLLER"}, OldestFirst: true},
		"a code of no workflow":        {Stuck: []string{"NO_POLLER"}, Workflow: "w/7"},
		"any code of a workflow":       {Stuck: []string{run.AnyCode}, Workflow: "w/12"},
		"children":                     {ParentRunID: "p1"},
		"children of a status":         {ParentRunID: "p1", Statuses: failed},
		"replays":                      {ReplayOf: "q1"},
		"runs of a batch":              {BatchID: "b1", Statuses: failed},
		"a label of one run":           {Labels: map[string]string{"order": "57856999"}},
		"a label of all runs":          {Labels: map[string]string{"stage": "live"}},
		"two labels":                   {Labels: map[string]string{"stage": "live", "order": "57856999"}},
		"a label and a status":         {Labels: map[string]string{"stage": "live"}, Statuses: failed},
		"a label, workflow and status": {Labels: map[string]string{"stage": "live"}, Workflow: "w/11", Statuses: failed},
		"a label of many runs":         {Labels: map[string]string{"customer": "c3", "stage": "live"}},
		"few ends":                     {EndedSince: time.UnixMicro(1735689600000000 + 19970*30000000)},
		"few ends of a status, error": {
			EndedSince: time.UnixMicro(1735689600000000 + 19970*30000000), Statuses: failed, ErrorType: "execution_missing"},
		"few ends, the oldest":         {EndedUntil: time.UnixMicro(1735689600000000 + 30*30000000), OldestFirst: true},
		"nearly all ends":              {EndedSince: time.UnixMicro(1735689600000000 + 1000*30000000)},
		"no ends":                      {EndedSince: time.UnixMicro(1735689600000000 + 30000*30000000)},
		"an error":                     {ErrorType: "execution_missing"},
		"a text of few requests":       {Text: "order-77-"},
		"a text of few requests, some": {Text: "order-1-", Statuses: failed},
		"a text of few IDs":            {Text: "01941f29-"},
		"a text of no run":             {Text: "zzz"},
		"a text of all runs":           {Text: "order-"},
		"a text of the oldest":         {Text: "01941"},
		"a text of the oldest, some":   {Text: "01941", Statuses: failed},
		"a text of the newest":         {Text: "01944", OldestFirst: true},
		"a text and a status":          {Text: "0194", Statuses: failed},
		"a text and a workflow":        {Text: "01941", Workflow: "w/7"},
	} {
		filter.Project, filter.Limit = "default", 50
		require.Less(t, blocks(t, db, filter), 600, "%s: the table has more than a thousand", name)
	}
}

// vacuum updates Postgres' statistics of tables.
func vacuum(t testing.TB, dsn string, tables ...string) {
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	for _, table := range tables {
		_, err := c.Exec(t.Context(), `VACUUM ANALYZE `+table)
		require.NoError(t, err)
	}
	require.NoError(t, c.Close(t.Context()))
}

// blocks returns the number of blocks of tables and indexes that Postgres reads for a page of a list.
func blocks(t *testing.T, db *sqldb.DB, f run.Filter) int {
	var query string
	var args []any
	require.NoError(t, db.Read(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		spread, err := runrow.SpreadOf(ctx, c, db.Dialect(), f)
		query, args = runrow.Page(f, "id", spread)
		return err
	}))
	return blocksOf(t, db, query, args)
}

// blocksOf returns the number of blocks of tables and indexes that Postgres reads for a query.
func blocksOf(t *testing.T, db *sqldb.DB, query string, args []any) int {
	var text string
	require.NoError(t, db.Read(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		return c.QueryRowContext(ctx, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+query, args...).Scan(&text)
	}))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}
