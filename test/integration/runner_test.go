package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// runnerOf starts a process with the role of runners alone. Its database does not exist, and is not needed.
func runnerOf(t *testing.T, temporal string, settings ...string) *platform.Server {
	t.Helper()
	return platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal, Store: platform.Store{Driver: "sqlite", DSN: "/nowhere/signalbox.db"}, Redis: platform.NoRedis,
		Roles: []string{platform.Runner}, Env: append(settings, "SIGNALBOX_PROJECTS="+platform.DefaultProject, "SIGNALBOX_TEST_HIDDEN=hidden"),
	})
}

// Programs are refused until the project permits them, wait for a runner with a verdict that names it, and are executed
// by a process that sees nothing but Temporal.
func TestRunnerExecutesPermittedPrograms(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Env: []string{"SIGNALBOX_RUNS_STUCK_AFTER=5s"},
	})
	workflow := s.Publish(t, platform.Document("program", `
  - sum:
      run:
        script:
          language: js
          code: |
            console.log(JSON.stringify({sum: process.argv.slice(2).reduce((a, n) => a + Number(n), 0), env: process.env}))
          arguments: ['1', '2']
          environment: {MODE: fast}
      output: {as: fromjson}`))
	refused := s.Await(t, s.Start(t, workflow, `{}`).GetId(), time.Minute, "failed")
	require.EqualValues(t, 403, refused.GetError().GetStatus())
	require.Contains(t, refused.GetError().GetDetail(), "signalbox project set default --runners script")

	require.Zero(t, s.CLI(t, "project", "set", platform.DefaultProject, "--runners", "script").Code)
	waiting := s.Start(t, workflow, `{}`).GetId()
	platform.Eventually(t, 2*time.Minute, func() string {
		v := s.Run(t, waiting).GetStuck()
		if v.GetCode() == "NO_RUNNER" {
			require.Contains(t, v.GetDetail(), "signalbox.runner-default")
			return ""
		}
		return fmt.Sprintf("the verdict is %q", v.GetCode())
	})
	runner := runnerOf(t, temporal.Address)
	run := s.Await(t, waiting, time.Minute, "completed")
	require.JSONEq(t, `{"sum": 3, "env": {"MODE": "fast"}}`, run.GetOutput().GetJson())
	_, metrics, err := runner.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, `signalbox_program_ended_total{kind="script",outcome="completed"} 1`)
}

// A script whose runner is killed is executed again by another one, and the lost attempt is recorded.
func TestScriptOfALostRunnerIsExecutedAgain(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Env: []string{"SIGNALBOX_RUNNER_KINDS=script"},
	})
	first := runnerOf(t, temporal.Address)
	id := s.Start(t, s.Publish(t, platform.Document("slow", `
  - compute:
      run: {script: {language: js, code: 'const end = Date.now() + 8000; while (Date.now() < end); console.log("done")'}}`)),
		`{}`).GetId()
	platform.Eventually(t, time.Minute, func() string {
		for _, step := range s.Steps(t, id) {
			if len(step.GetAttempts()) == 1 && time.Since(step.GetAttempts()[0].GetStartTime().AsTime()) > 3*time.Second {
				return ""
			}
		}
		return "the program has not begun"
	})
	first.Kill()
	runnerOf(t, temporal.Address)
	run := s.Await(t, id, 2*time.Minute, "completed")
	require.JSONEq(t, `"done\n"`, run.GetOutput().GetJson())
	require.Len(t, s.Steps(t, id)[0].GetAttempts(), 2)
}
