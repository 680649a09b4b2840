package program_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/program"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/process"
)

// withCommands returns an executor of shell commands and scripts in Python.
func withCommands(t *testing.T) *program.Executor {
	t.Helper()
	s, err := process.New(t.Context(), process.Options{
		Isolation: process.Bubblewrap, Limits: limit.Limits{Memory: 96 << 20, Processes: 24, Processors: 1, Disk: 1 << 20,
			Network: limit.None},
	})
	if err != nil {
		t.Skip(err)
	}
	e, _ := newExecutor(t, program.Options{Programs: 2, ScriptTime: time.Minute, Commands: s})
	return e
}

func TestCommands(t *testing.T) {
	t.Parallel()
	e := withCommands(t)
	named := map[string]json.RawMessage{"text": []byte(`"t"`), "list": []byte(`[1,2]`)}
	for name, c := range map[string]struct {
		request flow.ProgramRequest
		want    flow.ProgramResult
	}{
		"shell": {
			flow.ProgramRequest{Kind: "shell", Code: `echo "$1-$A-$(cat)"; exit 3`, Arguments: []string{"a b"}, Stdin: "in",
				Environment: map[string]string{"A": "v"}},
			flow.ProgramResult{Code: 3, Stdout: "a b-v-in\n"},
		},
		"shell with named arguments": {
			flow.ProgramRequest{Kind: "shell", Code: `echo $text $list`, Named: named},
			flow.ProgramResult{Stdout: "t [1,2]\n"},
		},
		"python": {
			flow.ProgramRequest{Kind: "script", Language: "python", Code: "import os, sys\nprint(sys.argv[1:], os.environ['A'], " +
				"sys.stdin.read())", Arguments: []string{"a b"}, Stdin: "in", Environment: map[string]string{"A": "v"}},
			flow.ProgramResult{Stdout: "['a b'] v in\n"},
		},
		"python with named arguments": {
			flow.ProgramRequest{Kind: "script", Language: "python", Code: "print(text, sum(list), __name__)", Named: named},
			flow.ProgramResult{Stdout: "t 3 __main__\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.request.Timeout = time.Minute
			result, err := e.Execute(t.Context(), c.request)
			require.NoError(t, err)
			require.Equal(t, c.want, result)
		})
	}
}

func TestCommandsThatAreEnded(t *testing.T) {
	t.Parallel()
	e := withCommands(t)
	for name, c := range map[string]struct {
		request flow.ProgramRequest
		want    dsl.Error
	}{
		"time": {
			flow.ProgramRequest{Kind: "shell", Code: `trap '' TERM; sleep 100`, Timeout: 100 * time.Millisecond},
			dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Program too slow",
				Detail: "the shell command did not end within 100ms"},
		},
		"output": {
			flow.ProgramRequest{Kind: "shell", Code: `while :; do echo x; done`, Timeout: time.Minute},
			dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Output too large",
				Detail: "the shell command printed more than 1024 bytes"},
		},
		"options of bubblewrap": {
			flow.ProgramRequest{Kind: "shell", Code: `ls /host`, Timeout: time.Minute,
				Environment: map[string]string{"A": "b\x00--bind\x00/\x00/host"}},
			dsl.Error{Type: dsl.ErrorTypeConfiguration, Status: 400, Title: "Program refused", Detail: "the runner does " +
				"not execute the shell command: an argument, a variable or the code has a zero byte"},
		},
		"zero byte": {
			flow.ProgramRequest{Kind: "shell", Code: `:`, Arguments: []string{"\x00"}, Timeout: time.Minute},
			dsl.Error{Type: dsl.ErrorTypeConfiguration, Status: 400, Title: "Program refused",
				Detail: "the runner does not execute the shell command: an argument, a variable or the code has a zero byte"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := e.Execute(t.Context(), c.request)
			got := failure(t, err)
			require.Equal(t, c.want, got)
		})
	}
}
