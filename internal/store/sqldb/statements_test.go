package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// counted opens a database with a table of n numbers.
func counted(t testing.TB, n int) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(),
		sqldb.Options{Driver: sqldb.SQLite, DSN: t.TempDir() + "/store.db", MaxConns: 1, CallTimeout: patience})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, db.Write(t.Context(), "fill", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := c.ExecContext(ctx, `CREATE TABLE numbers (n INTEGER PRIMARY KEY, label TEXT)`); err != nil {
			return err
		}
		for i := range n {
			if _, err := c.ExecContext(ctx, `INSERT INTO numbers (n, label) VALUES ($1, $2)`, i,
				fmt.Sprint("number ", i)); err != nil {
				return err
			}
		}
		return nil
	}))
	return db
}

// TestStatementWithinItsOwnRows runs a query while the rows of the same query are read: each has a statement of its
// own.
func TestStatementWithinItsOwnRows(t *testing.T) {
	t.Parallel()
	db := counted(t, 20)
	const query = `SELECT n FROM numbers WHERE n >= $1 ORDER BY n`
	for range 2 { // with new statements, and with cached ones
		require.NoError(t, db.Write(t.Context(), "nest", func(ctx context.Context, c sqldb.Conn) error {
			outer, err := c.QueryContext(ctx, query, 0)
			if err != nil {
				return err
			}
			defer func() { require.NoError(t, outer.Close()) }()
			for want := 0; outer.Next(); want++ {
				var n, inner int
				require.NoError(t, outer.Scan(&n))
				require.Equal(t, want, n)
				require.NoError(t, c.QueryRowContext(ctx, query, 19-want).Scan(&inner))
				require.Equal(t, 19-want, inner)
			}
			return outer.Err()
		}))
	}
}

// TestStatementAfterTheSchemaHasChanged runs a cached statement after a change of its table.
func TestStatementAfterTheSchemaHasChanged(t *testing.T) {
	t.Parallel()
	db := counted(t, 3)
	columns := func() (names []string) {
		require.NoError(t, db.Read(t.Context(), "read", func(ctx context.Context, c sqldb.Conn) error {
			found, err := c.QueryContext(ctx, `SELECT * FROM numbers`) //nolint:unqueryvet // the columns that there are
			if err != nil {
				return err
			}
			defer func() { require.NoError(t, found.Close()) }()
			names, err = found.Columns()
			return errors.Join(err, found.Err())
		}))
		return names
	}
	require.Equal(t, []string{"n", "label"}, columns())
	require.NoError(t, exec(t, db, `ALTER TABLE numbers ADD COLUMN more TEXT`))
	require.Equal(t, []string{"n", "label", "more"}, columns())
}

// TestStatementThatFailed runs a statement again whose first run was refused, and one whose context had ended.
func TestStatementThatFailed(t *testing.T) {
	t.Parallel()
	db := counted(t, 3)
	const insert = `INSERT INTO numbers (n, label) VALUES ($1, $2)`
	require.ErrorContains(t, exec(t, db, insert, 1, "again"), "UNIQUE")
	require.NoError(t, exec(t, db, insert, 7, "seven"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, db.Exec(ctx, "insert", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, insert, 8, "eight")
		return err
	}), context.Canceled)
	require.NoError(t, exec(t, db, insert, 8, "eight"))
	require.Equal(t, 5, count(t, db, `SELECT COUNT(*) FROM numbers`))
}

// TestMoreStatementsThanAreKept runs more texts than a connection caches, twice.
func TestMoreStatementsThanAreKept(t *testing.T) {
	t.Parallel()
	db := counted(t, 1)
	for range 2 {
		for i := range 600 {
			require.Equal(t, i, count(t, db, fmt.Sprintf(`SELECT %d + COUNT(*) - 1 FROM numbers`, i)))
		}
	}
}

// BenchmarkStatement reads one row by its key, as most statements of the store do: `go test ./internal/store/sqldb
// -bench Statement -run ^$`. A text that differs each time is parsed each time.
func BenchmarkStatement(b *testing.B) {
	db := counted(b, 1000)
	read := func(b *testing.B, query string, n int) {
		b.Helper()
		require.NoError(b, db.Read(b.Context(), "read", func(ctx context.Context, c sqldb.Conn) error {
			var label string
			return c.QueryRowContext(ctx, query, n%1000).Scan(&label)
		}))
	}
	b.Run("kept", func(b *testing.B) {
		for n := range b.N {
			read(b, `SELECT label FROM numbers WHERE n = $1`, n)
		}
	})
	b.Run("parsed", func(b *testing.B) {
		for n := range b.N {
			read(b, fmt.Sprintf(`SELECT label FROM numbers WHERE n = $1 -- %d`, n), n)
		}
	})
}
