package procedures_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// installation is a database, a Redis, a namespace of Temporal, a configuration, and servers.
type installation struct {
	cluster  *cluster
	database string
	redis    *platform.Process
	port     int // of Redis
	temporal *platform.Temporal
	// namespace of Temporal.
	namespace string
	// folder is where commands run. It has signalbox.yaml, the files of passwords, and deploy.
	folder string
	// variables are those of the commands, which later ones override.
	variables []string
	settings  []string // variables of the servers
	// encryption is that section of signalbox.yaml.
	encryption string
	api        *platform.Server
	worker     *platform.Server
}

// newInstallation makes everything but the schema and the servers: the state before the first phase of
// docs/operations.md.
func newInstallation(t *testing.T, c *cluster) *installation {
	t.Helper()
	i := &installation{
		cluster: c, database: fmt.Sprintf("signalbox%08x", rand.Uint32()), temporal: temporal.Get(t),
		namespace: fmt.Sprintf("n%08x", rand.Uint32()), folder: openFolder(t),
	}
	i.temporal.CreateNamespace(t, i.namespace)
	require.NoError(t, os.Symlink(filepath.Join(programs.Get(t), "deploy"), filepath.Join(i.folder, "deploy")))
	i.startRedis(t)
	i.secret(t, "redis-password", "redis")
	i.secret(t, "postgres-password", runtime)
	passwords := ""
	for _, role := range []string{superuser, owner, runtime} {
		passwords += fmt.Sprintf("*:*:*:%s:%s\n", role, role)
	}
	i.secret(t, "pgpass", passwords)
	_, key, _ := strings.Cut(strings.TrimPrefix(platform.WithKeys(t), "SIGNALBOX_ENCRYPTION_KEYS="), "=")
	sealing, err := os.ReadFile(filepath.Clean(key))
	require.NoError(t, err)
	i.secret(t, "sealing-key", string(sealing))
	i.encryption = "{keys: {test: " + i.folder + "/sealing-key}}"
	address := platform.Address(platform.FreePort(t))
	i.configure(t, address)
	i.settings = []string{
		platform.AllowLoopback, "SIGNALBOX_DISPATCH_TTL=4s", "SIGNALBOX_DISPATCH_RENEW=1s", "SIGNALBOX_DISPATCH_HEARTBEAT=1s",
		"SIGNALBOX_DISPATCH_STALE_AFTER=5s", "SIGNALBOX_RUNS_STUCK_AFTER=2s",
	}
	i.set(
		"PATH="+programs.Get(t)+":"+os.Getenv("PATH"), "HOME="+i.folder, "XDG_CONFIG_HOME="+i.folder, "NO_COLOR=1",
		"PGPASSFILE="+filepath.Join(i.folder, "pgpass"), "ADMIN_DSN="+c.dsn(t, superuser, i.database), "OWNER_DSN="+
			c.dsn(t, owner, i.database),
		"DSN="+c.dsn(t, runtime, i.database), "REDIS_URL=redis://"+
			platform.Address(i.port), "REDIS_PASSWORD=redis", "REDIS_ADMIN_PASSWORD=admin",
		"NEW_PASSWORD=new", "SIGNALBOX_ADDRESS="+address,
	)
	i.createDatabase(t)
	return i
}

// createDatabase makes the database, empty, with the rights of roles.sql.
func (i *installation) createDatabase(t *testing.T) {
	t.Helper()
	i.cluster.asAdmin(t, "postgres", "CREATE DATABASE "+i.database)

	i.shell(t, `psql "$ADMIN_DSN" -q -v ON_ERROR_STOP=1 -f deploy/postgres/roles.sql`)
}

// grant gives the role of the servers its rights, as docs/least-privilege.md says.
func (i *installation) grant(t *testing.T) {
	t.Helper()
	i.shell(t, `psql "$OWNER_DSN" -q -v ON_ERROR_STOP=1 -f deploy/postgres/grants.sql`)
}

// migrate makes the schema.
func (i *installation) migrate(t *testing.T) {
	t.Helper()
	i.shell(t, `signalbox migrate up --store-driver postgres --store-dsn "$OWNER_DSN"`)
	i.grant(t)
}

// startRedis starts an empty Redis with the shipped users.
func (i *installation) startRedis(t *testing.T) {
	t.Helper()
	if i.port == 0 {
		i.port = platform.FreePort(t)
	}
	hash := func(password string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(password))) }
	users := filepath.Join(i.folder, "users.acl")
	if _, err := os.Stat(users); err != nil {
		text, err := os.ReadFile(filepath.Join(deploy, "redis/users.acl"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(users,
			[]byte(strings.NewReplacer("PASSWORD_SHA256", hash("redis"), "ADMIN_SHA256", hash("admin")).Replace(string(text))),
			0o600))
	}
	i.redis = platform.StartProcess(t, "redis", "redis-server", nil, []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(i.port), "--save", "", "--aclfile", users,
	})
	platform.Eventually(t, soon, func() string {
		if !strings.Contains(i.redis.Output(), "Ready to accept connections") {
			return i.redis.Output()
		}
		return ""
	})
}

// secret writes a file that the Unix user of the commands can read, and no other one but root.
func (i *installation) secret(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(i.folder, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(path, nobody, nobody))
	}
}

