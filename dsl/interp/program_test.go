package interp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

func TestProgramIsRequestedWithEvaluatedExpressions(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - js:
      run:
        script:
          language: javascript
          code: console.log(n)
          stdin: '${ . }'
          arguments: {n: '${ .n }', list: [1]}
          environment: {N: '${ .n }', FLAG: true}
  - sh:
      run: {shell: {command: 'echo $1', arguments: ['${ {a: .} }', b], stdin: '${ null }'}}
      metadata: {signalbox.repeat: allowed}
      timeout: {after: {seconds: 30}}
  - box:
      run:
        container:
          image: '${ "alpine:" + . }'
          ports: {8080: 80}
          volumes: {/data: '${ "/" + . }'}
          lifetime: {cleanup: eventually, after: PT1M}
        await: false`), `{"n": 5}`)
	w.ended = interp.Result{Value: interp.ProgramResult{Stdout: "3.20"}}
	w.completes(`"3.20"`)
	require.Len(t, w.programs, 3)
	js, sh, box := w.programs[0], w.programs[1], w.programs[2]
	require.Equal(t, &interp.Program{
		Kind: dsl.ProgramScript, Language: dsl.JavaScript, Code: "console.log(n)", Stdin: `{"n":5}`,
		Named: map[string]any{"n": 5, "list": []any{1}}, Environment: map[string]string{"N": "5", "FLAG": "true"},
	}, js.Program)
	require.False(t, js.Once, "a script without effects may be repeated")
	require.Equal(t, &interp.Program{
		Kind: dsl.ProgramShell, Code: "echo $1", Arguments: []string{`{"a":"3.20"}`, "b"},
	}, sh.Program)
	require.False(t, sh.Once, "the task allows it")
	require.False(t, sh.Deadline.IsZero())
	require.Equal(t, &interp.Container{
		Image: "alpine:3.20", Ports: map[string]string{"8080": "80"}, Volumes: map[string]string{"/data": "/3.20"},
		PullPolicy: dsl.PullIfNotPresent, Cleanup: dsl.CleanupEventually, After: time.Minute,
	}, box.Program.Container)
	require.True(t, box.Once)
	require.False(t, box.Awaited)
	require.NotEqual(t, js.Key, sh.Key)
	require.Len(t, w.step("/do/0/js").Attempts, 1)
}

func TestProgramOutput(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"stdout": `"out\n"`, "stderr": `"err"`, "code": "0", "none": "null",
		"all": `{"code": 0, "stdout": "out\n", "stderr": "err"}`,
	} {
		w := newDriver(t, document(`do: [{p: {run: {shell: {command: x}, return: `+what+`}}}]`), `{}`)
		w.ended = interp.Result{Value: interp.ProgramResult{Stdout: "out\n", Stderr: "err"}}
		w.completes(want)
	}
}

func TestProgramWithExitCode(t *testing.T) {
	t.Parallel()
	failed := interp.Result{Value: interp.ProgramResult{Code: 3, Stdout: "some", Stderr: "no such file\n"}}
	for _, what := range []string{"stdout", "stderr", "none"} {
		w := newDriver(t, document(`do: [{p: {run: {shell: {command: x}, return: `+what+`}}}]`), `{}`)
		w.ended = failed
		runError := w.fails()
		require.Equal(t, dsl.Error{
			Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Program failed", Instance: "/do/0/p",
			Detail: "the shell ended with exit code 3: no such file",
		}, runError)
	}
	w := newDriver(t, document(`do: [{p: {run: {shell: {command: x}, return: code}}}]`), `{}`)
	w.ended = failed
	w.completes(`3`)
}

func TestProgramErrors(t *testing.T) {
	t.Parallel()
	for definition, detail := range map[string]string{
		`command: '${ .n }'`:                     "want a string, got a number",
		`command: x, arguments: '${ .n }'`:       "run.shell.arguments must give an array, got a number",
		`command: x, environment: {A: '${ . }'}`: "run.shell.environment.A must be a string, got an object",
	} {
		w := newDriver(t, document(`do: [{p: {run: {shell: {`+definition+`}}}}]`), `{"n": 5}`)
		runError := w.fails()
		require.Equal(t, dsl.ErrorTypeExpression, runError.Type)
		require.Contains(t, runError.Detail, detail, definition)
		require.Empty(t, w.programs)
	}
}
