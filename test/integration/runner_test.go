package integration_test

import (
	"fmt"
	"strings"
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
	canceled := s.Start(t, workflow, `{}`).GetId()
	platform.Eventually(t, time.Minute, func() string {
		if len(s.Steps(t, canceled)) == 1 {
			return ""
		}
		return "the program has not been requested"
	})
	require.Zero(t, s.CLI(t, "run", "cancel", canceled, "--reason", "enough").Code)
	s.Await(t, canceled, time.Minute, "canceled")

	runner := runnerOf(t, temporal.Address)
	run := s.Await(t, waiting, time.Minute, "completed")
	require.JSONEq(t, `{"sum": 3, "env": {"MODE": "fast"}}`, run.GetOutput().GetJson())
	_, metrics, err := runner.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, `signalbox_program_ended_total{kind="script",outcome="completed"} 1`)
}

// busy is JavaScript that keeps a script busy.
func busy(milliseconds int) string {
	return fmt.Sprintf("{const end = Date.now() + %d; while (Date.now() < end);}", milliseconds)
}

// without returns that a text lacks a part; empty if it has it.
func without(text, part string) string {
	if strings.Contains(text, part) {
		return ""
	}
	return fmt.Sprintf("%q does not contain %q", text, part)
}

// What a program prints is kept with its attempt, can be read while it runs, and has no sensitive value.
func TestLogsOfPrograms(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t),
		Env: []string{"SIGNALBOX_RUNNER_KINDS=script", "SIGNALBOX_RUNNER_MAX_SCRIPT_TIME=2m"},
	})
	platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.Store{Driver: "sqlite", DSN: "/nowhere/signalbox.db"}, Redis: platform.NoRedis,
		Roles: []string{platform.Runner},
		Env:   []string{"SIGNALBOX_PROJECTS=" + platform.DefaultProject, "SIGNALBOX_RUNNER_MAX_SCRIPT_TIME=2m"},
	})
	lines := func(logs string, wanted ...string) {
		t.Helper()
		for _, line := range wanted {
			require.Contains(t, strings.Split(logs, "\n"), line)
		}
	}

	t.Run("live", func(t *testing.T) {
		t.Parallel()
		id := s.Start(t, s.Publish(t, platform.Document("live", `
  - talk:
      run:
        script:
          language: js
          arguments: ['${ .password }']
          code: |
            console.log("first " + process.argv[2]); console.error("warned")
            `+busy(15_000)+`
            console.log("last")
        return: code`)), `{"password": "planted-secret"}`).GetId()
		platform.Eventually(t, time.Minute, func() string {
			got := s.CLI(t, "run", "logs", id)
			if s.Run(t, id).GetStatus() == "running" && strings.HasPrefix(got.Stdout, "first ") {
				require.NotContains(t, got.Stdout, "last")
				require.NotContains(t, got.Stdout, "planted-secret")
				lines(got.Stderr, "warned")
				return ""
			}
			return "the first line is not there: " + got.Stdout + got.Stderr
		})
		got := s.CLI(t, "run", "logs", id, "1", "--follow")
		require.Zero(t, got.Code, got.Stderr)
		lines(got.Stdout, "last")
		require.Equal(t, 1, strings.Count(got.Stdout, "first "))
		require.NotContains(t, got.Stdout, "planted-secret")
		require.JSONEq(t, `0`, s.Await(t, id, time.Minute, "completed").GetOutput().GetJson())
		exported := s.CLI(t, "run", "export", id)
		require.Contains(t, exported.Stdout, `"logs":[`)
		require.NotContains(t, exported.Stdout, "planted-secret")
	})
	for name, c := range map[string]struct {
		task   string
		status string
		stdout string
		stderr string
	}{
		"failed": {`run: {script: {language: js, code: 'console.error("the reason"); process.exit(3)'}}`, "failed", "", "the reason"},
		"ended by the timeout of its task": {`run: {script: {language: js, code: 'console.log("begun"); for (;;);'}}
      timeout: {after: PT4S}`, "failed", "begun", ""},
		"canceled": {`run: {script: {language: js, code: 'console.log("begun"); for (;;);'}}`, "canceled", "begun", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := s.Start(t, s.Publish(t, platform.Document("logs-"+strings.ReplaceAll(name, " ", "-"), `
  - p:
      `+c.task)), `{}`).GetId()
			if name == "canceled" {
				platform.Eventually(t, time.Minute, func() string { return without(s.CLI(t, "run", "logs", id).Stdout, "begun") })
				require.Zero(t, s.CLI(t, "run", "cancel", id, "--reason", "enough").Code)
			}
			s.Await(t, id, time.Minute, c.status)
			got := s.CLI(t, "run", "logs", id)
			lines(got.Stdout, c.stdout)
			lines(got.Stderr, c.stderr)
		})
	}
}
