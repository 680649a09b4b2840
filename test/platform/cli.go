package platform

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

// cliLimit bounds one command that has no limit of its own. It is far longer than any command may take.
const cliLimit = 90 * time.Second

// Exit codes of the CLI.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitInterrupted = 130
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRefused     = 4
	ExitUnavailable = 5
	ExitNotSignedIn = 6
	ExitForbidden   = 7
	ExitConflict    = 8
	ExitRunFailed   = 10
	ExitRunCanceled = 11
	ExitRunTimedOut = 12
)

// Binary returns the path of the full binary.
func Binary(t T) string { return binary(t, "SIGNALBOX_BIN") }

// ServerBinary returns the path of the lean binary.
func ServerBinary(t T) string { return binary(t, "SIGNALBOX_SERVER_BIN") }

func binary(t T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: run `make test`, or `make build` and set it to the binary's absolute path", variable)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v; run `make build`", variable, err)
	}
	return path
}

// Result is the output and the exit code of a command.
type Result struct {
	Args   []string
	Stdout string
	Stderr string
	Code   int
}

func (r Result) String() string {
	return "signalbox " + strings.Join(r.Args, " ") + "\nstdout: " + r.Stdout + "\nstderr: " + r.Stderr
}

// JSON decodes stdout.
func (r Result) JSON(t T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		t.Fatalf("stdout is not the JSON expected: %v\n%s", err, r)
	}
}

// Command is one call of a binary. It has no server address unless Args or Env name one.
type Command struct {
	Binary string
	Args   []string
	Env    []string
	Stdin  string
	Dir    string
	Limit  time.Duration // 0: cliLimit
}

// Run runs a command until it exits.
func Run(t T, c Command) Result {
	t.Helper()
	limit := cmp.Or(c.Limit, cliLimit)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Binary, c.Args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Stdin, cmd.Dir = &stdout, &stderr, strings.NewReader(c.Stdin), c.Dir
	cmd.Env = Environment(t, c.Env...)
	cmd.SysProcAttr = childAttributes()
	err := cmd.Run()
	r := Result{Args: c.Args, Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("did not end within %s: %s", limit, r)
	case err != nil && !errors.As(err, &exit):
		t.Fatalf("run %s: %v", c.Binary, err)
	}
	return r
}

// CLI runs a command of the full binary against a server.
func (s *Server) CLI(t T, args ...string) Result {
	t.Helper()
	return s.CLIWithInput(t, "", args...)
}

// CLIWithInput is CLI with a standard input.
func (s *Server) CLIWithInput(t T, stdin string, args ...string) Result {
	t.Helper()
	return Run(t, Command{Binary: Binary(t), Args: args, Env: s.ClientEnv(), Stdin: stdin})
}

// ClientEnv returns the environment variables that make the CLI use this server.
func (s *Server) ClientEnv() []string { return []string{"SIGNALBOX_ADDRESS=" + s.Address} }
