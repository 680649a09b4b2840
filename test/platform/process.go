package platform

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopBudget is how long a process may take to stop after SIGTERM before it is killed.
const stopBudget = Patience

// Log holds a process's output. It is safe to read while the process writes.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Process is a child process.
type Process struct {
	Name   string
	Stdout *Log
	Stderr *Log

	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// StartProcess starts a binary. The process is stopped at the end of t, and its log is shown if t has failed.
func StartProcess(t T, name, binary string, env, args []string) *Process {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = Environment(t, env...)
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = childAttributes()
	p := StartCommand(t, name, cmd)
	if slices.Contains([]string{os.Getenv("SIGNALBOX_BIN"), os.Getenv("SIGNALBOX_SERVER_BIN")}, binary) {
		t.Cleanup(func() {
			if found := formattedDuration(p.Stderr.String()); found != "" {
				t.Errorf("%s logs a duration as text, not as a number of seconds: %s", name, found)
			}
		})
	}
	return p
}

// formattedDuration returns the first attribute in a log that is a duration as Go formats it; "" if there is none.
func formattedDuration(log string) string {
	const duration = `(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h))+`
	inText, inJSON := regexp.MustCompile(` [\w.-]+=`+duration+`(?: |$)`), regexp.MustCompile(`"[\w.-]+":"`+duration+`"`)
	quoted := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	for line := range strings.Lines(log) {
		switch {
		case strings.HasPrefix(line, "{"):
			if found := inJSON.FindString(line); found != "" {
				return found
			}
		case strings.HasPrefix(line, "time="):
			// A quoted text, such as an error, may contain a duration.
			if found := inText.FindString(quoted.ReplaceAllString(strings.TrimSpace(line), "")); found != "" {
				return found
			}
		}
	}
	return ""
}

// StartCommand is StartProcess for a command that needs further settings, such as another user. It sets the command's
// outputs only.
func StartCommand(t T, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Name: name, Stdout: &Log{}, Stderr: &Log{}, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s (%s): %v", name, cmd, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the exit code is read from the process' state
	}()
	t.Cleanup(func() { p.end(t) })
	return p
}

func (p *Process) end(t T) {
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	if _, ok := p.WaitFor(stopBudget); !ok {
		p.Kill()
		t.Errorf("%s did not stop within %s of SIGTERM", p.Name, stopBudget)
	}
	if t.Failed() {
		t.Logf("--- %s ---\n%s", p.Name, tail(p.Output(), 12<<10))
	}
}

// Environment returns the environment of a child process: PATH, a home folder of its own, and extra as NAME=value.
func Environment(t T, extra ...string) []string {
	home := t.TempDir()
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "NO_COLOR=1"}, extra...)
}

// Path returns PATH=… with the folder of the full binary first, so that scripts call the binary under test as
// signalbox.
func Path(t T) string { return "PATH=" + filepath.Dir(Binary(t)) + ":" + os.Getenv("PATH") }

// Output returns all output so far: stderr, then stdout.
func (p *Process) Output() string { return p.Stderr.String() + p.Stdout.String() }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// WaitFor waits until the process has ended and returns its exit code, or false after the limit. A process ended by a
// signal has -1.
func (p *Process) WaitFor(limit time.Duration) (int, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), true
	case <-timer.C:
		return 0, false
	}
}

// Kill ends the process with SIGKILL, as a crash of the machine would, and waits until it has ended.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Interrupt sends SIGINT, as Ctrl-C does.
func (p *Process) Interrupt() { p.signal(os.Interrupt) }

// Terminate sends SIGTERM, as a service manager does.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Freeze suspends the process with SIGSTOP; Thaw continues it.
func (p *Process) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw continues a frozen process.
func (p *Process) Thaw() { p.signal(syscall.SIGCONT) }

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// signal sends a signal. It does nothing if the process has ended.
func (p *Process) signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintf(os.Stderr, "signal %s: %v\n", p.Name, err)
	}
}

func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return "… " + s[len(s)-limit:]
}
