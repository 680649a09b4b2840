package privilege_test

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// credential matches a variable of the table of credentials in docs/least-privilege.md.
var credential = regexp.MustCompile(
	`\$(ADMIN_DSN|OWNER_DSN|PAYLOADS_OWNER_DSN|DSN|REDIS_URL|REDIS_PASSWORD|REDIS_ADMIN_PASSWORD|REDISCLI_AUTH)\b`)

// notRun are beginnings of commands with credentials that this test does not run, and why.
func notRun() map[string]string {
	return map[string]string{
		`psql "$ADMIN_DSN" -c '\password`: "it reads passwords from a terminal; the test sets them",
		`sed "s/PASSWORD_SHA256`:          "it writes into /etc; the test starts Redis with the file",
	}
}

// Each command of these pages that acts on Postgres or Redis succeeds with the rights of the files in deploy, as the
// role that its variable stands for, with passwords that are checked, and as a Unix user without rights.
func TestCommandsOfPagesHaveTheirRights(t *testing.T) {
	t.Parallel()
	e := &environment{postgres: database.StartPostgres(t, t.Skip)}
	e.logStatements(t)
	e.run(t, superuser, "postgres/roles.sql")
	env := append(e.credentials(t), redisWithUsers(t)...)
	list := credentialCommands(t)
	require.Greater(t, len(list), 5)
	folder := openFolder(t)
	require.NoError(t, os.CopyFS(filepath.Join(folder, "deploy"), os.DirFS(deploy)))
	require.NoError(t, exec.CommandContext(t.Context(), "cp", platform.ServerBinary(t),
		filepath.Join(folder, "signalbox")).Run())
	require.NoError(t, exec.CommandContext(t.Context(), "chmod", "-R", "a+rX", folder).Run())
	env = append(env, "HOME="+folder, "XDG_CONFIG_HOME="+folder, "PATH="+folder+":"+os.Getenv("PATH"))
	for _, c := range list {
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", c.text)
		cmd.Dir, cmd.SysProcAttr = folder, unprivileged()
		cmd.Env = append(platform.Environment(t), env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s\n%s", c.page, c.text, out)
		require.NotRegexp(t, `NOPERM|NOAUTH|WRONGPASS|ERR |insufficient privilege|permission denied for (table|schema|database)`, string(out), "%s: %s", c.page, c.text)
	}
}

// nobody is the Unix user of the commands.
const nobody = 65534

// unprivileged makes a child process run as a user without rights, where the tests run as root.
func unprivileged() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// openFolder returns a temporary folder that other users can write into: those of testing.T belong to the user of the
// test.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "privilege") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o777))
	return folder
}

// pageCommand is a command with the page that it is in.
type pageCommand struct{ page, text string }

