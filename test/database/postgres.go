package database

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/test/platform"
)

const startLimit = time.Minute

// Postgres is a Postgres server as a process of its own.
type Postgres struct {
	process *platform.Process
	bin     string // folder of the programs
	data    string
	port    int
	account *account
}

// account is whom Postgres runs as where the tests run as root, which it refuses.
type account struct{ uid, gid uint32 }

// StartPostgres makes and starts a server. Without the programs of Postgres the test is skipped by the given function.
func StartPostgres(t platform.T, skip func(args ...any)) *Postgres {
	t.Helper()
	bin := programs()
	if bin == "" {
		skip("there is no initdb; `make setup` installs Postgres")
	}
	// Not the test's own folder: another account must reach it.
	data, err := os.MkdirTemp("", "signalbox-postgres-")
	if err != nil {
		t.Fatalf("make a folder for Postgres: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) }) // what is left is in the system's temporary folder
	p := &Postgres{bin: bin, data: data, port: platform.FreePort(t)}
	if os.Geteuid() == 0 {
		p.account = lookup(t)
		if err := os.Chown(data, int(p.account.uid), int(p.account.gid)); err != nil {
			t.Fatalf("give the folder to Postgres: %v", err)
		}
	}
	initdb := p.command("initdb", "-D", p.folder(), "-U", "signalbox", "-A", "trust", "-E", "UTF8", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	p.Restart(t)
	return p
}

// programs finds the folder that holds initdb, which Debian keeps off the PATH.
func programs() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(target)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

func lookup(t platform.T) *account {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("Postgres refuses to run as root, and there is no other account for it: %v", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatalf("the account of Postgres: %v", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatalf("the account of Postgres: %v", err)
	}
	return &account{uid: uint32(uid), gid: uint32(gid)}
}

func (p *Postgres) folder() string { return filepath.Join(p.data, "postgres") }

func (p *Postgres) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = attributes(p.account)
	return cmd
}

// Store is the server's database.
func (p *Postgres) Store() platform.Store {
	return platform.Store{Driver: "postgres", DSN: fmt.Sprintf("postgres://signalbox@127.0.0.1:%d/postgres?sslmode=disable", p.port)}
}

// Restart starts the server again after a crash, on its data, and waits until it answers.
func (p *Postgres) Restart(t platform.T) {
	t.Helper()
	p.process = platform.StartCommand(t, "postgres", p.command("postgres", "-D", p.folder(), "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "max_connections=100"))
	process := p.process
	// SIGTERM, with which the kit ends processes, would wait for clients to leave.
	t.Cleanup(process.Interrupt)
	platform.Eventually(t, startLimit, func() string {
		c, err := pgx.Connect(t.Context(), p.Store().DSN)
		if err != nil {
			return err.Error()
		}
		if err := c.Close(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
}

// Crash ends the server and everything it has started, as a loss of power would.
func (p *Postgres) Crash() {
	family := p.family()
	p.process.Kill()
	send(family, syscall.SIGKILL)
}

// Freeze stops the server and everything it has started: connections stay open and nothing answers.
func (p *Postgres) Freeze() {
	p.process.Freeze() // first: it would start more
	send(p.family(), syscall.SIGSTOP)
}

// Thaw lets a frozen server go on.
func (p *Postgres) Thaw() {
	send(p.family(), syscall.SIGCONT)
	p.process.Thaw()
}

// family lists the processes that the server has started.
func (p *Postgres) family() []int {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.process.PID(), p.process.PID()))
	if err != nil {
		return nil // it has ended, or this is not Linux: then only the server itself is meant
	}
	var pids []int
	for field := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func send(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // it may have ended by itself
	}
}