// configure writes signalbox.yaml. Its address is that of the API; the other server overrides it.
func (i *installation) configure(t *testing.T, address string) {
	t.Helper()
	dsn := strings.Replace(i.cluster.dsn(t, runtime, i.database), "@", ":${file:"+i.folder+"/postgres-password}@", 1)
	i.secret(t, "signalbox.yaml", fmt.Sprintf(`listen: %s
auth: {mode: tokens}
temporal: {address: %q, namespace: %s}
store: {driver: postgres, dsn: %q, auto_migrate: false}
redis: {url: "redis://%s", username: signalbox, password_file: %s/redis-password}
encryption: %s
`, address, i.temporal.Address, i.namespace, dsn, platform.Address(i.port), i.folder, i.encryption))
}

// set sets variables of the commands.
func (i *installation) set(variables ...string) { i.variables = slices.Concat(i.variables, variables) }

// variable returns the value of a variable.
func (i *installation) variable(name string) (value string) {
	for _, each := range i.variables {
		if found, ok := strings.CutPrefix(each, name+"="); ok {
			value = found
		}
	}
	return value
}

// launch starts a server with one role, with further variables.
func (i *installation) launch(t *testing.T, role string, env ...string) *platform.Server {
	t.Helper()
	address := strings.TrimPrefix(i.variable("SIGNALBOX_ADDRESS"), "https://")
	if role == platform.Worker {
		address = platform.Address(platform.FreePort(t))
	}
	p := platform.StartProcess(t, role, platform.ServerBinary(t), slices.Concat(i.settings, env), []string{
		"server", "--config", filepath.Join(i.folder, "signalbox.yaml"), "--roles", role, "--listen", address,
	})
	return platform.AttachServer(p, address)
}

// start starts one server of each role, and waits until they are ready.
func (i *installation) start(t *testing.T) {
	t.Helper()
	i.api, i.worker = i.launch(t, platform.API), i.launch(t, platform.Worker)
	i.api.AwaitAPI(t)
	i.worker.AwaitReady(t)
}

// stop ends all servers in order.
func (i *installation) stop(t *testing.T) {
	t.Helper()
	for _, s := range []*platform.Server{i.worker, i.api} {
		s.Terminate()
	}
	for _, s := range []*platform.Server{i.worker, i.api} {
		_, ended := s.WaitFor(soon) // the code is not 0 if the database is lost
		require.True(t, ended)
	}
}

// signIn creates the first token and uses it from now on.
func (i *installation) signIn(t *testing.T) {
	t.Helper()
	i.set("SIGNALBOX_TOKEN=" +
		strings.TrimSpace(i.shell(t, "signalbox token create --bootstrap --config signalbox.yaml --name ada")))
}

// run makes the schema, starts servers and signs in: a platform in operation.
func operating(t *testing.T, c *cluster) *installation {
	t.Helper()
	i := newInstallation(t, c)
	i.migrate(t)
	i.start(t)
	i.signIn(t)
	return i
}

// command returns a command as the Unix user of commands, where the tests run as root.
func (i *installation) command(t *testing.T, text string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = i.folder, i.variables
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal, programs read passwords from standard input
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

// shell runs a command that is not of a page: one that makes the state, or checks it. It must succeed.
func (i *installation) shell(t *testing.T, text string) string {
	t.Helper()
	cmd := i.command(t, text)
	out, err := cmd.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		require.NoError(t, err, "%s\n%s%s", text, out, exit.Stderr)
	}
	require.NoError(t, err, text)
	return string(out)
}

// refused matches what a missing right or a wrong password looks like.
var refused = regexp.MustCompile(
	`NOPERM|NOAUTH|WRONGPASS|ERR |permission denied|insufficient privilege|no privileges|password authentication failed`)

// do runs the next command of a section, which begins so and must succeed, with words replaced, and returns its output.
func (i *installation) do(t *testing.T, s *section, begin string, words ...string) string {
	t.Helper()
	return i.perform(t, s, s.take(t, begin, words...))
}

func (i *installation) perform(t *testing.T, s *section, text string) string {
	t.Helper()
	began := time.Now()
	out, err := i.command(t, text).CombinedOutput()
	require.NoError(t, err, "%s: %s\n%s", s, text, out)
	require.NotRegexp(t, refused, string(out), "%s: %s", s, text)
	t.Logf("%s, after %.1fs:\n$ %s\n%s", s, time.Since(began).Seconds(), text, out)
	return string(out)
}

// until runs the next command of a section again until it succeeds and prints what matches.
func (i *installation) until(t *testing.T, s *section, pattern, begin string, words ...string) string {
	t.Helper()
	text := s.take(t, begin, words...)
	began := time.Now()
	last := i.eventually(t, text, pattern)
	t.Logf("%s, after %.1fs:\n$ %s\n%s", s, time.Since(began).Seconds(), text, last)
	return last
}

// eventually runs a command until it succeeds and prints what matches.
func (i *installation) eventually(t *testing.T, text, pattern string) (last string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		out, err := i.command(t, text).CombinedOutput()
		if last = string(out); err != nil || !regexp.MustCompile(pattern).MatchString(last) {
			return fmt.Sprintf("%s does not print %s: %v\n%s", text, pattern, err, out)
		}
		return ""
	})
	return last
}
