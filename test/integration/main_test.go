// Package integration_test drives the real binaries as users and operators do, on both databases, including invalid
// input, crashes and outages.
package integration_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// soon bounds what takes milliseconds on an idle machine.
const soon = platform.Patience

// Servers that tests share if they do not break them, one per database.
var sqliteServer, postgresServer *platform.Shared[*platform.Server]

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 4, func(s *platform.Suite) {
		sqliteServer = platform.Share(s, func(t platform.T) *platform.Server { return newServer(t, platform.SQLite(t)) })
		postgresServer = platform.Share(s, func(t platform.T) *platform.Server { return newServer(t, platform.Postgres(t)) })
	}))
}

// newServer starts a server with a Temporal of its own: servers with different databases must not share task queues.
func newServer(t platform.T, store platform.Store) *platform.Server {
	return platform.StartServer(t, platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: store})
}

// eachServer runs a test against the shared server of each of its databases.
func eachServer(t *testing.T, test func(*testing.T, *platform.Server)) {
	t.Helper()
	t.Parallel()
	for _, database := range promise.Databases(t.Name()) {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			if database == "sqlite" {
				test(t, sqliteServer.Get(t))
				return
			}
			needPostgres(t)
			test(t, postgresServer.Get(t))
		})
	}
}

// eachStore runs a test with a fresh database of each of its kinds, for tests with processes of their own.
func eachStore(t *testing.T, test func(*testing.T, platform.Store)) {
	t.Helper()
	for _, database := range promise.Databases(t.Name()) {
		t.Run(database, func(t *testing.T) {
			if database == "sqlite" {
				test(t, platform.SQLite(t))
				return
			}
			needPostgres(t)
			test(t, platform.Postgres(t))
		})
	}
}

func needPostgres(t *testing.T) {
	t.Helper()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
}

// file writes a file into a folder of its own and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := t.TempDir() + "/" + name
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// requireOneLine requires that a refused command printed exactly one line, with all of the parts, and nothing on
// stdout.
func requireOneLine(t *testing.T, r platform.Result, code int, parts ...string) {
	t.Helper()
	require.Equal(t, code, r.Code, r.String())
	require.Empty(t, r.Stdout, r.String())
	line := strings.TrimRight(r.Stderr, "\n")
	require.NotEmpty(t, line, r.String())
	require.NotContains(t, line, "\n", "more than one line: %s", r)
	for _, part := range parts {
		require.Contains(t, line, part)
	}
	require.NotContains(t, line, "panic")
}

const hello = "  - greet:\n      set:\n        message: ${ \"Hello, \" + (.name // \"world\") + \"!\" }\n"

const fails = `  - reject:
      raise:
        error:
          type: https://example.com/errors/out-of-stock
          status: 409
          title: Out of stock
          detail: ${ "no " + .sku + " left" }
`

func waits(seconds int) string {
	return "  - pause:\n      wait:\n        seconds: " + itoa(seconds) + "\n"
}
