package integration_test

import (
	"database/sql"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// execSQL runs statements in a server's database directly, over one connection.
func execSQL(t *testing.T, store platform.Store, statements ...string) {
	t.Helper()
	driver := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[store.Driver]
	db, err := sql.Open(driver, store.DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

func trueLiteral(store platform.Store) string {
	if store.Driver == "postgres" {
		return "true"
	}
	return "1"
}

func databaseOf(t *testing.T, store platform.Store) string {
	t.Helper()
	u, err := url.Parse(store.DSN)
	require.NoError(t, err)
	return strings.TrimPrefix(u.Path, "/")
}

// allowConnections permits connections to a database, or forbids them and closes the existing ones. It works from
// another database of the same server.
func allowConnections(t *testing.T, store platform.Store, allow bool) {
	t.Helper()
	name := databaseOf(t, store)
	server := platform.Store{Driver: "postgres", DSN: os.Getenv(platform.PostgresVariable)}
	execSQL(t, server, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS "+strconv.FormatBool(allow))
	if !allow {
		execSQL(t, server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	}
}

// smallDisk mounts a file system of the given size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs",
		dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk cannot be mounted here: %s", out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }() // the disk is full on purpose
	_, err = io.Copy(f, zeroes{})
	require.ErrorIs(t, err, syscall.ENOSPC)
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return len(p), nil }

func padding(n int) string { return strings.Repeat("a", n) }

func lastLine(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return lines[len(lines)-1]
}
