// Package golden_test compares all outputs of the command line with files: on a terminal of 200 columns and one of 60,
// and piped, as a table and as a wide table.
//
//	go test ./internal/cli/golden -update
//
// writes the files. Review their difference as you review code: they are what operators read.
package golden_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/config"
)

var update = flag.Bool("update", false, "write the golden files")

// now is the time of all outputs.
func now() time.Time { return time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC) }

// example is a command line with what the API answers. FILE in args is a file with the content of file, HOME the user's
// home.
type example struct {
	name, line string
	answers    answers
	stdin      string
	asks       bool     // a person is asked on the terminals
	file       string   // content of FILE
	tests      string   // content of the test file beside FILE
	args       []string // after the words of the line: those that contain spaces
	contexts   string   // content of the file of contexts
	program    string   // the name by which the program is called
	suffix     string   // what the server appends to all texts
}

// terminal is a buffer that commands take for a terminal.
type terminal struct {
	bytes.Buffer
	columns int
}

func (t *terminal) Columns() int { return t.columns }

// surroundings are where an output is read.
type surroundings struct {
	name    string
	columns int // 0: a pipe
	wide    bool
}

func everywhere() []surroundings {
	return []surroundings{{"terminal, 200 columns", 200, false}, {"terminal, 60 columns", 60, false}, {"pipe", 0, false},
		{"pipe, -o wide", 0, true}}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, e := range examples() {
		require.False(t, names[e.name], "two examples have the name %s", e.name)
		names[e.name] = true
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			got := "$ signalbox " + e.line
			for _, arg := range e.args {
				got += fmt.Sprintf(" %q", arg)
			}
			got += "\n"
			var before string
			for _, where := range everywhere() {
				if where.wide && !hasWide(e.line) {
					continue
				}
				text := e.run(t, where)
				shown := text
				if text == before {
					shown = "(the same)\n"
				}
				before = text
				got += "\n## " + where.name + "\n" + shown
			}
			require.NotContains(t, got, noAnswer)
			compare(t, filepath.Join("testdata", e.name+".golden"), got)
		})
	}
	files, err := filepath.Glob("testdata/*.golden")
	require.NoError(t, err)
	for _, file := range files {
		require.True(t, names[strings.TrimSuffix(filepath.Base(file), ".golden")], "no example writes %s; delete it", file)
	}
}

// hasWide reports whether a line leaves the choice of the format open, for a command that has one.
func hasWide(line string) bool {
	cmd, _, err := cli.New(cli.Options{}).Find(strings.Fields(line))
	return err == nil && cmd.Flags().Lookup("output") != nil && !strings.Contains(line, " -o ") &&
		!strings.Contains(line, "--jq")
}

// run returns the streams of one invocation and its exit code. Escapes are made visible.
func (e example) run(t *testing.T, where surroundings) string {
	t.Helper()
	home := t.TempDir()
	address := serve(t, e.answers, e.suffix)
	file := filepath.Join(home, "order.yaml")
	if e.file != "" {
		require.NoError(t, os.WriteFile(file, []byte(e.file), 0o600))
	}
	if e.tests != "" {
		require.NoError(t, os.WriteFile(filepath.Join(home, "order.test.yaml"), []byte(e.tests), 0o600))
	}
	if e.contexts != "" {
		require.NoError(t, os.MkdirAll(filepath.Join(home, "signalbox"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, "signalbox", "config.yaml"), []byte(e.contexts), 0o600))
	}
	args := strings.Fields(strings.ReplaceAll(e.line, "FILE", file))
	args = append(args, e.args...)
	if where.wide {
		args = append(args, "-o", "wide")
	}
	var out, errs bytes.Buffer
	options := cli.Options{
		Version: "1.2.3", Program: e.program, Stdin: strings.NewReader(e.stdin), Stdout: &out, Stderr: &errs, Now: now,
		Env: config.Environment{"XDG_CONFIG_HOME": home, "SIGNALBOX_ADDRESS": address},
	}
	if where.columns > 0 {
		screen, notes := &terminal{columns: where.columns}, &terminal{columns: where.columns}
		options.Stdout, options.Stderr, options.Interactive = screen, notes, e.asks
		code := cli.Run(t.Context(), options, args)
		out, errs = screen.Buffer, notes.Buffer
		return e.report(out.String(), errs.String(), code, address, home)
	}
	code := cli.Run(t.Context(), options, args)
	return e.report(out.String(), errs.String(), code, address, home)
}

// Commands in hints begin with the name by which the program was called: they can be copied where it is not on the
// PATH.
func TestHintsBeginWithTheNameOfTheProgram(t *testing.T) {
	t.Parallel()
	literal := regexp.MustCompile(`(?:^|[^/\w])signalbox [a-z-]+`)
	hints := 0
	for _, e := range examples() {
		e.program = "./bin/signalbox"
		text := e.run(t, surroundings{})
		for _, answer := range e.answers {
			if words := strings.SplitN(answer, " ", 3); strings.HasPrefix(answer, "!") {
				text = strings.ReplaceAll(text, words[2], "") // the server does not have the name
			}
		}
		hints += strings.Count(text, "./bin/signalbox ")
		require.NotRegexp(t, literal, text, e.name)
	}
	require.Greater(t, hints, 15)
}

func (e example) report(out, errs string, code int, address, home string) string {
	text := out
	if errs != "" {
		text += "-- stderr\n" + errs
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\\\n" // the line is not ended
	}
	if code != 0 {
		text += fmt.Sprintf("-- exit code %d\n", code)
	}
	return strings.NewReplacer(address, "127.0.0.1:8080", home, "/home/ada", "\x1b", "␛", "\r", "␍").Replace(text)
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "write it with -update")
	require.Equal(t, string(want), got, "if the change is meant, write it with -update, and review the file")
}

// exceptions are the commands without an example, with the reason.
func exceptions() map[string]string {
	return map[string]string{
		"signalbox completion bash":       "Cobra generates the script",
		"signalbox completion fish":       "Cobra generates the script",
		"signalbox completion powershell": "Cobra generates the script",
		"signalbox completion zsh":        "Cobra generates the script",
		"signalbox language-server":       "it prints messages of the protocol; internal/languageserver tests them",
		"signalbox workflow schema":       "it prints a schema, which dsl/vocabulary and dsl/workflowtest test",
		"signalbox version":               "it prints the release of Go and the platform of the build; another test reads it",
	}
}

// Every command has an example of its output.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	missing := func(examples []example) []string {
		root := cli.New(cli.Options{})
		shown := map[string]bool{}
		for _, e := range examples {
			cmd, _, err := root.Find(strings.Fields(e.line))
			require.NoError(t, err, e.line)
			shown[cmd.CommandPath()] = true
		}
		var without []string
		for _, name := range leaves(root) {
			if reason, excepted := exceptions()[name]; excepted {
				require.False(t, shown[name], "%s has an example: delete the exception (%s)", name, reason)
			} else if !shown[name] {
				without = append(without, name)
			}
		}
		return without
	}
	require.Empty(t, missing(examples()), "commands without an example in examples()")
	require.Contains(t, missing(nil), "signalbox run list", "the check finds a command without an example")
	all := leaves(cli.New(cli.Options{}))
	for name := range exceptions() {
		require.True(t, slices.Contains(all, name), "there is no command %s: delete the exception", name)
	}
}

// leaves are the names of the commands that do something.
func leaves(cmd *cobra.Command) []string {
	if !cmd.HasSubCommands() {
		return []string{cmd.CommandPath()}
	}
	var all []string
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}
