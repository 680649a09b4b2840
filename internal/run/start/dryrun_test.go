package start_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// A dry run gives the answer of the start, and leaves nothing behind.
func TestDryRunOfAStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.DryRun, req.Workflow, req.RequestID = true, "hello", "once"
	r, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, []any{"", "examples/hello", "1.0.0", run.Queued, "", ""},
		[]any{r.ID, r.Workflow, r.Version, r.Status, r.QueuedReason, string(r.Input)})

	wrong := req
	wrong.Version = "9.0.0"
	_, _, err = b.Start(b.ctx, wrong)
	require.True(t, apperror.Is(err, apperror.VersionNotFound), "%v", err)
	_, err = b.workflows.SetPaused(b.ctx, here, "hello", true, "bad data")
	require.NoError(t, err)
	_, _, err = b.Start(b.ctx, req)
	require.True(t, apperror.Is(err, apperror.WorkflowPaused), "%v", err)
	_, err = b.workflows.SetPaused(b.ctx, here, "hello", false, "")
	require.NoError(t, err)

	back := b.away()
	_, _, err = b.Start(b.ctx, req)
	require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
	r, _, err = b.queueing(t, b.store).Start(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, run.QueuedEngine, r.QueuedReason)
	require.Empty(t, b.rows(t))
	require.Empty(t, b.audited(t))
	require.NotContains(t, strings.Join(b.engine.called(), " "), "start")

	back()
	req.DryRun = false
	_, created, err = b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created, "the request ID is free")
	_, _, err = b.Start(b.ctx, wrong)
	require.True(t, apperror.Is(err, apperror.VersionNotFound), "the run of that request ID is no answer to a dry run: %v",
		err)
}

func TestDryRunOfAReplay(t *testing.T) {
	t.Parallel()
	b, s, first := newRedacted(t)
	before := len(b.rows(t))
	req := control.ReplayRequest{
		Project: here, RunID: first.ID, DryRun: true,
		Patch: json.RawMessage(`[{"op":"replace","path":"/name","value":"Bob"}]`)}
	r, created, err := s.Replay(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, []any{"", first.ID, "1.0.0", ""}, []any{r.ID, r.ReplayOf, r.Version, string(r.Input)},
		"the input stays sealed")
	req.Patch = json.RawMessage(`[{"op":"replace","path":"/none/x","value":"Bob"}]`)
	_, _, err = s.Replay(b.ctx, req)
	require.Error(t, err)
	require.Len(t, b.rows(t), before)
}
