package integration_test

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The test tries the controls of runs that wait for something outside of themselves: a child, their project's quota of
// steps or runs, or Temporal's confirmation of their start.
func TestControlsOfBlockedRuns(t *testing.T) {
	t.Parallel()
	store, temporal := platform.SQLite(t), platform.StartTemporal(t)
	f := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
	w := &environment{
		Server: platform.StartServer(t, platform.ServerOptions{Temporal: f.Addr(), Store: store}), store: store,
		temporal: temporal,
	}
	forever := w.Publish(t, platform.Document("long", long))
	w.controlsOfParents(t, w.Publish(t, platform.Document("parent", subflow(forever, ""))))

	limitSteps(t, w.Server, "--steps", "5", "--period", "720h")
	steps := w.Publish(t, platform.Document("steps", tasks(50)))
	w.controls(t, "waiting: quota", func() string {
		id := w.Start(t, steps, "").GetId()
		w.awaitHeld(t, id, "quota")
		return id
	})
	limitSteps(t, w.Server, "--steps", "none")

	limitRuns(t, w.Server, "1")
	first := w.Start(t, forever, "").GetId()
	w.awaitHeld(t, first, "timer")
	w.controls(t, "queued: admission", func() string {
		id := w.Start(t, forever, "").GetId()
		require.Equal(t, "admission", w.Run(t, id).GetQueuedReason())
		return id
	})
	cancel(t, w.Server, first)
	limitRuns(t, w.Server, "none")

	w.controlsOfStarts(t, f, forever)
}

// controls tries the controls of runs in a state, each of which begin brings into it.
func (w *environment) controls(t *testing.T, state string, begin func() string) {
	t.Helper()
	row := platform.ReadControls(t)[state]
	require.NotEmpty(t, row, state)
	for _, control := range []string{"pause", "unpause", "cancel", "terminate"} {
		id := begin()
		requireOffered(t, row, w.Run(t, id))
		if row[control] == "yes" {
			requireEffect(t, w.Server, control, id)
			continue
		}
		requireNoEffect(t, w.Server, control, id, row[control])
		requireEffect(t, w.Server, "terminate", id)
	}
}

// controlsOfParents tries the controls of runs that wait for children, which end with them.
func (w *environment) controlsOfParents(t *testing.T, parent string) {
	t.Helper()
	var children []string
	w.controls(t, "waiting: child", func() string {
		id := w.Start(t, parent, "").GetId()
		w.awaitHeld(t, id, "child")
		children = append(children, child(t, w.Server, id).GetId())
		return id
	})
	for _, id := range children {
		w.Await(t, id, soon, "canceled")
	}
}

// controlsOfStarts tries the controls of runs whose start Temporal does not confirm, and which may still arrive there.
func (w *environment) controlsOfStarts(t *testing.T, f *conntest.Frontend, workflow string) {
	t.Helper()
	row := platform.ReadControls(t)["queued: starting"]
	f.Fail("StartWorkflowExecution", serviceerror.NewUnavailable("the history service is away"))
	id := w.Start(t, workflow, "").GetId()
	before := w.Run(t, id)
	require.Equal(t, "starting", before.GetQueuedReason())
	requireOffered(t, row, before)
	for _, control := range []string{"cancel", "terminate", "pause", "unpause"} {
		_, err := w.Control(t.Context(), control, id, "too soon")
		reason, code := platform.Reason(err)
		require.Equal(t, []any{"RUN_STARTING", connect.CodeFailedPrecondition}, []any{reason, code}, control)
	}
	require.Equal(t, []any{"queued", "starting", false},
		[]any{w.Run(t, id).GetStatus(), w.Run(t, id).GetQueuedReason(), w.Run(t, id).GetCancelRequested()})
	f.Clear("StartWorkflowExecution")
	w.awaitHeld(t, id, "timer")
	requireEffect(t, w.Server, "pause", id)
}

// awaitHeld waits until a run waits for something of a kind.
func (w *environment) awaitHeld(t *testing.T, id, kind string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if r := w.Run(t, id); r.GetStatus() != "waiting" || r.GetWaitingKind() != kind {
			return "run " + id + " is " + r.GetStatus() + " " + r.GetQueuedReason() + r.GetWaitingKind() + ", not waiting for " +
				kind
		}
		return ""
	})
}
