package integration_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"connectrpc.com/connect"
	_ "github.com/jackc/pgx/v5/stdlib" // the drivers of both databases, to change them directly
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// server runs `signalbox server` to its end, which must be soon.
func server(t *testing.T, store platform.Store, args ...string) platform.Result {
	t.Helper()
	return platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Env: append(platform.RedisFor(store), platform.WithKeys(t)), Args: append([]string{
			"server", "--listen", platform.Address(platform.FreePort(t)), "--temporal-address",
			platform.Address(platform.FreePort(t)),
			"--store-driver", store.Driver, "--store-dsn", store.DSN,
		}, args...)})
}

// requireRefusedStart requires that a server that did not start ended with one error that contains all of the parts.
// Its log, on stderr before that, may contain more.
func requireRefusedStart(t *testing.T, r platform.Result, parts ...string) {
	t.Helper()
	require.Contains(t, []int{platform.ExitFailed, platform.ExitUsage, platform.ExitRefused, platform.ExitUnavailable},
		r.Code, r.String())
	last := lastLine(r.Stderr)
	for _, part := range parts {
		require.Contains(t, last, part, r.String())
	}
	require.NotContains(t, r.Stderr, "panic")
	require.NotContains(t, r.Stderr, "goroutine ")
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	address := taken.Addr().String()
	requireRefusedStart(t, server(t, platform.SQLite(t), "--listen", address), address, "in use")
}

func TestListeningBeyondLoopbackIsRefused(t *testing.T) {
	t.Parallel()
	requireRefusedStart(t, server(t, platform.SQLite(t), "--listen", "0.0.0.0:0"), "listen", "127.0.0.1")
}

func TestConfigurationViolationsAreAllReported(t *testing.T) {
	t.Parallel()
	path := file(t, "signalbox.yaml", "listen: nowhere\nlog: {level: loud}\nstores: {}\n")
	for command, code := range map[string]int{"check-config": platform.ExitFailed, "server": platform.ExitUsage} {
		r := platform.Run(t, platform.Command{Binary: platform.ServerBinary(t), Args: []string{command, "--config", path}})
		require.Equal(t, code, r.Code, r.String())
		for _, part := range []string{"listen", "log.level", "loud", "stores", "store"} {
			require.Contains(t, r.Stdout+r.Stderr, part, r.String())
		}
	}
}

func TestUnwritableDataFolder(t *testing.T) {
	t.Parallel()
	// A file in place of a folder fails for root, too.
	blocked := file(t, "blocked", "")
	for name, dsn := range map[string]string{
		"no folder": filepath.Join(blocked, "signalbox.db"), "missing": "/nonexistent/deep/signalbox.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireRefusedStart(t, server(t, platform.Store{Driver: "sqlite", DSN: dsn}), dsn)
		})
	}
	t.Run("dev", func(t *testing.T) {
		t.Parallel()
		r := platform.Run(t, platform.Command{Binary: platform.Binary(t), Args: []string{
			"dev", "--listen", platform.Address(platform.FreePort(t)), "--temporal-port", strconv.Itoa(platform.FreePort(t)),
			"--data-dir", filepath.Join(blocked, "data"),
		}})
		requireRefusedStart(t, r, blocked)
	})
}

func TestDatabaseDownAtStart(t *testing.T) {
	t.Parallel()
	address := platform.Address(platform.FreePort(t))
	dsn := "postgres://signalbox:planted-secret@" + address + "/signalbox?sslmode=disable"
	command := platform.Command{
		Binary: platform.ServerBinary(t),
		Env: append([]string{"SIGNALBOX_STORE_DSN=" + dsn, platform.WithKeys(t)},
			platform.RedisFor(platform.Store{Driver: "postgres", DSN: dsn})...),
		Args: []string{"server", "--listen", platform.Address(platform.FreePort(t)), "--store-driver", "postgres"},
	}
	began := time.Now()
	r := platform.Run(t, command)
	requireRefusedStart(t, r, address)
	promise.Within(t, "the refused start", time.Since(began), 30*time.Second)
	require.NotContains(t, r.Stderr+r.Stdout, "planted-secret")

	// Command lines are visible in process lists.
	requireRefusedStart(t, server(t, platform.Store{Driver: "postgres", DSN: dsn}), "store.dsn", "SIGNALBOX_STORE_DSN")
}

