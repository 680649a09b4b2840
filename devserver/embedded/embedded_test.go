package embedded_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/schema/sqlite"

	"github.com/signalbox-dev/signalbox/devserver/embedded"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// A start that waits for its database, as on a slow disk, ends when it is interrupted, and Stop does not wait for it
// beyond its context.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	require.NoError(t, sqlite.SetupSchema(
		&config.SQL{PluginName: "sqlite", DatabaseName: file, ConnectAttributes: map[string]string{"mode": "rwc"}}))
	db, err := sqldb.Open(t.Context(), sqldb.Options{Driver: sqldb.SQLite, DSN: file, CallTimeout: time.Minute})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	server := embedded.New(embedded.Options{DataFile: file, Namespace: "default", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, db.Write(t.Context(), "hold", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := c.ExecContext(ctx, "CREATE TABLE held (id BIGINT)"); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, server.Start(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, server.Stop(ctx), context.DeadlineExceeded)
		require.Less(t, time.Since(began), 8*time.Second, "it waited for the database")
		return nil
	}))
	require.NoError(t, server.Stop(t.Context()))
}

func TestStopWithoutAStart(t *testing.T) {
	t.Parallel()
	server := embedded.New(embedded.Options{Port: -1, Namespace: "default", Log: slog.New(slog.DiscardHandler)})
	require.Error(t, server.Start(t.Context()))
	require.NoError(t, server.Stop(t.Context()))
}
