//go:build linux && (amd64 || arm64)

package process_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/process"
)

func options(isolation string) process.Options {
	return process.Options{Isolation: isolation, Limits: limit.Limits{
		Memory: 96 << 20, Processes: 24, Processors: 1, Disk: 16 << 20, Network: limit.None,
	}}
}

func newSandbox(t *testing.T, o process.Options) *process.Sandbox {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && o.Isolation == process.Bubblewrap {
		t.Skip("bubblewrap is not installed; on Debian: apt-get install bubblewrap")
	}
	s, err := process.New(t.Context(), o)
	require.NoError(t, err)
	return s
}

type result struct {
	Code           int
	Stdout, Stderr string
}

func run(ctx context.Context, s *process.Sandbox, p process.Program) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.Output = output.New(64<<10, cancel)
	code, err := s.Run(ctx, p)
	stdout, stderr := p.Output.Text()
	return result{code, stdout, stderr}, err
}

func shell(code string, arguments ...string) process.Program {
	return process.Program{Command: append([]string{"/bin/sh", "-c", code, "sh"}, arguments...)}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{process.Bubblewrap, process.None} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, options(isolation))
			p := shell(`echo "$1 $2 $A"; cat; echo e >&2; echo x >file; cat "$HOME/file"; exit 7`, "one", "t wo")
			p.Stdin, p.Environment = "in\n", map[string]string{"A": "b\nc"}
			r, err := run(t.Context(), s, p)
			require.NoError(t, err)
			require.Equal(t, result{7, "one t wo b\nc\nin\nx\n", "e\n"}, r)
			r, err = run(t.Context(), s, shell(`kill -TERM $$`))
			require.NoError(t, err)
			require.Equal(t, 128+15, r.Code)
			r, err = run(t.Context(), s, process.Program{Command: []string{"python3", "-c", "import sys; print(sys.argv[1])", "ä"}})
			require.NoError(t, err)
			require.Equal(t, result{0, "ä\n", ""}, r)
			_, err = run(t.Context(), s, shell(strings.Repeat("#", 128<<10)))
			require.ErrorIs(t, err, process.ErrTooLarge)
		})
	}
}

// A program in bubblewrap reaches nothing of the host but its programs.
func TestIsolation(t *testing.T) {
	t.Setenv("SIGNALBOX_TEST_SECRET", "hidden")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("hidden"), 0o644))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	s := newSandbox(t, options(process.Bubblewrap))
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	for name, c := range map[string]struct{ code, printed string }{
		"environment": {`env | cut -d= -f1 | sort | tr '\n' ' '`, "HOME LANG PATH PWD "},
		"root":        {`ls /`, "bin\ndev\netc\nlib\nlib64\nproc\nsbin\ntmp\nusr\n"},
		"etc":         {`ls /etc`, "alternatives\nld.so.cache\nld.so.conf\nld.so.conf.d\n"},
		"tmp":         {`ls -A /tmp`, ""},
		"file":        {`cat ` + secret + ` 2>&1 | grep -o 'No such file'`, "No such file\n"},
		"processes":   {`[ $(ls /proc | grep -c '^[0-9]') -lt 7 ] && echo few`, "few\n"},
		"parent":      {fmt.Sprintf(`cat /proc/%d/environ 2>&1 | grep -o 'No such file'`, os.Getpid()), "No such file\n"},
		"user":        {`id -u; id -g`, "1000\n1000\n"},
		"capabilities": {`grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status | tr '\t\n' '  '`,
			"CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 "},
		"write usr":  {`touch /usr/x 2>&1 | grep -o 'Read-only'`, "Read-only\n"},
		"write root": {`touch /x 2>&1 | grep -o 'Read-only'`, "Read-only\n"},
		"write dev":  {`touch /dev/x 2>&1 | grep -o 'Read-only'`, "Read-only\n"},
		"kernel":     {`(echo x >/proc/sys/kernel/hostname) 2>&1 | grep -oE 'Read-only|denied'`, "denied\n"},
		"namespace":  {`unshare -Ur true 2>&1 | grep -o 'not permitted'`, "not permitted\n"},
		"mount":      {`mount -t tmpfs none /tmp 2>&1 | grep -o 'must be superuser'`, "must be superuser\n"},
		"network":    {`python3 -c 'import socket; print(len(socket.if_nameindex()))' 2>&1 | tail -1`, "OSError: [Errno 97] Address family not supported by protocol\n"},
		"connection": {`python3 -c '
import socket
try: socket.create_connection(("127.0.0.1", ` + port + `))
except OSError as e: print(e.strerror)'`, "Connection refused\n"},
		"vsock": {`python3 -c '
import socket
try: socket.socket(socket.AF_VSOCK)
except OSError as e: print(e.strerror)'`, "Address family not supported by protocol\n"},
		"ptrace": {`python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.ptrace(0, 0, 0, 0), ctypes.get_errno())'`, "-1 1\n"},
		"threads":     {`python3 -c 'import threading as t; x = t.Thread(target=print, args=("ran",)); x.start(); x.join()'`, "ran\n"},
		"descriptors": {`ls /proc/self/fd`, "0\n1\n2\n3\n"}, // ls reads the folder with one
	} {
		t.Run(name, func(t *testing.T) {
			r, err := run(t.Context(), s, shell(c.code))
			require.NoError(t, err)
			require.Equal(t, c.printed, r.Stdout, r.Stderr)
		})
	}
}