func TestDatabaseOfANewerSchema(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		migrate := func(verb string) platform.Result {
			return platform.Run(t, platform.Command{Binary: platform.ServerBinary(t), Args: []string{
				"migrate", verb, "--store-driver", store.Driver, "--store-dsn", store.DSN,
			}})
		}
		require.Equal(t, platform.ExitOK, migrate("up").Code)
		status := migrate("status")
		require.Equal(t, platform.ExitOK, status.Code, status.String())

		execSQL(t, store, "INSERT INTO signalbox_schema (version_id, is_applied) VALUES (9999, "+trueLiteral(store)+")")
		requireRefusedStart(t, server(t, store), "9999", "newer")
		require.NotEqual(t, platform.ExitOK, migrate("up").Code)
	})
}

func TestOlderSchemaWithoutAutoMigrate(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		requireRefusedStart(t, server(t, store, "--store-auto-migrate=false"), "signalbox migrate up")
	})
}

func TestDatabaseDownWhileServing(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	store := platform.Postgres(t)
	s := newServer(t, store)
	name := s.Publish(t, platform.Document("database", hello+waits(4)))
	id := s.Start(t, name, "").GetId()
	s.Await(t, id, soon, "waiting")
	allowConnections(t, store, false)

	_, err := s.TryStart(t.Context(), name, "")
	reason, code := platform.Reason(err)
	require.Equal(t, connect.CodeUnavailable, code, "%v", err)
	require.Equal(t, "STORE_UNAVAILABLE", reason)
	requireOneLine(t, s.CLI(t, "run", "list"), platform.ExitUnavailable, "STORE_UNAVAILABLE")
	status, _, err := s.Get(t.Context(), "/livez")
	require.NoError(t, err)
	require.Equal(t, 200, status)
	platform.Eventually(t, soon, func() string {
		if status, body, err := s.Get(t.Context(), "/readyz"); err != nil || status != 503 {
			return "/readyz still answers " + strconv.Itoa(status) + " " + body
		}
		return ""
	})

	allowConnections(t, store, true)
	// The run continued meanwhile: only its rows are late.
	run := s.Await(t, id, soon, "completed")
	require.EqualValues(t, 2, run.GetStepsDone())
	requireOnce(t, s.Steps(t, id))
}

func TestFullDiskRefusesStarts(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "6m")
	s := newServer(t, platform.Store{Driver: "sqlite", DSN: filepath.Join(disk, "signalbox.db")})
	name := s.Publish(t, platform.Document("disk", hello))
	id := s.Start(t, name, "").GetId()
	s.Await(t, id, soon, "completed")
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)

	var refused error
	for i := 0; i < 200 && refused == nil; i++ { // preallocated space fills up first
		_, refused = s.Workflows.SaveDraft(t.Context(), connect.NewRequest(&signalboxv1.SaveDraftRequest{
			Project: platform.DefaultProject, Source: platform.Document("filler", hello) + "# " + padding(64<<10) + "\n",
		}))
	}
	require.Error(t, refused, "the disk is full and nothing was refused")
	reason, code := platform.Reason(refused)
	require.Equal(t, connect.CodeUnavailable, code, "%v", refused)
	require.Equal(t, "STORE_UNAVAILABLE", reason)
	require.Contains(t, refused.Error(), "full")
	require.Equal(t, "completed", s.Run(t, id).GetStatus(), "reads continue")

	require.NoError(t, os.Remove(ballast))
	s.Await(t, s.Start(t, name, "").GetId(), soon, "completed")
}
