package procedures_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// archive archives a Debian cluster of Postgres, and goes back to a moment before a mistake. The cluster and the
// folders of the page are in a temporary folder: paths of commands get it as a prefix, and Debian's programs find the
// cluster by PG_CLUSTER_CONF_ROOT, with which they also do without systemd.
func archive(t *testing.T, g *guide) {
	if _, err := exec.LookPath("pg_createcluster"); err != nil || os.Getuid() != 0 {
		t.Skip("the page is for root on Debian: it needs root, and pg_createcluster of the package postgresql-common")
	}
	d := newDebian(t)
	i := newInstallation(t, d.cluster(t))
	i.migrate(t)
	i.start(t)
	i.signIn(t)
	s := g.section(t, "Back up Postgres continuously")

	d.do(t, s, "install -d")
	d.do(t, s, "printf")
	d.do(t, s, "pg_ctlcluster 15 main restart")
	d.do(t, s, "runuser -u postgres -- pg_basebackup")
	i.eventually(t, "signalbox project create kept || signalbox project show kept", "kept")
	moment := strings.TrimSpace(i.shell(t, `psql "$OWNER_DSN" -Atc "SELECT clock_timestamp() AT TIME ZONE 'UTC'"`))
	i.shell(t, "signalbox project create mistake")

	i.stop(t)
	d.do(t, s, "pg_ctlcluster 15 main stop")
	d.do(t, s, "mv ")
	d.do(t, s, "cp -a")
	d.do(t, s, "printf", "2026-11-28 21:56:18", moment)
	d.do(t, s, "runuser -u postgres -- touch")
	d.do(t, s, "pg_ctlcluster 15 main start")
	i.eventually(t, `psql "$OWNER_DSN" -Atc 'SELECT pg_is_in_recovery()'`, "^f")
	i.start(t)
	projects := i.shell(t, "signalbox project list")
	require.Contains(t, projects, "kept")
	require.NotContains(t, projects, "mistake")
	i.shell(t, "signalbox project create after")
}

// debian is a machine of Debian with a cluster of Postgres, as far as its commands are concerned.
type debian struct {
	root, version string
	port          int
	env           []string
}

func newDebian(t *testing.T) *debian {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	require.NoError(t, err)
	require.NotEmpty(t, found)
	d := &debian{root: openFolder(t), version: strings.Split(found[len(found)-1], "/")[4], port: platform.FreePort(t)}
	d.env = append(platform.Environment(t), "PG_CLUSTER_CONF_ROOT="+d.root+"/etc/postgresql",
		"PGPORT="+strconv.Itoa(d.port), "LC_ALL=C.UTF-8")
	d.shell(t, fmt.Sprintf("mkdir -p etc/postgresql var/lib/postgresql/%[1]s srv log run && chown postgres "+
		"var/lib/postgresql/%[1]s run", d.version))
	d.shell(t, fmt.Sprintf("pg_createcluster --datadir=$PWD/var/lib/postgresql/%s/main --logfile=$PWD/log/main.log "+
		"--socketdir=$PWD/run --port=%d --start-conf=manual %[1]s main", d.version, d.port))
	d.shell(t, "pg_ctlcluster "+d.version+" main start")
	t.Cleanup(func() {
		cmd := d.command("pg_ctlcluster " + d.version + " main stop -- -m immediate")
		_ = cmd.Run() // it may have ended
	})
	return d
}

// cluster gives the cluster the roles.
func (d *debian) cluster(t *testing.T) *cluster {
	t.Helper()
	for _, role := range []string{superuser + " SUPERUSER", owner, runtime} {
		name, _, _ := strings.Cut(role, " ")
		d.shell(t, fmt.Sprintf(`runuser -u postgres -- psql -q -h "$PWD/run" -c "CREATE ROLE %s LOGIN PASSWORD '%s'"`, role,
			name))
	}
	return &cluster{fmt.Sprintf("postgres://127.0.0.1:%d/postgres?sslmode=disable", d.port)}
}

// command runs as root.
func (d *debian) command(text string) *exec.Cmd {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", `export PGHOST="$PWD/run"; `+text)
	cmd.Dir, cmd.Env = d.root, slices.Clone(d.env)
	return cmd
}

func (d *debian) shell(t *testing.T, text string) string {
	t.Helper()
	out, err := d.command(text).CombinedOutput()
	require.NoError(t, err, "%s\n%s", text, out)
	return string(out)
}

// do runs the next command of a section on this machine.
func (d *debian) do(t *testing.T, s *section, begin string, words ...string) {
	t.Helper()
	text := s.take(t, begin, words...)
	for _, folder := range []string{"/srv/", "/etc/postgresql/", "/var/lib/postgresql/"} {
		text = strings.ReplaceAll(text, folder, d.root+folder)
	}
	text = strings.NewReplacer("/15/", "/"+d.version+"/", " 15 main", " "+d.version+" main").Replace(text)
	t.Logf("$ %s\n%s", text, d.shell(t, text))
}
