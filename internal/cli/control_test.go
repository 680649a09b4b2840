package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

func TestRunControls(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	c := shell.run(t, "run", "pause", "run-1", "--reason", "look at it")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "paused")
	require.Empty(t, c.err.String())
	c = shell.run(t, "run", "unpause", "run-1", "-o", "json")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), `"status": "running"`)
	c = shell.run(t, "run", "pause", "run-1", "--reason", "no worker")
	require.Zero(t, c.code)
	require.Contains(t, c.err.String(), "requested; the run shows it once a worker has handled it")

	requireRefusal(t, shell.run(t, "run", "terminate", "run-1"), exit.Usage, "--reason is required")
	c = shell.run(t, "run", "terminate", "run-1", "--reason", "runaway", "-o", "json")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), `"terminateReason": "runaway"`)
	for _, args := range [][]string{
		{"cancel", "run-1"}, {"terminate", "run-1", "--reason", "x"}, {"pause", "run-1"}, {"unpause", "run-1"}} {
		requireRefusal(t, shell.run(t, append([]string{"run"}, args...)...), exit.Refused, args[0]+` run "run-1"`,
			"[RUN_ENDED]")
		args[1] = "none"
		requireRefusal(t, shell.run(t, append([]string{"run"}, args...)...), exit.NotFound, "[RUN_NOT_FOUND]")
	}
}

func TestReplayCommand(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	requireRefusal(t, shell.run(t, "run", "replay", "run-1"), exit.Usage, "--reason is required")
	requireRefusal(t, shell.run(t, "run", "replay", "run-1", "--reason", "x", "--input", "{}", "--patch", "[]"),
		exit.Usage, "both given")
	requireRefusal(t, shell.run(t, "run", "replay", "run-1", "--reason", "x", "--patch", "nowhere.json"), exit.Usage,
		"--patch")
	requireRefusal(t, shell.run(t, "run", "replay", "none", "--reason", "x"), exit.NotFound, "[RUN_NOT_FOUND]")

	c := shell.run(t, "run", "replay", "run-1", "--reason", "once more", "-o", "json")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), `"replayOf": "run-1"`)
	request := last[*signalboxv1.ReplayRunRequest](t, a)
	require.Nil(t, request.GetInput(), "unedited sends nothing")
	require.Nil(t, request.GetPatch())
	require.Empty(t, request.GetVersion())
	require.NotEmpty(t, request.GetRequestId(), "a repeated attempt must be recognisable")
	require.Equal(t, "once more", request.GetReason())

	shell.stdin = `[{"op": "remove", "path": "/a"}]`
	require.Zero(t, shell.run(t, "run", "replay", "run-1", "--reason", "x", "--patch", "-", "--version", "latest",
		"--request-id", "q").code)
	request = last[*signalboxv1.ReplayRunRequest](t, a)
	require.Equal(t, []string{shell.stdin, "latest", "q"},
		[]string{request.GetPatch().GetJson(), request.GetVersion(), request.GetRequestId()})
	require.Contains(t, shell.run(t, "run", "replay", "run-1", "--reason", "x", "--request-id", "q").err.String(),
		"this run was started before with the request ID q")
	require.Zero(t, shell.run(t, "run", "replay", "run-1", "--reason", "x", "--input", "{}").code)
	require.Equal(t, "{}", last[*signalboxv1.ReplayRunRequest](t, a).GetInput().GetJson())
	require.Contains(t, shell.run(t, "run", "show", "run-1").out.String(), "replays")

	requireRefusal(t, shell.run(t, "run", "replay", "run-1", "--dry-run", "--wait"), exit.Usage,
		"starts nothing to wait for")
	requireRefusal(t, shell.run(t, "run", "start", "hello", "--dry-run", "--wait"), exit.Usage,
		"starts nothing to wait for")
	c = shell.run(t, "run", "replay", "run-1", "--dry-run")
	require.Contains(t, c.err.String(), "dry run: would start a run of")
	require.Empty(t, c.out.String())
	require.True(t, last[*signalboxv1.ReplayRunRequest](t, a).GetDryRun())
	require.Contains(t, shell.run(t, "run", "start", "hello", "--dry-run", "-o", "json").out.String(), `"workflow"`)
	require.True(t, last[*signalboxv1.StartRunRequest](t, a).GetDryRun())

	waiting := shell.start(t.Context(), "run", "replay", "run-1", "--reason", "x", "--request-id", "w", "--wait")
	eventually(t, waiting, "run running")
	a.end(t, "run-7", "failed", nil)
	<-waiting.done
	require.Equal(t, exit.RunFailed, waiting.code, waiting.err.String())
}

func TestExportCommand(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	c := shell.run(t, "run", "export", "run-1")
	require.Equal(t, []any{0, "{\n\"format\":\"signalbox.run/1\"\n}\n", ""}, []any{c.code, c.out.String(), c.err.String()})
	requireRefusal(t, shell.run(t, "run", "export", "none"), exit.NotFound, `export run "none"`, "[RUN_NOT_FOUND]")
	requireRefusal(t, shell.run(t, "run", "export"), exit.Usage, "nothing to export", "--all")
	requireRefusal(t, shell.run(t, "run", "export", "--all", "--status", "failed"), exit.Usage, "--all", "--status")
	requireRefusal(t, shell.run(t, "run", "export", "run-1", "--status", "failed"), exit.Usage,
		"--status chooses among runs")
	requireRefusal(t, shell.run(t, "run", "export", "--format", "xml"), exit.Usage, `"xml" is neither csv nor json`)
	requireRefusal(t, shell.run(t, "run", "export", "--status", "odd"), exit.Usage, "odd")

	c = shell.run(t, "run", "export", "--all")
	require.Equal(t, "id,status\n", c.out.String())
	file := filepath.Join(t.TempDir(), "runs.csv")
	c = shell.run(t, "run", "export", "--status", "failed,canceled", "--workflow", "hello", "--trigger", "replay",
		"--failure-group", "00aa11bb22cc33dd", "--format", "csv", "--file", file)
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.err.String(), "written to "+file)
	request := last[*signalboxv1.ExportRunsRequest](t, a)
	require.Equal(t, []string{"failed", "canceled"}, request.GetFilter().GetStatuses())
	require.Equal(t, []string{"hello", "replay", "csv", "00aa11bb22cc33dd"},
		[]string{request.GetFilter().GetWorkflow(), request.GetFilter().GetTrigger(), request.GetFormat(),
			request.GetFilter().GetFailureGroup()})
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "id,status\n", string(kept))

	requireRefusal(t, shell.run(t, "run", "export", "--workflow", "hello", "--version", "broken", "--file", file),
		exit.Unavailable, "the database is away")
	names, err := filepath.Glob(filepath.Dir(file) + "/*")
	require.NoError(t, err)
	require.Equal(t, []string{file}, names, "half a file is none")
	requireRefusal(t, shell.run(t, "run", "export", "--all", "--file", "/nowhere/x"), exit.Usage,
		`"/nowhere/x" cannot be written`)
}