func TestNetworkOfTheHost(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	o := options(process.Bubblewrap)
	o.Limits.Network = limit.Host
	r, err := run(t.Context(), newSandbox(t, o), process.Program{Command: []string{"python3", "-c",
		fmt.Sprintf(`import socket; socket.create_connection(("127.0.0.1", %d)); print("connected")`,
			listener.Addr().(*net.TCPAddr).Port)}})
	require.NoError(t, err)
	require.Equal(t, "connected\n", r.Stdout, r.Stderr)
}

// Programs that use too much of something are refused more, or end. Others start afterwards.
func TestBombs(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, options(process.Bubblewrap))
	grouped, reason := s.Groups()
	t.Logf("control groups: %v %s", grouped, reason)
	for name, c := range map[string]struct {
		program process.Program
		stderr  string // a part
		err     error
	}{
		"forks": {process.Program{Command: []string{"python3", "-c", "import os, sys, time\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(100)\nexcept OSError as e: print(e, file=sys.stderr); os._exit(9)"}},
			"Resource temporarily unavailable", nil},
		"disk":   {shell(`dd if=/dev/zero of=/tmp/a bs=1M count=10 && dd if=/dev/zero of=/tmp/b bs=1M; exit 9`), "No space left", nil},
		"file":   {shell(`(trap '' XFSZ; dd if=/dev/zero of=/tmp/a bs=1M); exit 9`), "o", nil},
		"shared": {shell(`dd if=/dev/zero of=/dev/shm/a bs=1M; exit 9`), "No space left", nil},
		"files": {process.Program{Command: []string{"python3", "-c", "import sys\nf = []\ntry:\n  for i in range(9999): f.append(open('/dev/null'))\nexcept OSError as e: print(e, file=sys.stderr); sys.exit(9)"}},
			"Too many open files", nil},
		"output": {shell(`while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`), "", output.ErrFull},
		"memory": {process.Program{Command: []string{"python3", "-c", "a = []\nwhile True: a.append(bytearray(1 << 20))"}}, "", process.ErrMemory},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := run(t.Context(), s, c.program)
			if name == "memory" && !grouped {
				require.NoError(t, err)
				require.Contains(t, r.Stderr, "MemoryError")
				return
			}
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 9, r.Code, r.Stderr)
			require.Contains(t, r.Stderr, c.stderr)
		})
	}
}

// A program may have limits below those of the sandbox; higher ones do not count.
func TestLimitsOfOneProgram(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, options(process.Bubblewrap))
	p := shell(`ulimit -a | grep -E 'file.size|process'; df -k /tmp | tail -1; dd if=/dev/zero of=/tmp/a bs=1M count=2; exit 9`)
	p.Limits = limit.Limits{Processes: 4, Disk: 1 << 20, Processors: 0.2, Memory: 1 << 40, Network: limit.Host}
	r, err := run(t.Context(), s, p)
	require.NoError(t, err)
	require.Contains(t, r.Stdout, " 1024 ", "the folder has 1 MiB")
	require.Equal(t, 9, r.Code, "%v", r)
	p = process.Program{Command: []string{"python3", "-c", "a = bytearray(40 << 20)"}, Limits: limit.Limits{Memory: 24 << 20}}
	r, err = run(t.Context(), s, p)
	if grouped, _ := s.Groups(); grouped {
		require.ErrorIs(t, err, process.ErrMemory)
	} else {
		require.NoError(t, err)
		require.NotZero(t, r.Code)
	}
	p = shell(`ls /sys/class/net /etc/resolv.conf`)
	p.Limits.Network = limit.Host
	r, err = run(t.Context(), s, p)
	require.NoError(t, err)
	require.NotZero(t, r.Code, "a program does not get a wider network: %s", r.Stdout)
}

