// Package procedures_test follows docs/operations.md: each command of the page runs as it is written, in the
// order of its section, on a platform in the state that the page describes. Servers, people and their commands have the
// rights of docs/least-privilege.md: roles of Postgres and Redis with passwords, API tokens, and a Unix user without
// rights.
//
// A procedure names the command that it expects next, so a command that is added to a page, or changed, fails until the
// procedure follows.
package procedures_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	soon   = platform.Patience
	deploy = "../../deploy"
	// nobody is the Unix user of commands.
	nobody = 65534
)

// The roles of deploy/postgres/roles.sql, and a superuser. The password of each role is its name.
const (
	owner, runtime = "signalbox_owner", "signalbox"
	superuser      = "admin"
)

// Shared by the procedures that do not break it.
var (
	temporal *platform.Shared[*platform.Temporal]
	postgres *platform.Shared[*cluster]
	programs *platform.Shared[string]
)

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 5, func(s *platform.Suite) {
		temporal = platform.Share(s, platform.StartTemporal)
		postgres = platform.Share(s, startCluster)
		programs = platform.Share(s, copyPrograms)
	}))
}

// procedure is a scenario, with the headings of the sections that it follows.
type procedure struct {
	name     string
	sections []string
	follow   func(*testing.T, *guide)
}

func procedures() []procedure {
	return []procedure{
		// The longest ones first.
		{"loss of Postgres", []string{"Postgres is lost"}, losePostgres},
		{"loss of Temporal", []string{"Temporal is lost"}, loseTemporal},
		{"restore", []string{
			"Backup and restore", "Restore", "Check",
			"Keep large values outside the backup", "Verify",
		}, restore},
		{"first servers", []string{"Rollout", "Production checklist", "Redis is lost"},
			firstServers},
		{"rotation", []string{"Key rotation", "Sealing keys", "Redis' password",
			"Postgres' password"}, rotate},
		{"move", []string{"Moving a project"}, move},
		{"continuous backup", []string{"Back up Postgres continuously"}, archive},
		{"upgrade", []string{"Before", "Rolling: no interruption", "With maintenance"},
			upgrade},
	}
}

// guide gives a procedure the commands of its sections.
type guide struct{ sections map[string]*section }

// section returns a section by its heading.
func (g *guide) section(t *testing.T, heading string) *section {
	t.Helper()
	require.Contains(t, g.sections, heading)
	return g.sections[heading]
}

func TestProceduresDoWhatPagesSay(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"pg_dump", "redis-server", "redis-cli", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing; `make setup` installs Postgres and Redis", program)
		}
	}
	for _, p := range procedures() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			g := &guide{sections: map[string]*section{}}
			for _, name := range p.sections {
				s := find(t, name)
				g.sections[s.heading] = s
			}
			p.follow(t, g)
			for _, s := range g.sections {
				require.Empty(t, s.commands[s.next:], "%s has commands that the procedure does not run", s)
			}
		})
	}
}

// openFolder returns a temporary folder that other users can write into: those of testing.T belong to the user of the
// test.
func openFolder(t platform.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "signalbox-procedure-")
	if err == nil {
		err = os.Chmod(folder, 0o777)
	}
	if err != nil {
		t.Fatalf("make a folder that all users can write into: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) }) // what remains is in the system's temporary folder
	return folder
}

// copyPrograms makes a folder with this release as signalbox and with deploy and examples, which all users can read.
func copyPrograms(t platform.T) string {
	folder := openFolder(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatalf("find the repository: %v", err)
	}
	for _, args := range [][]string{
		{"cp", platform.ServerBinary(t), filepath.Join(folder, "signalbox")},
		{"cp", "-r", root + "/deploy", root + "/examples", folder}, {"chmod", "-R", "a+rX", folder},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return folder
}

// cluster is a Postgres with the roles, whose passwords it checks.
type cluster struct{ url string }

// startCluster starts a Postgres. Without its programs the tests that need it fail: they are skipped before.
func startCluster(t platform.T) *cluster {
	t.Helper()
	c := &cluster{database.StartPostgres(t, func(args ...any) { t.Fatalf("%s", fmt.Sprint(args...)) }).Store().DSN}
	// The superuser that the server was created with has the name of the role of the servers.
	platform.Execute(t.Context(), t, c.url, "CREATE ROLE "+superuser+" SUPERUSER LOGIN PASSWORD '"+superuser+"'")
	admin := c.dsn(t, superuser, "postgres")
	platform.Execute(t.Context(), t, admin, "ALTER ROLE signalbox RENAME TO created_with")
	for _, role := range []string{owner, runtime} {
		platform.Execute(t.Context(), t, admin, "CREATE ROLE "+role+" LOGIN PASSWORD '"+role+"'")
	}
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatalf("connect to Postgres: %v", err)
	}
	defer func() { _ = conn.Close(t.Context()) }() // it is used no more
	var hba string
	if err := conn.QueryRow(t.Context(), "SHOW hba_file").Scan(&hba); err != nil {
		t.Fatalf("find the file of the access rules: %v", err)
	}
	if err := os.WriteFile(filepath.Clean(hba), []byte("host all all 127.0.0.1/32 scram-sha-256\n"), 0o600); err != nil {
		t.Fatalf("write the access rules: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatalf("load the access rules: %v", err)
	}
	platform.Eventually(t, soon, func() string {
		open, err := pgx.Connect(t.Context(), c.dsn(t, runtime, "postgres"))
		if err != nil {
			return ""
		}
		_ = open.Close(t.Context()) // it is used no more
		return "Postgres accepts a connection without a password"
	})
	return c
}

// dsn returns the URL of a database for a role, without a password.
func (c *cluster) dsn(t platform.T, role, name string) string {
	t.Helper()
	dsn, err := url.Parse(c.url)
	if err != nil {
		t.Fatalf("read the URL of Postgres: %v", err)
	}
	dsn.User, dsn.Path = url.User(role), "/"+name
	return dsn.String()
}

// asAdmin executes a statement as a superuser.
func (c *cluster) asAdmin(t platform.T, name, statement string) {
	t.Helper()
	dsn, err := url.Parse(c.dsn(t, superuser, name))
	if err != nil {
		t.Fatalf("read the URL of Postgres: %v", err)
	}
	dsn.User = url.UserPassword(superuser, superuser)
	platform.Execute(t.Context(), t, dsn.String(), statement)
}
