//go:build linux && (amd64 || arm64)

// Package process executes commands on this host: in bubblewrap, or without isolation where that is configured by name.
//
//	sandbox, err := process.New(ctx, process.Options{Isolation: process.Bubblewrap})
//	code, err := sandbox.Run(ctx, program)
//
// # Isolation
//
// A command in bubblewrap has user, process, network, mount, IPC and host name namespaces of its own. It sees the
// programs and libraries of the host (/usr) read-only, none of its other files, none of its processes, and has a folder
// in memory of a bounded size. It has no capabilities, cannot gain privileges, and a seccomp filter denies the system
// calls that manage the kernel. If this process is root, the command has the user id of the user nobody.
//
// # Limits
//
// Control groups bound memory, processes and processor time of all processes of a command together, where this process
// may create control groups. Resource limits bound each process in any case. See [Sandbox.Groups].
//
// # Network
//
// A command has no network, that of the host, or a guarded one: a network namespace in which only a proxy for HTTP
// answers, which this process serves. A program that uses a guarded network begins its main function with
// [handover.Begin].
//
// # End
//
// The command ends with all processes that it started, when it exits, when its context ends, and when this process ends
// in any way. [New] removes what a process that was killed left behind.
package process

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-dev/signalbox/internal/sandbox/handover"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
)

const (
	// Path has the folders in which programs are found.
	Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// nobody is the user id and group id of commands if this process is root.
	nobody = 65534
	// folderMode is the mode of the folder of a command without isolation.
	folderMode = 0o700
	// firstFile is the first file beside input and output.
	firstFile = 3
	// openFiles bounds the open files of each process.
	openFiles = 256
	// endsWithin is how long the output streams of a command that was ended may stay open.
	endsWithin = time.Second
	// gate starts the command in its arguments once it has read a line, which is after the control groups have the
	// process.
	gate = `read -r _ <&3 && exec "$@" 3<&-`
)

// Sandbox executes commands. It is safe for concurrent use.
type Sandbox struct {
	opts       Options
	bubblewrap string // the path of bwrap
	filter     []byte // for seccomp
	groups     *groups
	reason     string // why there are no control groups
}

// New returns a sandbox, after it has removed what earlier processes left behind, and has tried a command. Its error
// says why this host cannot isolate commands.
func New(ctx context.Context, o Options) (*Sandbox, error) {
	s := &Sandbox{opts: o}
	// The files that this process has inherited are not for the commands. It opens others so that they never are.
	if err := unix.CloseRange(firstFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("keeping the open files from programs: %w", err)
	}
	if o.Isolation == Bubblewrap {
		var err error
		if s.bubblewrap, err = exec.LookPath("bwrap"); err != nil {
			return nil, errors.New("bubblewrap is not installed: there is no program bwrap")
		}
		if s.filter, err = filter(); err != nil {
			return nil, err
		}
	}
	var err error
	if s.groups, err = openGroups(); err != nil {
		s.reason = err.Error()
	}
	removeLeft()
	if err := s.Try(ctx, "/bin/sh", "-c", ":"); err != nil {
		return nil, err
	}
	return s, nil
}

// Groups reports whether control groups bound the commands, and why not.
func (s *Sandbox) Groups() (bool, string) { return s.groups != nil, s.reason }

// Isolation returns the isolation of commands.
func (s *Sandbox) Isolation() string { return s.opts.Isolation }

