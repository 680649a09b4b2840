package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/process"
)

const (
	shellProgram  = "/bin/sh"
	pythonProgram = "python3"
)

// withGlobals is a script in Python that executes its first argument with the members of its second one, a JSON object,
// as global variables.
const withGlobals = `import json, sys
code, names = sys.argv[1:3]
sys.argv = ["-c"] + sys.argv[3:]
names = {"__name__": "__main__", **json.loads(names)}
exec(compile(code, "<string>", "exec"), names)`

// command returns the command line of a shell command or of a script in Python.
func command(r flow.ProgramRequest) []string {
	switch {
	case r.Kind == string(dsl.ProgramShell):
		return append([]string{shellProgram, "-c", r.Code, "sh"}, r.Arguments...)
	case len(r.Named) > 0:
		names, err := json.Marshal(r.Named)
		if err != nil {
			panic(fmt.Sprintf("encode arguments: %v", err)) // they were decoded
		}
		return []string{pythonProgram, "-c", withGlobals, r.Code, string(names)}
	}
	return append([]string{pythonProgram, "-c", r.Code}, r.Arguments...)
}

// environment returns the variables of a program. Arguments in the form of older releases are variables of it, unless
// it is a script in Python, which has them as its own.
func environment(r flow.ProgramRequest) map[string]string {
	variables := make(map[string]string, len(r.Environment)+len(r.Named))
	for name, value := range r.Named {
		if r.Language == string(dsl.Python) {
			break
		}
		variables[name] = string(value)
		if bytes.HasPrefix(value, []byte(`"`)) {
			var text string
			if json.Unmarshal(value, &text) == nil {
				variables[name] = text
			}
		}
	}
	maps.Copy(variables, r.Environment)
	return variables
}

// commands execute shell commands and scripts in Python on this host. They implement [sandbox].
type commands struct{ on *process.Sandbox }

func (c *commands) run(ctx context.Context, r flow.ProgramRequest, printed *output.Streams) (int, error) {
	line := command(r)
	if line[0] == pythonProgram && !c.on.Has(pythonProgram) {
		return 0, &refusal{"the host of the runner has no program " + pythonProgram + " in " + process.Path}
	}
	code, err := c.on.Run(ctx, process.Program{
		Command: line, Environment: environment(r), Stdin: r.Stdin, Limits: r.Limits, Output: printed,
	})
	if errors.Is(err, process.ErrTooLarge) || errors.Is(err, process.ErrZero) || errors.Is(err, process.ErrNetwork) {
		return 0, &refusal{err.Error()}
	}
	return code, err
}

// refusal is the error of a program that this runner does not execute.
type refusal struct{ reason string }

// Error implements error.
func (e *refusal) Error() string { return e.reason }
