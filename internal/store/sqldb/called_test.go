package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// A call counts as failed only for a cause in the database or the caller, not for the result of its work.
func TestCallsAreReportedWithTheirFailure(t *testing.T) {
	t.Parallel()
	type call struct {
		operation sqldb.Operation
		failure   sqldb.Failure
	}
	var mu sync.Mutex
	var calls []call
	db := open(t, sqldb.Options{
		Driver: sqldb.SQLite, DSN: file(t),
		Called: func(_ context.Context, o sqldb.Operation, f sqldb.Failure, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, call{o, f})
			require.GreaterOrEqual(t, took, time.Duration(0))
		}})
	returns := func(err error) sqldb.Work { return func(context.Context, sqldb.Conn) error { return err } }
	require.NoError(t, db.Ping(t.Context()))
	require.NoError(t, db.Exec(t.Context(), "test", returns(nil)))
	require.NoError(t, db.ReadList(t.Context(), "test", returns(nil)))
	require.Error(t, db.Write(t.Context(),
		"test", returns(apperror.New(apperror.NotFound, apperror.RunNotFound, "no such run"))))
	require.Error(t, db.Read(t.Context(), "test", returns(sql.ErrTxDone)))
	require.Error(t, db.Read(t.Context(), "test", returns(errors.New("a mistake"))))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, db.Read(gone, "test", func(ctx context.Context, _ sqldb.Conn) error { return ctx.Err() }))
	require.Equal(t, []call{
		{sqldb.OpPing, ""}, {sqldb.OpExec, ""}, {sqldb.OpList, ""}, {sqldb.OpWrite, ""},
		{sqldb.OpRead, sqldb.FailedUnavailable},
		{sqldb.OpRead, sqldb.FailedOther}, {sqldb.OpRead, sqldb.FailedCanceled},
	}, calls)
	require.Equal(t, 1, db.Pools()["write"].MaxOpenConnections)
	require.Contains(t, db.Pools(), "read")
}
