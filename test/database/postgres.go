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

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/test/platform"
)

const startLimit = platform.Patience

// Postgres is a Postgres server in its own process.
type Postgres struct {
	process *platform.Process
	bin     string // folder of the programs
	data    string
	port    int
	account *account
}

// account is the system account that Postgres runs as where the tests run as root, which Postgres refuses.
type account struct{ uid, gid uint32 }

// StartPostgres creates and starts a server. If the programs of Postgres are missing, it skips the test with the given
// function.
func StartPostgres(t platform.T, skip func(args ...any)) *Postgres {
	t.Helper()
	return startPostgres(t, skip, 0)
}

// StartPostgresOnDisk is StartPostgres with the data in a file system of its own, of the given size in MB. Only root
// can make one.
func StartPostgresOnDisk(t platform.T, skip func(args ...any), size int) *Postgres {
	t.Helper()
	return startPostgres(t, skip, size)
}

func startPostgres(t platform.T, skip func(args ...any), disk int) *Postgres {
	t.Helper()
	bin := programs()
	if bin == "" {
		skip("initdb is missing; `make setup` installs Postgres")
	}
	// Not the test's own folder: another account must have access.
	data, err := os.MkdirTemp("", "signalbox-postgres-")
	if err != nil {
		t.Fatalf("make a folder for Postgres: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) }) // what remains is in the system's temporary folder
	if disk > 0 {
		mountDisk(t, skip, data, disk)
	}
	p := &Postgres{bin: bin, data: data, port: platform.FreePort(t)}
	if os.Geteuid() == 0 {
		p.account = postgresAccount(t)
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

// programs returns the folder that holds initdb, which Debian does not put on the PATH.
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

func postgresAccount(t platform.T) *account {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("Postgres refuses to run as root, and its account is missing: %v", err)
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

// Store returns the server's database.
func (p *Postgres) Store() platform.Store {
	return platform.Store{Driver: "postgres",
		DSN: fmt.Sprintf("postgres://signalbox@127.0.0.1:%d/postgres?sslmode=disable", p.port)}
}

// Restart starts the server after a crash, on its data, and waits until it answers.
func (p *Postgres) Restart(t platform.T) {
	t.Helper()
	p.process = platform.StartCommand(t, "postgres", p.command("postgres", "-D", p.folder(), "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "max_connections=300"))
	process := p.process
	// SIGTERM, with which the platform package ends processes, would wait until clients disconnect.
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

// Crash kills the server and all of its child processes, as a loss of power would.
func (p *Postgres) Crash() {
	family := p.processTree()
	p.process.Kill()
	signalAll(family, syscall.SIGKILL)
}

// Freeze suspends the server and all of its child processes: connections stay open and nothing answers.
func (p *Postgres) Freeze() {
	p.process.Freeze() // first: it would start further processes
	signalAll(p.processTree(), syscall.SIGSTOP)
}

// Thaw continues a frozen server.
func (p *Postgres) Thaw() {
	signalAll(p.processTree(), syscall.SIGCONT)
	p.process.Thaw()
}

// processTree returns the IDs of the server's child processes.
func (p *Postgres) processTree() []int {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.process.PID(), p.process.PID()))
	if err != nil {
		return nil // it has ended, or this is not Linux: then the signal goes to the server alone
	}
	var pids []int
	for field := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // the process may have ended
	}
}
