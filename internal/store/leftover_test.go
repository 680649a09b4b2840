package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// execute changes a database in a way that current binaries do not.
func execute(t *testing.T, o store.Options, statement string) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Options{Driver: o.Driver, DSN: o.DSN, MaxConns: 1, CallTimeout: patience})
	require.NoError(t, err)
	require.NoError(t, db.Exec(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, statement)
		return err
	}))
	require.NoError(t, db.Close())
}

// TestBatchWithoutItemsIsClosed has a batch that an earlier release reopened although its failed items had been
// deleted.
func TestBatchWithoutItemsIsClosed(t *testing.T) {
	t.Parallel()
	for name, options := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, ctx := options(t), t.Context()
			batches := start(t, o).Batches()
			now := time.UnixMicro(1735689600000000).UTC()
			b := batch.Batch{
				ID: "b1", Project: project.Default, Action: batch.Cancel, Reason: "stale", Rate: 1, RequestID: "b1", CreatedAt: now, Actor: auth.System(),
			}
			_, _, err := batches.StartBatch(ctx, b, []string{"r1", "r2", "r3"}, 10, audit.NewEntry(ctx, now, audit.BatchStart, project.Default, "b1", "stale"))
			require.NoError(t, err)
			closing := func() (int64, batch.Batch) {
				gone, err := batches.CloseBatch(ctx, "b1", now.Add(time.Minute))
				require.NoError(t, err)
				got, err := batches.GetBatch(ctx, project.Default, "b1")
				require.NoError(t, err)
				return gone, got
			}
			gone, got := closing()
			require.Zero(t, gone)
			require.Equal(t, batch.Running, got.Status, "there is something to do")

			list, _, err := batches.ClaimItems(ctx, "b1", 0, 1)
			require.NoError(t, err)
			list[0].Status = batch.Succeeded
			require.NoError(t, batches.WriteItems(ctx, "b1", list, now))
			execute(t, o, `DELETE FROM batch_items WHERE run_id <> 'r1'`)
			gone, got = closing()
			require.EqualValues(t, 2, gone)
			require.Equal(t, []int64{3, 1, 0, 2, 0}, []int64{got.Total, got.Succeeded, got.Refused, got.Failed, got.Pending()})
			require.Equal(t, []any{batch.Completed, now.Add(time.Minute)}, []any{got.Status, got.EndedAt.UTC()})
			gone, again := closing()
			require.Zero(t, gone)
			require.Equal(t, got, again)
		})
	}
}
