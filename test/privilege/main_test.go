// Package privilege_test runs the platform with exactly the rights that docs/least-privilege.md lists: the grants of
// deploy/postgres, the ACL of deploy/redis and the calls of deploy/temporal. It records what the platform uses, and
// fails for a right that is missing and for a right that is not used.
package privilege_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 3, func(*platform.Suite) {}))
}

const (
	soon   = platform.Patience
	deploy = "../../deploy"
	// owner and runtime are the roles of deploy/postgres/roles.sql.
	owner, runtime = "signalbox_owner", "signalbox"
	superuser      = "root"
)

// environment is a platform whose servers have the documented rights only.
type environment struct {
	*platform.Server // of the API

	postgres *database.Postgres
	admin    *pgx.Conn // as superuser
	redis    *database.Redis
	temporal *platform.Process
	options  platform.ServerOptions // without a role
}

// start starts Postgres, Redis and Temporal with the given files, migrates the schema as its owner, and starts the API.
func start(t *testing.T) *environment {
	t.Helper()
	e := &environment{postgres: database.StartPostgres(t, t.Skip), redis: database.StartRedis(t, t.Skip)}
	e.logStatements(t)
	e.run(t, superuser, "postgres/roles.sql")
	e.migrate(t)
	e.run(t, owner, "postgres/grants.sql")
	_, err := e.admin.Exec(t.Context(), "ALTER ROLE "+runtime+" SET log_statement = 'all'")
	require.NoError(t, err)
	e.restrictRedis(t)
	port := platform.FreePort(t)
	e.temporal = startTemporal(t, port)
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte(redisPassword), 0o600))
	e.options = platform.ServerOptions{
		Temporal: platform.Address(port), Store: e.store(t, runtime), Redis: e.redis.URL(),
		Env: []string{
			"SIGNALBOX_STORE_AUTO_MIGRATE=false", "SIGNALBOX_TEMPORAL_TLS_DISABLED=true",
			"SIGNALBOX_EVENTS_MAX_LOOKBACK=1", // so that a run has a warning
			"SIGNALBOX_REDIS_USERNAME=signalbox", "SIGNALBOX_REDIS_PASSWORD_FILE=" +
				password, "SIGNALBOX_REDIS_PREFIX=signalbox:",
		},
	}
	return e
}

// launch starts a server with one role, which is its role in Temporal, too.
func (e *environment) launch(t *testing.T, role string, env ...string) *platform.Server {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(role), 0o600))
	o := e.options
	o.Roles = []string{role}
	o.Env = slices.Concat(o.Env, []string{"SIGNALBOX_TEMPORAL_API_KEY_FILE=" + key}, env)
	return platform.LaunchServer(t, o)
}

// store returns the database as seen by a user; "" is the superuser that the server has been created with.
func (e *environment) store(t *testing.T, user string) platform.Store {
	t.Helper()
	s := e.postgres.Store()
	u, err := url.Parse(s.DSN)
	require.NoError(t, err)
	if user != "" {
		u.User = url.User(user)
	}
	return platform.Store{Driver: s.Driver, DSN: u.String()}
}

// run runs a file of deploy as a user.
func (e *environment) run(t *testing.T, user, file string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.store(t, user).DSN)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), read(t, file))
	require.NoError(t, err, file)
	require.NoError(t, conn.Close(t.Context()))
}

// migrate migrates the schema as its owner.
func (e *environment) migrate(t *testing.T) {
	t.Helper()
	r := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t),
		Args:   []string{"migrate", "up", "--store-driver", "postgres", "--store-dsn", e.store(t, owner).DSN},
	})
	require.Equal(t, platform.ExitOK, r.Code, r.String())
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, filepath.Clean(file)))
	require.NoError(t, err)
	return string(text)
}

// startTemporal starts a Temporal that refuses every call that deploy/temporal/permissions.yaml does not have.
func startTemporal(t *testing.T, port int) *platform.Process {
	t.Helper()
	permissions, err := filepath.Abs(filepath.Join(deploy, "temporal/permissions.yaml"))
	require.NoError(t, err)
	p := platform.StartProcess(t, "temporal", platform.Binary(t), nil, []string{
		"dev", "temporal", "--port", strconv.Itoa(port), "--permissions", permissions, "--log-level", "info",
	})
	t.Cleanup(p.Kill)
	platform.Eventually(t, soon, func() string {
		if !strings.Contains(p.Output(), "Temporal is ready") {
			return "Temporal is not ready"
		}
		return ""
	})
	return p
}

// cli runs a command against the API and requires that it succeeds.
func (e *environment) cli(t *testing.T, args ...string) string {
	t.Helper()
	r := e.CLI(t, args...)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	return r.Stdout
}

// until waits until a command's output contains a text.
func (e *environment) until(t *testing.T, text string, args ...string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if r := e.CLI(t, args...); !strings.Contains(r.Stdout, text) {
			return fmt.Sprintf("no %q in %s", text, r)
		}
		return ""
	})
}
