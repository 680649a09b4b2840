package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// A batch is found by the beginning of its ID, if no other batch's ID has it.
func TestBatchByPrefixOfID(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.mu.Lock()
	for _, id := range []string{firstID, secondID} {
		a.batches.kept = append(a.batches.kept,
			&signalboxv1.Batch{Id: id, Action: "cancel", Status: "running", Total: 1, Pending: 1})
	}
	a.mu.Unlock()
	require.Equal(t, secondID+"\n", shell.run(t, "batch", "show", "019f5a3c-1", "-o", "name").out.String())
	require.Equal(t, firstID+"\n", shell.run(t, "batch", "pause", "019f5a3c-0", "-o", "name").out.String())
	requireRefusal(t, shell.run(t, "batch", "show", "019f5a3c"), exit.Usage, "several batches", firstID, secondID)
	requireRefusal(t, shell.run(t, "batch", "show", "019f9999"), exit.NotFound, "019f9999")
}

func TestBatchStart(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "batch", "start", "--action", "cancel", "--reason", "stale", "--rate", "2.5", "--request-id", "q",
		"r1", "r2")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "batch-1")
	require.Contains(t, c.out.String(), "2: 2 pending")
	require.Contains(t, c.err.String(), "signalbox batch show batch-1")
	sent := last[*signalboxv1.StartBatchRequest](t, a)
	require.Equal(t, []string{"r1", "r2"}, sent.GetRunIds())
	require.Nil(t, sent.GetFilter())
	require.Equal(t, []string{"default", "cancel", "stale", "q", ""},
		[]string{sent.GetProject(), sent.GetAction(), sent.GetReason(), sent.GetRequestId(), sent.GetVersion()})
	require.InDelta(t, 2.5, sent.GetRate(), 0)

	c = shell.run(t, "batch", "start", "--action", "cancel", "--reason", "stale", "--request-id", "q", "r1", "r2")
	require.Contains(t, c.err.String(), "this batch was started before with the request ID q")

	c = shell.run(t, "batch", "start", "--action", "replay", "--reason", "fixed", "--latest", "--status",
		"failed,timed_out", "--workflow", "shop/order",
		"--version", "1.0.0", "--since", "2026-01-31", "--until", "2026-02-01T00:00:00Z", "--stuck", "any,no_poller",
		"--trigger", "api", "--failure-group", "00aa11bb22cc33dd", "--not-replayed", "--dry-run")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "dry run: would replay 1 run of 2 selected\n", c.err.String())
	require.Regexp(t, `(?m)^RUN_ENDED +1 +run-2$`, c.out.String())
	sent = last[*signalboxv1.StartBatchRequest](t, a)
	f := sent.GetFilter()
	require.Equal(t, []string{"failed", "timed_out"}, f.GetStatuses())
	require.Equal(t, []string{"shop/order", "1.0.0", "latest"},
		[]string{f.GetWorkflow(), f.GetVersion(), sent.GetVersion()})
	require.Equal(t, 24*time.Hour, f.GetUntil().AsTime().Sub(f.GetSince().AsTime()))
	require.Equal(t, []string{"any", "NO_POLLER", "api"}, append(f.GetStuck(), f.GetTrigger()))
	require.Equal(t, "00aa11bb22cc33dd", f.GetFailureGroup())
	require.True(t, f.GetNotReplayed())
	require.True(t, sent.GetDryRun())

	c = shell.run(t, "batch", "start", "--action", "cancel", "--reason", "x", "--all", "--dry-run", "-o", "json")
	require.Contains(t, c.out.String(), `"eligible": 1`)
	require.Zero(t, shell.run(t, "batch", "list", "--status", "running,paused").code)
	require.Equal(t, []string{"running", "paused"}, last[*signalboxv1.ListBatchesRequest](t, a).GetStatuses())
	requireRefusal(t, shell.run(t, "batch", "list", "--status", "open"), exit.Usage, `"open" is not one of`)

	c = shell.run(t, "batch", "start", "--action", "terminate", "--reason", "all of it", "--all", "--expect", "2")
	require.Equal(t, int64(2), last[*signalboxv1.StartBatchRequest](t, a).GetExpectedTotal())
	require.Zero(t, c.code, c.err.String())
	require.NotNil(t, last[*signalboxv1.StartBatchRequest](t, a).GetFilter())
	require.Contains(t, c.out.String(), "all runs")
}

