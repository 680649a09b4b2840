package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/listing"
)

// TestPostgresListsReadNoWholeTable asks Postgres how it would read each list, with rows enough to make it choose.
func TestPostgresListsReadNoWholeTable(t *testing.T) {
	t.Parallel()
	o := postgres(t)
	start(t, o)
	c, err := pgx.Connect(t.Context(), o.DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	for _, statement := range []string{
		`INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at, cancel_requested,
cancel_reason, request_id, trigger_kind, actor, created_at, steps_total, steps_done, sequence, position, state_position, interpreter, execution_id)
SELECT 'run-' || lpad(i::text, 6, '0'), 'default', 'w/' || i % 20, '1', 'h', CASE WHEN i % 50 = 1 THEN 'failed' WHEN i % 100 = 2 THEN 'queued' ELSE 'completed' END,
'', '', i, FALSE, '', 'order-' || i, CASE WHEN i % 100 = 3 THEN 'replay' ELSE 'api' END, '', i, 0, 0, 1, 0, 0, 1, '' FROM generate_series(1, 20000) AS i`,
		`INSERT INTO run_verdicts (run_id, project, code, created_at, sequence, since, checked_at, detail, advice)
SELECT id, project, 'NO_POLLER', created_at, sequence, 0, 0, '', '' FROM runs WHERE status = 'queued'`,
		`VACUUM ANALYZE runs`, `VACUUM ANALYZE run_verdicts`,
	} {
		_, err := c.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	for name, tt := range map[string]struct {
		filter run.Filter
		few    bool
	}{
		"newest":              {run.Filter{}, false},
		"a page in between":   {run.Filter{After: &run.Cursor{CreatedAt: time.UnixMicro(9000), ID: "run-009000"}}, false},
		"status":              {run.Filter{Statuses: []run.Status{run.Failed, run.Queued}}, false},
		"workflow":            {run.Filter{Workflow: "w/7"}, false},
		"trigger":             {run.Filter{Trigger: run.TriggerReplay}, false},
		"trigger and status":  {run.Filter{Trigger: run.TriggerReplay, Statuses: []run.Status{run.Failed}}, false},
		"any problem":         {run.Filter{Problems: []string{run.AnyProblem}}, false},
		"a problem":           {run.Filter{Problems: []string{"NO_POLLER"}, OldestFirst: true}, false},
		"a text of few runs":  {run.Filter{Text: "order-777"}, true},
		"a text of all runs":  {run.Filter{Text: "run-"}, false},
		"a text and a status": {run.Filter{Text: "run-0", Statuses: []run.Status{run.Failed}}, false},
	} {
		tt.filter.Project, tt.filter.Limit = "default", 50
		query, args := listing.Page(tt.filter, "id", tt.few)
		rows, err := c.Query(t.Context(), `EXPLAIN `+query, args...)
		require.NoError(t, err, name)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, name)
		require.NotContains(t, strings.Join(lines, "\n"), "Seq Scan on runs", name)
	}
}
