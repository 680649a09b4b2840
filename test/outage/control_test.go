package outage_test

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// One run has an execution in Temporal and one was never started there: the controls of the first are
// refused and change nothing, those of the other work without Temporal.
func TestControlsWhileTemporalIsDown(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store, queueModeFlags(100, "1h")...)
		workflow := x.Publish(t, platform.Document("controlled", "  - rest: {wait: {minutes: 10}}\n"))
		known := x.Start(t, workflow, "{}").GetId()
		x.Await(t, known, soon, "waiting")
		x.stopTemporal(t)
		before := x.Run(t, known)
		for _, control := range []string{"cancel", "terminate", "pause", "unpause"} {
			_, err := x.Control(t.Context(), control, known, "while it is away")
			reason, code := platform.Reason(err)
			require.Equal(t, []any{"ENGINE_UNAVAILABLE", connect.CodeUnavailable}, []any{reason, code}, control)
			require.Equal(t, before.GetSequence(), x.Run(t, known).GetSequence(), control)
		}
		r := x.CLI(t, "run", "terminate", known, "--reason", "while it is away")
		require.Equal(t, platform.ExitUnavailable, r.Code, r.String())
		require.Contains(t, r.Stderr, "cannot be used")

		row := platform.ReadControls(t)["queued: engine"]
		for _, control := range []string{"pause", "unpause"} {
			queued := x.Start(t, workflow, "{}")
			require.Equal(t, "engine", queued.GetQueuedReason())
			_, err := x.Control(t.Context(), control, queued.GetId(), "too early")
			reason, _ := platform.Reason(err)
			require.Equal(t, row[control], reason, control)
		}
		for control, status := range map[string]string{"cancel": "canceled", "terminate": "terminated"} {
			require.Equal(t, "yes", row[control])
			ended, err := x.Control(t.Context(), control, x.Start(t, workflow, "{}").GetId(), "never mind")
			require.NoError(t, err, control)
			require.Equal(t, status, ended.GetStatus())
			require.Contains(t, ended.GetCancelReason()+ended.GetTerminateReason(), "never mind")
		}
		replay, err := x.Control(t.Context(), "replay", known, "once more")
		require.NoError(t, err)
		require.Equal(t, "engine", replay.GetQueuedReason())

		x.temporal = x.temporal.Restart(t)
		x.waitForReady(t)
		require.Equal(t, known, x.Await(t, replay.GetId(), soon, "waiting").GetReplayOf())
		for control, status := range map[string]string{"cancel": "canceled", "terminate": "terminated"} {
			id := map[string]string{"cancel": known, "terminate": replay.GetId()}[control]
			_, err := x.Control(t.Context(), control, id, "it is back")
			require.NoError(t, err, control)
			x.Await(t, id, soon, status)
		}
	})
}