// Has reports whether commands find a program of this name.
func (s *Sandbox) Has(name string) bool {
	for folder := range strings.SplitSeq(Path, ":") {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// Try executes a command that should succeed. Its error has what the command printed.
func (s *Sandbox) Try(ctx context.Context, command ...string) error {
	const most = 4 << 10
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	printed := output.New(most, cancel)
	code, err := s.Run(ctx, Program{Command: command, Output: printed})
	if err == nil && code != 0 {
		_, stderr := printed.Text()
		err = fmt.Errorf("exit code %d: %s", code, strings.TrimSpace(stderr))
	}
	if err != nil {
		return fmt.Errorf("trying %s in the isolation %s: %w", command[0], s.opts.Isolation, err)
	}
	return nil
}

// Run executes a command until it ends, and returns its exit code, which is 128 and the number of a signal that ended
// it. The error of a command that did not end by itself is the cause of ctx or [ErrMemory]; others describe why it was
// not executed.
func (s *Sandbox) Run(ctx context.Context, p Program) (int, error) {
	for _, text := range slices.Concat(p.Command, slices.Collect(maps.Keys(p.Environment)),
		slices.Collect(maps.Values(p.Environment))) {
		if len(text) > maxArgument {
			return 0, ErrTooLarge
		}
		if strings.Contains(text, "\x00") {
			return 0, ErrZero // also because zero bytes separate the options of bubblewrap
		}
	}
	if n := p.Limits.Network; s.opts.Isolation == None && n != "" && n != limit.Host {
		return 0, ErrNetwork
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	x := &execution{sandbox: s, program: p, limits: s.opts.Limits.Within(p.Limits), name: owner.Unique()}
	defer x.close()
	if err := x.prepare(ctx); err != nil {
		return 0, fmt.Errorf("preparing the isolation of a program: %w", err)
	}
	code, err := x.run(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause
	}
	if err == nil && code != 0 && x.group.outOfMemory() {
		return 0, ErrMemory
	}
	return code, err
}

// execution is one command that runs.
type execution struct {
	sandbox *Sandbox
	program Program
	limits  limit.Limits // those of the sandbox and of the program
	name    string       // of its control group, its folder, and in the environment of its first process
	group   *group       // nil: without control groups
	folder  string       // of a command without isolation
	files   []*os.File
	status  *os.File // what bubblewrap reports
	cmd     *exec.Cmd
	// network is the connection to the process that prepares a guarded network; nil without one. stopProxy ends its proxy.
	network   *net.UnixConn
	stopProxy func()
}

// prepare makes the control groups, the files and the command line.
func (x *execution) prepare(ctx context.Context) (err error) {
	s := x.sandbox
	if s.groups != nil {
		if x.group, err = s.groups.make(x.name, x.limits); err != nil {
			return err
		}
	}
	environment := map[string]string{"PATH": Path, "LANG": "C.UTF-8", "HOME": work}
	guarded := s.opts.Isolation == Bubblewrap && x.limits.Network == limit.Guarded
	if guarded && s.opts.Proxy == nil {
		return errors.New("this sandbox has no proxy for a guarded network")
	}
	if guarded {
		maps.Copy(environment, handover.Variables())
	}
	maps.Copy(environment, x.program.Environment)
	if s.opts.Isolation == None {
		x.folder = filepath.Join(os.TempDir(), x.name)
		if err := os.Mkdir(x.folder, folderMode); err != nil {
			return fmt.Errorf("making the folder of a program: %w", err)
		}
		if _, given := x.program.Environment["HOME"]; !given {
			environment["HOME"] = x.folder
		}
	}
	start, wait, err := os.Pipe()
	if err != nil {
		return err
	}
	x.files = append(x.files, start, wait)
	command := []string{"-c", gate, "sh"}
	extra := []*os.File{start}
	if s.opts.Isolation == Bubblewrap {
		report, err := x.bubblewrap(environment)
		if err != nil {
			return err
		}
		extra = append(extra, report...)
		command = append(command, s.bubblewrap, "--args", "4", "--seccomp", "5", "--json-status-fd", "6", "--")
	}
	command = slices.Concat(command, x.resourceLimits(ctx), x.program.Command)
	x.cmd = exec.Command("/bin/sh", command...) //nolint:gosec,noctx // run ends it
	x.cmd.Env = []string{"PATH=" + Path, marker + "=" + x.name}
	if s.opts.Isolation == None {
		x.cmd.Env = x.cmd.Env[1:]
		for name, value := range environment {
			x.cmd.Env = append(x.cmd.Env, name+"="+value)
		}
	}
	x.cmd.Dir, x.cmd.ExtraFiles, x.cmd.WaitDelay = cmp.Or(x.folder, "/"), extra, endsWithin
	x.cmd.Stdin = strings.NewReader(x.program.Stdin)
	x.cmd.Stdout, x.cmd.Stderr = x.program.Output.Stdout(), x.program.Output.Stderr()
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if s.opts.Isolation == Bubblewrap && os.Geteuid() == 0 {
		x.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if guarded {
		theirs, err := x.guard()
		if err != nil {
			return err
		}
		x.cmd.ExtraFiles = append(x.cmd.ExtraFiles, theirs)
	}
	return nil
}

// bubblewrap returns the files that bubblewrap reads and writes: its arguments, the filter, and its report.
func (x *execution) bubblewrap(environment map[string]string) ([]*os.File, error) {
	arguments, err := memory("arguments", []byte(strings.Join(x.arguments(environment), "\x00")+"\x00"))
	if err != nil {
		return nil, err
	}
	x.files = append(x.files, arguments)
	rules, err := memory("filter", x.sandbox.filter)
	if err != nil {
		return nil, err
	}
	x.files = append(x.files, rules)
	if x.status, err = memory("status", nil); err != nil {
		return nil, err
	}
	x.files = append(x.files, x.status)
	return []*os.File{arguments, rules, x.status}, nil
}

// memory returns a file in memory, which is read from its begin.
func memory(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt(content, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// run executes the command until it ends or ctx ends. The thread that starts it must not end before it: the signal of
// its death would end the command.
func (x *execution) run(ctx context.Context) (int, error) {
	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := x.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		err := x.cmd.Wait()
		code, err := x.code(err)
		done <- result{code, err}
	}()
	if err := <-started; err != nil {
		return 0, fmt.Errorf("starting the isolation of a program: %w", err)
	}
	stop := context.AfterFunc(ctx, x.kill)
	defer stop()
	err := x.serve(ctx)
	if err == nil {
		err = x.begin()
	}
	if err != nil {
		x.kill()
		<-done
		return 0, err
	}
	r := <-done
	return r.code, r.err
}

// begin moves the command into its control group, and lets it begin: it waits for a line.
func (x *execution) begin() error {
	if err := x.group.add(x.cmd.Process.Pid); err != nil {
		return err
	}
	if _, err := x.files[1].WriteString("\n"); err != nil {
		return fmt.Errorf("starting a program: %w", err)
	}
	return nil
}

// kill ends the command with all of its processes. Those in bubblewrap end with it.
func (x *execution) kill() {
	_ = x.cmd.Process.Kill()
	_ = unix.Kill(-x.cmd.Process.Pid, unix.SIGKILL)
	x.group.kill()
}

// code returns the exit code of the command that has ended.
func (x *execution) code(err error) (int, error) {
	state := x.cmd.ProcessState
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, fmt.Errorf("executing a program: %w", err)
	}
	code := state.ExitCode()
	if status, is := state.Sys().(syscall.WaitStatus); is && status.Signaled() {
		code = 128 + int(status.Signal()) //nolint:mnd // as shells do
	}
	if x.status == nil {
		return code, nil
	}
	return x.reported(code)
}

// reported returns the exit code that bubblewrap has reported. Without one the isolation was not made, or was ended.
func (x *execution) reported(code int) (int, error) {
	size, err := x.status.Seek(0, 2) //nolint:mnd // the end
	if err != nil {
		return 0, err
	}
	report := make([]byte, size)
	if _, err := x.status.ReadAt(report, 0); err != nil && size > 0 {
		return 0, err
	}
	for line := range bytes.Lines(report) {
		var members struct {
			Code *int `json:"exit-code"`
		}
		if json.Unmarshal(line, &members) == nil && members.Code != nil {
			return *members.Code, nil
		}
	}
	if x.group.outOfMemory() {
		return 0, ErrMemory
	}
	_, stderr := x.program.Output.Text()
	return 0, fmt.Errorf("bubblewrap ended with the code %d: %s", code, strings.TrimSpace(stderr))
}

// close removes what the command had.
func (x *execution) close() {
	if x.stopProxy != nil {
		x.stopProxy()
	}
	for _, f := range x.files {
		_ = f.Close()
	}
	x.group.remove()
	if x.folder != "" {
		killMarked(func(name string) bool { return name == x.name })
		_ = os.RemoveAll(x.folder) // the next process tries again
	}
}
