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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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
	// interrupt is Ctrl-C or SIGTERM: how the command is ended once it blocks.
	interrupt string
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // for Ctrl-C
	require.NoError(t, cmd.Start())
	require.NoError(t, tty.Close())
	_, err = io.WriteString(person, c.typed)
	require.NoError(t, err)
	if c.interrupt != "" {
		c.end(t, cmd, person)
	}
	var shown bytes.Buffer
	if _, err := io.Copy(&shown, person); !errors.Is(err, syscall.EIO) { // a terminal without a program answers so
		require.NoError(t, err)
	}
	_ = cmd.Wait() // the exit code says the same
	require.NoError(t, ctx.Err(), shown.String())
	return shown.String(), cmd.ProcessState.ExitCode()
}

// end interrupts a command when it blocks, and requires that it ends within a second.
func (c terminal) end(t *testing.T, cmd *exec.Cmd, person *os.File) {
	t.Helper()
	// What the command does until it blocks takes processor time; then it takes none.
	used := func() string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		require.NoError(t, err)
		return strings.Join(strings.Fields(string(stat))[13:15], " ")
	}
	last, quiet := "", 0
	platform.Eventually(t, soon, func() string {
		now := used()
		if quiet++; now != last {
			last, quiet = now, 0
		}
		if quiet < 20 {
			return "the command does not block"
		}
		return ""
	})
	if c.interrupt == "Ctrl-C" {
		_, err := person.Write([]byte{3})
		require.NoError(t, err)
	} else {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	}
	// A second is 100 ticks of this process, which take longer where the processors are busy.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ticks := 0; ; ticks++ {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil || strings.Fields(string(state))[2] == "Z" {
			return
		}
		require.Less(t, ticks, 100, "a second after %s the command has not ended", c.interrupt)
		<-tick.C
	}
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
	t.Run("interrupts", func(t *testing.T) { testInterrupts(t, s, name) })
	t.Run("text of others", func(t *testing.T) { testTextOfOthers(t, s) })
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

// Text from a workflow does not steer the terminal, in any format, and an export to a file has the bytes.
func testTextOfOthers(t *testing.T, s *platform.Server) {
	const hostile = "\x1b]52;c;QQ==\a\u009b2J\u202egnp\u200b"
	name := s.Publish(t, platform.Document("terminal-others",
		`  - a: {raise: {error: {type: 'https://example.com/e', status: 500, title: "\e]52;c;QQ==\a\x9b2J\u202Egnp\u200B"}}}`+
			"\n"))
	run := s.Await(t, s.Start(t, name, "").GetId(), soon, "failed").GetId()
	own := strings.NewReplacer(escape+"2m", "", escape+"31m", "", escape+"0m", "", "\r\n", "")
	for _, args := range [][]string{
		{"run", "show", run}, {"run", "show", run, "-o", "yaml"}, {"run", "show", run, "-o", "json"},
		{"run", "show", run, "--jq", ".error.title"},
		{"run", "list", "--workflow", name}, {"run", "steps", run}, {"run", "watch", run}, {"run", "export", run},
		{"workflow", "show", name, "--source"},
		{"run", "export", "--workflow", name}, {"run", "export", "--workflow", name, "--format", "json"},
	} {
		screen, _ := terminal{server: s}.run(t, args...)
		require.Contains(t, screen, "]52;c", args)
		require.Regexp(t, `^[ -~…]*$`, own.Replace(screen), args)
	}
	exported := piped(t, s, "run", "export", "--workflow", name)
	require.Contains(t, exported.Stdout, hostile, "CSV in a file has the exact text")
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

// neverBlock are the commands that may ask or read, but block nowhere on the platform of this test, and why.
func neverBlock() map[string]string {
	return map[string]string{
		"restore check":         "it asks, by the same function, only where the database and Temporal differ",
		"system adopt-temporal": "it asks, by the same function, only where the server uses another Temporal than the runs",
	}
}

// Ctrl-C and SIGTERM end a command within a second while it asks, reads the terminal, or waits for the other end of a
// FIFO.
func testInterrupts(t *testing.T, s *platform.Server, name string) {
	run := s.Start(t, s.Publish(t, platform.Document("terminal-waits", "  - w: {wait: PT1H}\n")), "").GetId()
	unwritten, unread := filepath.Join(t.TempDir(), "fifo"), filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, errors.Join(syscall.Mkfifo(unwritten, 0o600), syscall.Mkfifo(unread, 0o600)))
	require.Equal(t, platform.ExitOK, s.CLI(t, "view", "save", "terminal", "--status", "failed").Code)
	blocking := [][]string{
		{"batch start", "--action", "terminate", "--workflow", "terminal-waits", "--reason", "test"},
		{"context delete", "local"},
		{"event send", "--file", "-"},
		{"event send", "--type", "t", "--source", "/s", "--data", "-"},
		{"function delete", "price:1.0.0"},
		{"function publish", "price:1.0.0", "-"},
		{"language-server"},
		{"run export", run, "--file", unread},
		{"run replay", run, "--reason", "test", "--input", "-"},
		{"run replay", run, "--reason", "test", "--patch", "-"},
		{"run start", name, "--input", "-"},
		{"run start", "terminal-waits", "--wait"},
		{"run watch", run},
		{"token revoke", "k5x2m7qdw3a4ebfz"},
		{"view delete", "terminal"},
		{"webhook delete", "terminal"},
		{"workflow delete", name},
		{"workflow diff", "-"},
		{"workflow eval", ".a", "--input", "-"},
		{"workflow graph", "-"},
		{"workflow publish", "-"},
		{"workflow run", file(t, "terminal.yaml", platform.Document("terminal-run", "  - a: {set: {done: true}}\n")),
			"--input", "-"},
		{"workflow save", "-"},
		{"workflow stop", "terminal-waits", "--reason", "test"},
		{"workflow validate", "-"},
		{"workflow validate", unwritten},
	}
	for command := range askingOrReading(t) {
		_, never := neverBlock()[command]
		require.True(t, never || slices.ContainsFunc(blocking, func(args []string) bool { return args[0] == command }),
			"signalbox %s asks or reads standard input: add it to the commands of this test", command)
	}
	for _, args := range blocking {
		for _, how := range []string{"Ctrl-C", "SIGTERM"} {
			t.Run(strings.Join(args, " ")+" "+how, func(t *testing.T) {
				t.Parallel()
				c := terminal{server: s, interrupt: how}
				if args[0] == "context delete" {
					c.env = []string{"XDG_CONFIG_HOME=" + t.TempDir()}
					_, code := terminal{server: s, env: c.env}.run(t, "context", "set", "local", "--address", s.Address)
					require.Zero(t, code)
				}
				screen, code := c.run(t, append(strings.Fields(args[0]), args[1:]...)...)
				require.Equal(t, platform.ExitInterrupted, code, screen)
			})
		}
	}
}

// askingOrReading are the commands of the reference that have the flag --yes or name standard input.
func askingOrReading(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	commands, command := map[string]bool{}, ""
	for line := range strings.Lines(string(page)) {
		if heading, is := strings.CutPrefix(line, "### signalbox "); is {
			command = strings.TrimSpace(heading)
		}
		if strings.HasPrefix(line, "| `-y, --yes`") || strings.Contains(line, "- for standard input") {
			commands[command] = true
		}
	}
	require.Greater(t, len(commands), 10)
	return commands
}
