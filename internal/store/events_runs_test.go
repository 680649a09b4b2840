package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// TestEventsOfARunReadNoWholeTable lists the events of a run among 20,000 events, which other runs received: with
// SQLite by the plan, with Postgres by the number of blocks.
func TestEventsOfARunReadNoWholeTable(t *testing.T) {
	t.Parallel()
	query, args := events.RunQuery(event.ListFilter{Project: "default", RunID: "r7", Limit: 51}, []int64{3, 4})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		o := sqlite(t)
		db := database(t, o)
		plan := sqlitePlan(t, db, query, args)
		require.Contains(t, plan, "SEARCH d USING INDEX deliveries_run (run_id=?)")
		require.Contains(t, plan, "SEARCH e USING COVERING INDEX sqlite_autoindex_events_1 (project=? AND position=?)")
		require.NotContains(t, plan, "SCAN e\n")
		require.NotContains(t, plan, "SCAN d\n")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		o := postgres(t)
		db := database(t, o)
		for _, statement := range []string{
			`INSERT INTO events (project, position, id, source, type, subject, data_content_type, data_schema, data_base64, received_at, actor, data)
SELECT 'default', i, 'e' || i, '/s', 't', '', '', '', FALSE, i, '', repeat('x', 1000) FROM generate_series(1, 20000) AS i`,
			`INSERT INTO deliveries (id, project, position, kind, status, claimed_by, attempts, workflow, version, run_id, listener, created_at, updated_at, reason, positions)
SELECT i || ' r', 'default', i, 'wake', 'done', 0, 1, '', '', 'r' || i % 400, '', i, i, '', '[' || i || ']' FROM generate_series(1, 20000) AS i`,
		} {
			require.NoError(t, db.Write(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
				_, err := c.ExecContext(ctx, statement)
				return err
			}))
		}
		vacuum(t, o.DSN, "events", "deliveries")
		require.Less(t, blocksOf(t, db, query, args), 700, "the tables have more than three thousand")
	})
}
