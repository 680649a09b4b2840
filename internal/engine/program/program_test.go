package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/program"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
)

// outcomes records the outcomes of programs.
type outcomes struct {
	mu   sync.Mutex
	list []string
	seen chan string
}

func (o *outcomes) Ended(_ context.Context, kind, outcome string, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, kind+" "+outcome)
	select {
	case o.seen <- outcome:
	default:
	}
}

func newExecutor(t *testing.T, o program.Options) (*program.Executor, *outcomes) {
	t.Helper()
	measured := &outcomes{seen: make(chan string, 1)}
	o.Memory, o.Output, o.Metrics = 16<<20, 1<<10, measured
	if o.Commands == nil {
		o.Unisolated = "none here"
	}
	e, err := program.New(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(t.Context()))) })
	return e, measured
}

func script(code string) flow.ProgramRequest {
	return flow.ProgramRequest{Project: "shop", Kind: "script", Language: "js", Code: code, Timeout: time.Minute}
}

// failure returns the error that the task gets.
func failure(t *testing.T, err error) dsl.Error {
	t.Helper()
	app, is := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, is, "%v", err)
	require.True(t, app.NonRetryable())
	var f flow.CallFailure
	require.NoError(t, app.Details(&f))
	return f.Error
}

func TestScript(t *testing.T) {
	t.Parallel()
	e, measured := newExecutor(t, program.Options{Programs: 2, ScriptTime: time.Minute})
	r := script(`
		console.log(process.argv[2], n, process.env.A, process.stdin.read()); console.error("e"); process.exit(4)`)
	r.Arguments, r.Named = []string{"a"}, map[string]json.RawMessage{"n": []byte("7")}
	r.Environment, r.Stdin = map[string]string{"A": "b"}, "in"
	result, err := e.Execute(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, flow.ProgramResult{Code: 4, Stdout: "a 7 b in\n", Stderr: "e\n"}, result)
	require.Equal(t, []string{"script failed"}, measured.list)
}

func TestProgramsThatAreEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request      flow.ProgramRequest
		kind, detail string
		status       int
		outcome      string
	}{
		"time": {
			script(`for (;;);`),
			dsl.ErrorTypeTimeout, "the script did not end within 200ms", 408, "script stopped",
		},
		"output": {
			script(`for (;;) console.log("x")`),
			dsl.ErrorTypeRuntime, "the script printed more than 1024 bytes", 500, "script stopped",
		},
		"python": {
			flow.ProgramRequest{Kind: "script", Language: "python", Code: "1"},
			dsl.ErrorTypeConfiguration, "does not execute the python script: it has no isolation for it: none here", 400, "script refused",
		},
		"shell": {
			flow.ProgramRequest{Kind: "shell", Code: "ls"},
			dsl.ErrorTypeConfiguration, "does not execute the shell command", 400, "shell refused",
		},
		"container": {
			flow.ProgramRequest{Kind: "container"},
			dsl.ErrorTypeConfiguration, "does not execute the container", 400, "container refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if name == "time" {
				limit = 200 * time.Millisecond
			}
			e, measured := newExecutor(t, program.Options{Programs: 1, ScriptTime: limit})
			_, err := e.Execute(t.Context(), c.request)
			runError := failure(t, err)
			require.Equal(t, c.kind, runError.Type)
			require.Equal(t, c.status, runError.Status)
			require.Contains(t, runError.Detail, c.detail)
			require.Equal(t, []string{c.outcome}, measured.list)
		})
	}
}

// A canceled program is interrupted, which is no result: the interpreter decides whether another runner executes it.
func TestCanceledProgramIsInterrupted(t *testing.T) {
	t.Parallel()
	e, measured := newExecutor(t, program.Options{Programs: 1, ScriptTime: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := e.Execute(ctx, script(`for (;;);`))
	app, is := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, is)
	require.Equal(t, flow.InterruptedError, app.Type())
	require.Equal(t, []string{"script interrupted"}, measured.list)
}

// A program waits for a free place, and is not started once it is canceled.
func TestProgramsWaitForAPlace(t *testing.T) {
	t.Parallel()
	e, measured := newExecutor(t, program.Options{Programs: 1, ScriptTime: time.Minute})
	detached := script(`for (;;);`)
	detached.Detached = true
	_, err := e.Execute(t.Context(), detached)
	require.NoError(t, err, "it has started, and is not awaited")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = e.Execute(ctx, script(`1`))
	require.ErrorContains(t, err, "the program was not started")
	require.Empty(t, measured.list)
	require.NoError(t, e.Stop(t.Context()))
	require.Equal(t, "interrupted", <-measured.seen, "a stop ends it")
}

func TestDetachedProgramThatIsNotSupported(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, program.Options{Programs: 1, ScriptTime: time.Minute})
	_, err := e.Execute(t.Context(), flow.ProgramRequest{Kind: "shell", Detached: true})
	require.Equal(t, dsl.ErrorTypeConfiguration, failure(t, err).Type)
}

// What a program has printed before it was ended is in its error.
func TestLogOfAProgramThatIsEnded(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, program.Options{Programs: 1, ScriptTime: 500 * time.Millisecond})
	r := script(`console.log("begun"); console.error("careful"); for (;;);`)
	r.Step, r.Task, r.Attempt = 7, "build", 2
	_, err := e.Execute(t.Context(), r)
	app, is := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, is, "%v", err)
	var f flow.CallFailure
	require.NoError(t, app.Details(&f))
	require.Equal(t, 408, f.Error.Status)
	require.Equal(t, &flow.ProgramLog{Step: 7, Task: "build", Attempt: 2, Stdout: flow.LogStream{Text: "begun\n"},
		Stderr: flow.LogStream{Text: "careful\n"}}, f.Log)
}

// The limits of a project hold beside those of the runner.
func TestLimitsOfAProject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits limit.Limits
		code   string
		status int
		detail string
	}{
		"time":   {limit.Limits{Time: 200 * time.Millisecond}, `for (;;);`, 408, "did not end within 200ms"},
		"output": {limit.Limits{Output: 100}, `console.log("x".repeat(200))`, 500, "printed more than 100 bytes"},
		"memory": {limit.Limits{Memory: 8 << 20}, `try { new Array(9 << 20).fill(1) } catch (e) { throw "memory" }`, 0, "memory"},
		"none":   {limit.Limits{Memory: 1 << 40, Output: 1 << 40, Time: time.Hour}, `console.log("x".repeat(200))`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := newExecutor(t, program.Options{Programs: 1, ScriptTime: time.Minute})
			r := script(c.code)
			r.Limits = c.limits
			result, err := e.Execute(t.Context(), r)
			if c.status == 0 {
				require.NoError(t, err)
				require.Contains(t, result.Stderr, c.detail)
				return
			}
			f := failure(t, err)
			require.Equal(t, c.status, f.Status)
			require.Contains(t, f.Detail, c.detail)
		})
	}
}