// credentialCommands returns the commands of all pages that name a credential, those of the schema first. Those of
// docs/operations.md are not among them: test/procedures runs them.
func credentialCommands(t *testing.T) (list []pageCommand) {
	t.Helper()
	block, inline := regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$"), regexp.MustCompile("`([a-zA-Z_]+[ =][^`\n]*)`")
	pages := []string{"../../docs/least-privilege.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/runbooks/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, slices.DeleteFunc(files, func(page string) bool {
			return filepath.Base(page) == "operations.md"
		})...)
	}
	seen, excluded := map[string]bool{}, map[string]bool{}
	add := func(page, text string) {
		text = strings.TrimSpace(text)
		if seen[text] || !credential.MatchString(text) || strings.HasPrefix(text, "$(") {
			return
		}
		seen[text] = true
		for begin := range notRun() {
			if strings.HasPrefix(text, begin) {
				excluded[begin] = true
				return
			}
		}
		list = append(list, pageCommand{page, text})
	}
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Clean(page))
		require.NoError(t, err)
		exported := ""
		for _, match := range block.FindAllStringSubmatch(string(content), -1) {
			for line := range strings.Lines(match[1]) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "export ") {
					exported += line + "; "
					continue
				}
				add(page, exported+line)
			}
		}
		for _, match := range inline.FindAllStringSubmatch(block.ReplaceAllString(string(content), ""), -1) {
			if strings.Contains(match[1], " ") {
				add(page, match[1])
			}
		}
	}
	for begin := range notRun() {
		require.True(t, excluded[begin], "no page has a command that begins with %s: delete the exception", begin)
	}
	return list
}

// credentials gives the roles passwords, which Postgres checks from now on, and returns the variables with the file of
// passwords.
func (e *environment) credentials(t *testing.T) []string {
	t.Helper()
	payloads := e.databaseOfPayloads(t)
	lines := ""
	for _, role := range []string{superuser, owner, runtime} {
		_, err := e.admin.Exec(t.Context(), fmt.Sprintf("ALTER ROLE %s PASSWORD 'of-%s'", role, role))
		require.NoError(t, err)
		lines += fmt.Sprintf("*:*:*:%s:of-%s\n", role, role)
	}
	var hba string
	require.NoError(t, e.admin.QueryRow(t.Context(), `SHOW hba_file`).Scan(&hba))
	require.NoError(t, os.WriteFile(filepath.Clean(hba), []byte("host all all 127.0.0.1/32 scram-sha-256\n"), 0o600))
	_, err := e.admin.Exec(t.Context(), `SELECT pg_reload_conf()`)
	require.NoError(t, err)
	passwords := filepath.Join(openFolder(t), "pgpass")
	require.NoError(t, os.WriteFile(passwords, []byte(lines), 0o600))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(passwords, nobody, nobody))
	}
	return []string{
		"PGPASSFILE=" + passwords, "PAYLOADS_OWNER_DSN=" + payloads, "ADMIN_DSN=" + e.store(t, superuser).DSN, "OWNER_DSN=" +
			e.store(t, owner).DSN, "DSN=" + e.store(t, runtime).DSN,
	}
}

// databaseOfPayloads creates the second database of docs/least-privilege.md, and returns its owner's URL.
func (e *environment) databaseOfPayloads(t *testing.T) string {
	t.Helper()
	_, err := e.admin.Exec(t.Context(), "CREATE DATABASE payloads")
	require.NoError(t, err)
	as := func(role string) string {
		dsn, err := url.Parse(e.store(t, role).DSN)
		require.NoError(t, err)
		dsn.Path = "/payloads"
		return dsn.String()
	}
	conn, err := pgx.Connect(t.Context(), as(superuser))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), read(t, "postgres/roles.sql"))
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	return as(owner)
}

// redisWithUsers starts a Redis with the shipped users, and returns the variables.
func redisWithUsers(t *testing.T) []string {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is missing; `make setup` installs it")
	}
	hash := func(password string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(password))) }
	users := filepath.Join(t.TempDir(), "users.acl")
	text := strings.NewReplacer("PASSWORD_SHA256", hash("old"), "ADMIN_SHA256",
		hash("admin")).Replace(read(t, "redis/users.acl"))
	require.NoError(t, os.WriteFile(users, []byte(text), 0o600))
	port := platform.FreePort(t)
	p := platform.StartProcess(t, "redis", binary, nil,
		[]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--aclfile", users})
	platform.Eventually(t, soon, func() string {
		if !strings.Contains(p.Output(), "Ready to accept connections") {
			return p.Output()
		}
		return ""
	})
	return []string{"REDIS_URL=redis://" + platform.Address(port), "REDIS_PASSWORD=old", "REDIS_ADMIN_PASSWORD=admin",
		"NEW_PASSWORD=new"}
}

// Without a variable, a command of the pages fails: the test above would otherwise pass with the rights of the
// environment.
func TestCommandsNeedTheirCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range credentialCommands(t) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", c.text)
		cmd.Dir, cmd.Env = t.TempDir(), platform.Environment(t, platform.Path(t))
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Run(), &exit, c.text)
	}
}
