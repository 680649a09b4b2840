package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the timeout of calls on busy machines, in tests of other properties.
const patience = time.Minute

func open(t *testing.T, o sqldb.Options) *sqldb.DB {
	t.Helper()
	if o.CallTimeout == 0 {
		o.CallTimeout = patience
	}
	db, err := sqldb.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "store.db") }

func exec(t *testing.T, db *sqldb.DB, query string, args ...any) error {
	t.Helper()
	return db.Write(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, query, args...)
		return err
	})
}

func count(t *testing.T, db *sqldb.DB, query string) (n int) {
	t.Helper()
	require.NoError(t, db.Read(t.Context(), "count", func(ctx context.Context, c sqldb.Conn) error {
		return c.QueryRowContext(ctx, query).Scan(&n)
	}))
	return n
}

// requireUnavailable requires an error that has the parts in the text for the log.
func requireUnavailable(t *testing.T, err error, parts ...string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Equal(t, apperror.Unavailable, f.Class)
	require.Equal(t, apperror.StoreUnavailable, f.Reason)
	require.Positive(t, f.RetryAfter)
	require.Error(t, f.Cause)
	for _, part := range parts {
		require.Contains(t, f.Error(), part)
	}
}

// requireHidden requires that the text for callers does not have what the text for the log has.
func requireHidden(t *testing.T, err error, part string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Contains(t, f.Error(), part)
	require.NotContains(t, f.Message, part)
}

func TestOpenRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noDatabase := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(noDatabase, []byte(strings.Repeat("not a database. ", 100)), 0o600))
	for _, tt := range []struct {
		name    string
		options sqldb.Options
		want    []string
	}{
		{"no driver", sqldb.Options{DSN: "x"}, []string{`unknown driver ""`, "sqlite", "postgres"}},
		{"no path", sqldb.Options{Driver: sqldb.SQLite}, []string{"needs the path of a file"}},
		{"memory", sqldb.Options{Driver: sqldb.SQLite, DSN: ":memory:"}, []string{":memory:", "temporary folder"}},
		{"parameters", sqldb.Options{Driver: sqldb.SQLite, DSN: filepath.Join(dir, "a.db?%zz")},
			[]string{"parameters of the dsn"}},
		{
			"folder is missing", sqldb.Options{Driver: sqldb.SQLite, DSN: filepath.Join(dir, "none", "a.db")},
			[]string{filepath.Join(dir, "none", "a.db"), "make the folder", "no such file"},
		},
		{"folder is a file", sqldb.Options{Driver: sqldb.SQLite, DSN: filepath.Join(noDatabase, "a.db")},
			[]string{noDatabase, "not a directory"}},
		{"file is a folder", sqldb.Options{Driver: sqldb.SQLite, DSN: dir}, []string{dir, "is a directory"}},
		{"not a database", sqldb.Options{Driver: sqldb.SQLite, DSN: noDatabase},
			[]string{noDatabase, "not a sound SQLite database"}},
		{"postgres dsn", sqldb.Options{Driver: sqldb.Postgres, DSN: "postgres://u:secret@host:port/x"},
			[]string{"postgres dsn"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := sqldb.Open(t.Context(), tt.options)
			require.Error(t, err)
			for _, part := range tt.want {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestOpenRequiresWriteAccess(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may write anywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	_, err := sqldb.Open(t.Context(), sqldb.Options{Driver: sqldb.SQLite, DSN: filepath.Join(dir, "a.db")})
	require.ErrorContains(t, err, "permission denied")
	require.ErrorContains(t, err, "give this user the right")
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: path})
	require.NoError(t, exec(t, db, "CREATE TABLE t (x)"))
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	require.Equal(t, path, db.File())
	require.Contains(t, db.Location(), path)
}

func TestPathsAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b%20#ü.db")
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: path})
	require.NoError(t, exec(t, db, "CREATE TABLE t (x)"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Positive(t, info.Size())
}

func TestReadersCannotWrite(t *testing.T) {
	t.Parallel()
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: file(t)})
	err := db.Read(t.Context(), "read", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, "CREATE TABLE t (x)")
		return err
	})
	require.Error(t, err)
}