// processes returns how many processes have a text in their command line.
func processes(t *testing.T, text string) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	found := 0
	for _, path := range paths {
		line, _ := os.ReadFile(path) // it may have ended
		if strings.Contains(string(line), text) && !strings.Contains(path, "/"+strconv.Itoa(os.Getpid())+"/") {
			found++
		}
	}
	return found
}

// A program that ignores signals, in a session of its own, with children that hold its output, ends with all of them.
func TestCanceledProgramsLeaveNothing(t *testing.T) {
	t.Parallel()
	for i, isolation := range []string{process.Bubblewrap, process.None} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, options(isolation))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			printed := output.New(64<<10, cancel)
			unique := fmt.Sprintf("%d.%d", 1000+i, os.Getpid())
			why := errors.New("canceled by the test")
			done := make(chan error, 1)
			p := shell(`trap '' TERM INT HUP; setsid sleep $1 & sleep $1 & echo ready; while :; do sleep $1; done`, unique)
			p.Output = printed
			go func() {
				_, err := s.Run(ctx, p)
				done <- err
			}()
			require.Eventually(t, func() bool { return processes(t, unique) >= 4 }, time.Minute, 10*time.Millisecond)
			cancel(why)
			require.ErrorIs(t, <-done, why)
			require.Eventually(t, func() bool { return processes(t, unique) == 0 }, time.Minute, 10*time.Millisecond)
		})
	}
}

// What a program leaves in the background ends with it.
func TestProgramsEndWithTheirChildren(t *testing.T) {
	t.Parallel()
	for i, isolation := range []string{process.Bubblewrap, process.None} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			unique := fmt.Sprintf("%d.%d", 2000+i, os.Getpid())
			s := newSandbox(t, options(isolation))
			r, err := run(t.Context(), s, shell(`setsid sleep $1 >/dev/null 2>&1 & sleep $1 & echo started`, unique))
			require.NoError(t, err)
			require.Equal(t, "started\n", r.Stdout)
			require.Eventually(t, func() bool { return processes(t, unique) == 0 }, time.Minute, 10*time.Millisecond)
		})
	}
}

// A process that was killed leaves no process, and the next one removes its control groups and folders.
func TestKilledProcessLeavesNothing(t *testing.T) {
	if isolation := os.Getenv("SIGNALBOX_TEST_KILLED"); isolation != "" {
		_, err := run(t.Context(), newSandbox(t, options(isolation)),
			shell(`trap '' TERM HUP; echo > $HOME/file; setsid sleep $1 & sleep $1`, os.Getenv("SIGNALBOX_TEST_UNIQUE")))
		require.NoError(t, err)
		return
	}
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for i, isolation := range []string{process.Bubblewrap, process.None} {
		newSandbox(t, options(isolation))
		for round := range rounds {
			unique := fmt.Sprintf("%d%d.%d", 30+i, round, os.Getpid())
			cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledProcessLeavesNothing$")
			cmd.Env = append(os.Environ(), "SIGNALBOX_TEST_KILLED="+isolation, "SIGNALBOX_TEST_UNIQUE="+unique)
			require.NoError(t, cmd.Start())
			runs := round%2 == 0 // otherwise it is killed as soon as there is a process
			require.Eventually(t, func() bool {
				return processes(t, "sleep\x00"+unique) >= 2 || !runs && processes(t, unique) > 0
			}, time.Minute, time.Millisecond)
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			gone := func() bool { return processes(t, unique) == 0 }
			if isolation == process.Bubblewrap && runs {
				require.Eventually(t, gone, time.Minute, time.Millisecond)
			}
			newSandbox(t, options(isolation))
			require.Eventually(t, gone, time.Minute, time.Millisecond)
			require.Empty(t, left(t, cmd.Process.Pid), isolation)
		}
	}
}

// left returns the control groups and folders of a process.
func left(t *testing.T, pid int) []string {
	t.Helper()
	pattern := fmt.Sprintf("signalbox-program-%d-", pid)
	list, err := filepath.Glob(filepath.Join(os.TempDir(), pattern+"*"))
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir("/sys/fs/cgroup", func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(path), pattern) {
			list = append(list, path)
		}
		return nil
	}))
	return list
}