func TestBatchStartRefusals(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	for _, test := range []struct {
		args []string
		part string
	}{
		{[]string{"--reason", "x", "r1"}, "--action"},
		{[]string{"--action", "stop", "--reason", "x", "r1"}, `"stop" is not one of cancel, terminate, replay`},
		{[]string{"--action", "cancel", "r1"}, "--reason is missing"},
		{[]string{"--action", "cancel", "--reason", "x"}, "no runs are given"},
		{[]string{"--action", "cancel", "--reason", "x", "--expect", "1", "r1"}, "leave out --expect"},
		{[]string{"--action", "cancel", "--reason", "x", "--expect", "1", "--dry-run", "--all"}, "leave out --expect"},
		{[]string{"--action", "cancel", "--reason", "x", "--all", "r1"}, "leave out either these or --all"},
		{[]string{"--action", "cancel", "--reason", "x", "--all", "--status", "failed"}, "--all"},
		{[]string{"--action", "cancel", "--reason", "x", "--status", "open"}, `"open" is not one of`},
		{[]string{"--action", "cancel", "--reason", "x", "--since", "soon"}, `"soon" is no time`},
		{[]string{"--action", "replay", "--reason", "x", "--status", "failed", "--version", "latest"}, "give --latest"},
	} {
		requireRefusal(t, shell.run(t, append([]string{"batch", "start"}, test.args...)...), exit.Usage, test.part)
	}
	requireRefusal(t, shell.run(t, "batch", "show", "b", "--status", "failed"), exit.Usage, "--items")
	requireRefusal(t, shell.run(t, "batch", "show", "b", "--items", "--status", "open"), exit.Usage, `"open"`)
	requireRefusal(t, shell.run(t, "batch", "show", "b"), exit.NotFound, "BATCH_NOT_FOUND")
	requireRefusal(t, shell.run(t, "batch", "pause"), exit.Usage, "ID")
}

func TestBatchWait(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.batches.why = "Temporal is away"
	c := shell.run(t, "batch", "start", "--action", "replay", "--reason", "x", "--wait", "r1", "bad")
	require.Equal(t, exit.Failed, c.code)
	require.Contains(t, c.err.String(), "the batch waits: Temporal is away")
	require.Contains(t, c.err.String(),
		"1 of 2 runs failed: signalbox batch show batch-1 --items --status failed lists the reasons")
	require.Contains(t, c.out.String(), "2: 1 succeeded, 1 failed")

	c = shell.run(t, "batch", "show", "batch-1", "--items")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "bad  failed")
	c = shell.run(t, "batch", "show", "batch-1", "--items", "--status", "failed", "-o", "json")
	require.JSONEq(t, `[{"runId":"bad","status":"failed","error":"odd"}]`, c.out.String())
	c = shell.run(t, "batch", "list", "-o", "wide")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "batch-1")
	require.Contains(t, c.out.String(), "replay")
}

func TestBatchControls(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	require.Zero(t, shell.run(t, "batch", "start", "--action", "cancel", "--reason", "x", "r1").code)
	for verb, status := range map[string]string{"pause": "paused", "unpause": "running", "retry": "running"} {
		c := shell.run(t, "batch", verb, "batch-1")
		require.Zero(t, c.code, c.err.String())
		require.Contains(t, c.out.String(), status)
	}
	requireRefusal(t, shell.run(t, "batch", "retry", "no-such"), exit.NotFound, "BATCH_NOT_FOUND")
}