func TestFullDiskRollsBack(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: path + "?_pragma=max_page_count(64)"})
	require.NoError(t, exec(t, db, "CREATE TABLE t (x TEXT)"))
	written := 0
	var err error
	for err == nil && written < 1000 {
		err = db.Write(t.Context(), "insert run", func(ctx context.Context, c sqldb.Conn) error {
			for range 2 {
				if _, err := c.ExecContext(ctx, "INSERT INTO t VALUES ($1)", strings.Repeat("x", 3000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			written += 2
		}
	}
	requireUnavailable(t, err, "insert run", "disk is full", "free space")
	requireHidden(t, err, path)
	require.Positive(t, written)
	require.Equal(t, written, count(t, db, "SELECT COUNT(*) FROM t"))
	// With free space again, calls succeed.
	require.NoError(t, exec(t, db, "DELETE FROM t"))
	require.NoError(t, exec(t, db, "INSERT INTO t VALUES ('y')"))
}

func TestLockedFileTimesOut(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: path})
	hasty := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: path, CallTimeout: 300 * time.Millisecond})
	other := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: path})
	require.NoError(t, exec(t, db, "CREATE TABLE t (x)"))
	require.NoError(t, other.Write(t.Context(), "hold", func(context.Context, sqldb.Conn) error {
		err := exec(t, hasty, "INSERT INTO t VALUES (1)")
		requireUnavailable(t, err, "did not answer")
		requireHidden(t, err, path)
		require.Zero(t, count(t, db, "SELECT COUNT(*) FROM t"), "reads still work")
		return nil
	}))
	require.NoError(t, exec(t, db, "INSERT INTO t VALUES (1)"))
}

func TestFailedWriteIsRolledBack(t *testing.T) {
	t.Parallel()
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: file(t)})
	require.NoError(t, exec(t, db, "CREATE TABLE t (x)"))
	broken := errors.New("broken")
	err := db.Write(t.Context(), "work", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, "INSERT INTO t VALUES (1)")
		return errors.Join(err, broken)
	})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "work: ")
	require.Zero(t, count(t, db, "SELECT COUNT(*) FROM t"))
}

// TestDriverErrors has errors that are hard to cause in a test.
func TestDriverErrors(t *testing.T) {
	t.Parallel()
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: file(t)})
	say := func(err error) (times int, answer error) {
		answer = db.Write(t.Context(), "work", func(context.Context, sqldb.Conn) error {
			times++
			return err
		})
		return times, answer
	}
	for code, want := range map[string]string{
		"53100": "disk is full", "53300": "too many", "57P01": "shutting down", "25006": "read-only", "42501": "grant",
	} {
		times, err := say(&pgconn.PgError{Code: code, Message: "too many connections, shutting down"})
		requireUnavailable(t, err, want)
		require.Equal(t, 1, times, code)
	}
	for _, code := range []string{"40001", "40P01"} {
		times, err := say(&pgconn.PgError{Code: code})
		requireUnavailable(t, err, "too many writers")
		require.Greater(t, times, 2, code)
	}
	for _, code := range []string{"22021", "22P05"} {
		_, err := say(&pgconn.PgError{Code: code, Message: "invalid byte"})
		f, ok := apperror.From(err)
		require.True(t, ok)
		require.Equal(t, apperror.Invalid, f.Class)
	}
	for _, internal := range []error{&pgconn.PgError{Code: "42P01"}, sql.ErrNoRows, &pgconn.PgError{}} {
		_, err := say(internal)
		require.ErrorIs(t, err, internal)
		_, isFault := apperror.From(err)
		require.False(t, isFault)
	}
	ours := apperror.New(apperror.NotFound, apperror.RunNotFound, "no run")
	_, err := say(ours)
	require.Equal(t, error(ours), err)
}

// TestListsLeaveConnectionsForOthers has more readers of lists than there are connections; none of them ends.
func TestListsLeaveConnectionsForOthers(t *testing.T) {
	t.Parallel()
	db := open(t, sqldb.Options{Driver: sqldb.SQLite, DSN: filepath.Join(t.TempDir(), "lists.db")})
	reading, release := make(chan struct{}, 100), make(chan struct{})
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() {
			err := db.ReadList(t.Context(), "list", func(context.Context, sqldb.Conn) error {
				reading <- struct{}{}
				<-release
				return nil
			})
			require.NoError(t, err, "a reader that waits for its turn does not fail")
		})
	}
	<-reading
	<-reading // as many as may read at the same time
	for range 10 {
		require.NoError(t, db.Read(t.Context(), "get", func(ctx context.Context, c sqldb.Conn) error {
			var one int
			return c.QueryRowContext(ctx, "SELECT 1").Scan(&one)
		}))
	}
	require.Empty(t, reading, "the others wait")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.ReadList(gone, "list", func(context.Context, sqldb.Conn) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	readers.Wait()
}
