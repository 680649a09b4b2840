package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// terminal is a call of the command line from a terminal of 80 columns.
type terminal struct {
	server *platform.Server
	typed  string   // what a person types
	out    *os.File // standard output, if it is not the terminal
	env    []string
}

// run returns all that was written to the terminal, and the exit code.
func (c terminal) run(t *testing.T, args ...string) (screen string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	person, tty, err := pty.Open()
	require.NoError(t, err)
	defer func() { _ = person.Close() }()
	require.NoError(t, pty.Setsize(person, &pty.Winsize{Rows: 24, Cols: 80}))
	cmd := exec.CommandContext(ctx, platform.Binary(t), args...)
	cmd.Env = platform.Environment(t, append(colourful(c.server), c.env...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	if c.out != nil {
		cmd.Stdout = c.out
	}
	require.NoError(t, cmd.Start())
	require.NoError(t, tty.Close())
	_, err = io.WriteString(person, c.typed)
	require.NoError(t, err)
	var shown bytes.Buffer
	if _, err := io.Copy(&shown, person); !errors.Is(err, syscall.EIO) { // a terminal without a program answers so
		require.NoError(t, err)
	}
	_ = cmd.Wait() // the exit code says the same
	require.NoError(t, ctx.Err(), shown.String())
	return shown.String(), cmd.ProcessState.ExitCode()
}

// colourful is an environment in which programs may use colours.
func colourful(s *platform.Server) []string {
	return append(s.ClientEnv(), "TERM=xterm-256color", "NO_COLOR=")
}

// piped is a call without a terminal, in the same environment.
func piped(t *testing.T, s *platform.Server, args ...string) platform.Result {
	t.Helper()
	return platform.Run(t, platform.Command{Binary: platform.Binary(t), Args: args, Env: colourful(s)})
}

// The command line has colours, progress and questions on a terminal, and none of them without one.
func TestTerminal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports the end of a pseudoterminal's program as this test reads it")
	}
	s := sqliteServer.Get(t)
	name := s.Publish(t, platform.Document("terminal", "  - a: {set: {done: true}}\n"))
	s.Await(t, s.Start(t, name, "").GetId(), soon, "completed")
	t.Run("colour", func(t *testing.T) { testColour(t, s, name) })
	t.Run("progress", func(t *testing.T) { testProgress(t, s, name) })
	t.Run("question", func(t *testing.T) { testQuestion(t, s, name) })
}

const escape = "\x1b["

func testColour(t *testing.T, s *platform.Server, name string) {
	list := []string{"run", "list", "--workflow", name}
	screen, code := terminal{server: s}.run(t, list...)
	require.Zero(t, code, screen)
	require.Contains(t, screen, escape)
	require.Contains(t, screen, "completed")
	for _, variable := range []string{"NO_COLOR=1", "TERM=dumb"} {
		screen, code = terminal{server: s, env: []string{variable}}.run(t, list...)
		require.Zero(t, code, screen)
		require.Contains(t, screen, "completed")
		require.NotContains(t, screen, escape, variable)
	}
	without := piped(t, s, list...)
	require.Contains(t, without.Stdout, "completed", without.String())
	require.NotContains(t, without.String(), escape)
}

func testProgress(t *testing.T, s *platform.Server, name string) {
	events := make([]string, 3)
	for i := range events {
		events[i] = fmt.Sprintf(`{"specversion": "1.0", "id": "terminal-%d", "source": "/terminal", "type": "com.example.terminal"}`, i)
	}
	exported := filepath.Join(t.TempDir(), "audit.csv")
	for drawn, args := range map[string][]string{
		"0 of 3 events": {"event", "send", "--file", file(t, "events.json", "["+strings.Join(events, ",")+"]")},
		"0.0 MiB":       {"run", "export", "--workflow", name, "--file", exported},
	} {
		screen, code := terminal{server: s}.run(t, args...)
		require.Zero(t, code, screen)
		require.Contains(t, screen, drawn)
		require.NotContains(t, piped(t, s, args...).String(), drawn)
	}

	out, err := os.Create(exported)
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	export := []string{"audit", "export", "--subject", name} // all tests that share the server add entries
	screen, code := terminal{server: s, out: out}.run(t, export...)
	require.Zero(t, code, screen)
	require.Contains(t, screen, "0.0 MiB")
	content, err := os.ReadFile(exported)
	require.NoError(t, err)
	require.Contains(t, string(content), "workflow.publish")
	require.NotContains(t, string(content), escape)
	screen, code = terminal{server: s}.run(t, export...)
	require.Zero(t, code)
	require.Contains(t, screen, "workflow.publish")
	require.NotContains(t, screen, "MiB", "the entries are on the terminal themselves")
}

func testQuestion(t *testing.T, s *platform.Server, name string) {
	const question = "[y/N]"
	screen, code := terminal{server: s, typed: "n\n"}.run(t, "workflow", "delete", name)
	require.Equal(t, platform.ExitFailed, code, screen)
	require.Contains(t, screen, question)
	require.Contains(t, screen, "nothing was changed")
	require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "show", name).Code)

	screen, code = terminal{server: s, typed: "y\n"}.run(t, "workflow", "delete", name)
	require.Zero(t, code, screen)
	require.Contains(t, screen, question)
	require.Equal(t, platform.ExitNotFound, s.CLI(t, "workflow", "show", name).Code)

	other := s.Publish(t, platform.Document("terminal-piped", "  - a: {set: {done: true}}\n"))
	deleted := piped(t, s, "workflow", "delete", other)
	require.Equal(t, platform.ExitOK, deleted.Code, "a script is not asked: %s", deleted)
	require.NotContains(t, deleted.String(), question)
}
