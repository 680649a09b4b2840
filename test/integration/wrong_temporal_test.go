package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const leftAlone = "are left alone"

// serverAt starts a server with a database and a Temporal.
func serverAt(t *testing.T, store platform.Store, temporal *platform.Temporal) *environment {
	t.Helper()
	return &environment{
		Server: platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store}), store: store,
		temporal: temporal,
	}
}

func (w *environment) end(t *testing.T) {
	t.Helper()
	w.Terminate()
	_, ended := w.WaitFor(soon)
	require.True(t, ended)
}

func (w *environment) reconciler(t *testing.T) *signalboxv1.Reconciler {
	t.Helper()
	res, err := w.System.GetStatus(t.Context(), connect.NewRequest(&signalboxv1.GetStatusRequest{}))
	require.NoError(t, err)
	return res.Msg.GetReconciler()
}

// awaitPass waits until a comparison has ended whose error, if any, contains what.
func (w *environment) awaitPass(t *testing.T, after time.Time, what string) {
	t.Helper()
	platform.Eventually(t, 2*agreed, func() string {
		r := w.reconciler(t)
		if r.GetLastTime().AsTime().After(after) && strings.Contains(r.GetError(), what) &&
			(what != "") == (r.GetError() != "") {
			return ""
		}
		return fmt.Sprintf("the last comparison: %v", r)
	})
}

// compare compares rows and Temporal by an operator's command.
func (w *environment) compare(t *testing.T, dry bool) *signalboxv1.ReconcileResponse {
	t.Helper()
	res, err := w.System.Reconcile(t.Context(), connect.NewRequest(&signalboxv1.ReconcileRequest{DryRun: dry}))
	require.NoError(t, err)
	return res.Msg
}

// A server that is restarted with the address of another Temporal fails none of the runs in the correct one.
func TestServerWithWrongTemporalFailsNoRun(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		home, other := platform.StartTemporal(t), platform.StartTemporal(t)
		w := serverAt(t, store, home)
		long := w.Publish(t, platform.Document("long", waits(40)))
		waiting := w.Publish(t, platform.Document("stays", waits(3600)))
		short := w.Publish(t, platform.Document("short", hello))
		goesOn, leftBehind := w.Start(t, long, "").GetId(), w.Start(t, waiting, "").GetId()
		w.awaitRow(t, soon, long, goesOn, "waiting")
		w.awaitRow(t, soon, waiting, leftBehind, "waiting")
		w.awaitPass(t, time.Time{}, "")
		w.end(t)

		// By mistake: the runs stay open, and every surface reports it.
		w = serverAt(t, store, other)
		begun := time.Now()
		w.awaitPass(t, begun, home.Address)
		require.Contains(t, w.reconciler(t).GetError(), "2 open runs were left alone")
		require.Contains(t, w.reconciler(t).GetError(), other.Address)
		require.Equal(t, 1, strings.Count(w.Output(), leftAlone), w.Output())
		for _, dry := range []bool{true, false} {
			done := w.compare(t, dry)
			require.Equal(t, []int64{2, 0}, []int64{done.GetWithheld(), done.GetTotal()})
			require.Contains(t, done.GetWithheldBecause(), "Point temporal.address")
		}
		w.cannotStart(t, short, "This server uses another Temporal than 2 open runs")
		w.cannotEnd(t, goesOn, home.Address, other.Address)
		require.Equal(t, "waiting", w.row(t, long, goesOn).GetStatus())
		require.Equal(t, "waiting", w.row(t, waiting, leftBehind).GetStatus())
		w.end(t)

		// Back: the runs continue as before.
		w = serverAt(t, store, home)
		w.awaitRow(t, 3*agreed, long, goesOn, "completed")
		require.Equal(t, "waiting", w.row(t, waiting, leftBehind).GetStatus())
		require.NotContains(t, w.Output(), leftAlone)
		w.Await(t, w.Start(t, short, "").GetId(), soon, "completed")
		w.end(t)

		// Permanently: the open runs are terminated, and new runs work at once.
		w = serverAt(t, store, other)
		w.awaitPass(t, time.Now().Add(-time.Second), home.Address)
		w.cannotStart(t, short, "This server uses another Temporal than 1 open run")
		ended, err := w.Control(t.Context(), "terminate", leftBehind, "moved")
		require.NoError(t, err)
		require.Equal(t, "terminated", ended.GetStatus())
		require.Contains(t, ended.GetTerminateReason(),
			"moved (the execution was not reached: it was not known to Temporal at "+other.Address)
		require.Contains(t, ended.GetTerminateReason(), home.Address)
		platform.Eventually(t, soon, func() string { return failure(w.TryStart(t.Context(), short, "")) })
		require.Zero(t, w.compare(t, false).GetWithheld())
		kept := w.Start(t, waiting, "").GetId()
		w.awaitRow(t, soon, waiting, kept, "waiting")
		// This Temporal now has the runs: the former one would be the wrong one.
		require.Zero(t, w.compare(t, false).GetWithheld())
		w.end(t)
		w = serverAt(t, store, home)
		w.awaitPass(t, time.Now().Add(-time.Second), other.Address)
		require.Equal(t, "waiting", w.row(t, waiting, kept).GetStatus())
	})
}

func failure(_ *signalboxv1.Run, err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// cannotStart requires that starts are refused with the title, which every surface has.
func (w *environment) cannotStart(t *testing.T, workflow, title string) {
	t.Helper()
	for range 3 {
		_, err := w.TryStart(t.Context(), workflow, "")
		reason, code := platform.Reason(err)
		require.Equal(t, []any{"CONTRACT_MISMATCH", connect.CodeFailedPrecondition}, []any{reason, code})
		require.ErrorContains(t, err, title+": ")
	}
	platform.Eventually(t, soon, func() string {
		res, err := w.System.GetStatus(t.Context(), connect.NewRequest(&signalboxv1.GetStatusRequest{}))
		require.NoError(t, err)
		for _, d := range res.Msg.GetDependencies() {
			if d.GetName() == "placement" && d.GetTitle() == title {
				return ""
			}
		}
		return fmt.Sprintf("the status has no such title: %v", res.Msg.GetDependencies())
	})
	connection, err := w.System.GetConnection(t.Context(), connect.NewRequest(&signalboxv1.GetConnectionRequest{}))
	require.NoError(t, err)
	require.Equal(t, title, connection.Msg.GetMismatch())
	require.Contains(t, w.CLI(t, "system", "status").Stdout, title)
	require.Contains(t, w.CLI(t, "problem", "list").Stdout, title)
	_, body, err := w.Get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Contains(t, body, title)
}

// An administrator adopts another Temporal while runs are open. They read as being there, and continue when it is used
// again.
func TestAdoptedTemporal(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		home, other := platform.StartTemporal(t), platform.StartTemporal(t)
		w := serverAt(t, store, home)
		waiting := w.Publish(t, platform.Document("stays", waits(60)))
		short := w.Publish(t, platform.Document("short", hello))
		left := w.Start(t, waiting, "").GetId()
		w.awaitRow(t, soon, waiting, left, "waiting")
		w.end(t)

		w = serverAt(t, store, other)
		platform.Eventually(t, soon, func() string {
			if _, err := w.TryStart(t.Context(), short, ""); err != nil &&
				strings.Contains(err.Error(), "another Temporal than 1 open run") {
				return ""
			}
			return "the server has not reached its Temporal"
		})
		dry := w.CLI(t, "system", "adopt-temporal", "--dry-run")
		for _, part := range []string{home.Address, other.Address, "1 open run of project " + platform.DefaultProject} {
			require.Contains(t, dry.Stdout, part)
		}
		adopt := func(address string) error {
			_, err := w.System.AdoptTemporal(t.Context(),
				connect.NewRequest(&signalboxv1.AdoptTemporalRequest{Address: address, Namespace: "default", Reason: "lost"}))
			return err
		}
		require.ErrorContains(t, adopt(home.Address), "this server is connected to Temporal at "+other.Address)
		require.NoError(t, adopt(other.Address))
		w.Await(t, w.Start(t, short, "").GetId(), soon, "completed")
		require.Contains(t, w.CLI(t, "audit", "list", "--project", "-", "--action", "system.adopt_temporal").Stdout, "lost")
		platform.Eventually(t, soon, func() string {
			r := w.row(t, waiting, left)
			if r.GetStuck().GetCode() == "IN_ANOTHER_TEMPORAL" && strings.Contains(r.GetStuck().GetDetail(), home.Address) {
				return ""
			}
			return fmt.Sprintf("the run reads %v", r.GetStuck())
		})
		for range 3 {
			done := w.compare(t, false)
			require.Zero(t, done.GetWithheld()+done.GetTotal(), "the run is neither missing nor in question: %v", done)
		}
		w.cannotEnd(t, left, home.Address, other.Address)
		require.Equal(t, "waiting", w.row(t, waiting, left).GetStatus())
		kept := w.Start(t, waiting, "").GetId()
		w.awaitRow(t, soon, waiting, kept, "waiting")
		w.end(t)

		// Back: the run of the other one is left there in its turn, and the first goes on.
		w = serverAt(t, store, home)
		w.awaitPass(t, time.Now().Add(-time.Second), other.Address)
		w.cannotStart(t, short, "This server uses another Temporal than 1 open run")
		require.NoError(t, adopt(home.Address))
		w.awaitRow(t, 3*agreed, waiting, left, "completed")
		platform.Eventually(t, soon, func() string {
			if code := w.row(t, waiting, kept).GetStuck().GetCode(); code != "IN_ANOTHER_TEMPORAL" {
				return "the other run reads " + code
			}
			return ""
		})
		ended, err := w.Control(t.Context(), "terminate", kept, "left")
		require.NoError(t, err)
		require.Contains(t, ended.GetTerminateReason(), "the run was left in Temporal at "+other.Address)
	})
}

// A server that uses another Temporal than the runs, none of which is open, starts runs at once.
func TestTemporalWithoutOpenRunsIsReplaced(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		home, other := platform.StartTemporal(t), platform.StartTemporal(t)
		w := serverAt(t, store, home)
		short := w.Publish(t, platform.Document("short", hello))
		w.Await(t, w.Start(t, short, "").GetId(), soon, "completed")
		w.end(t)
		w = serverAt(t, store, other)
		platform.Eventually(t, soon, func() string {
			r, err := w.TryStart(t.Context(), short, "")
			if reason, _ := platform.Reason(err); err != nil {
				require.Equal(t, "ENGINE_UNAVAILABLE", reason, "it may not be connected yet: %v", err)
				return err.Error()
			}
			w.Await(t, r.GetId(), soon, "completed")
			return ""
		})
	})
}

// cannotEnd requests the end of a run that is in another Temporal, alone and in a batch.
func (w *environment) cannotEnd(t *testing.T, id, home, other string) {
	t.Helper()
	for _, control := range []string{"cancel", "pause"} {
		_, err := w.Control(t.Context(), control, id, "astray")
		reason, code := platform.Reason(err)
		require.Equal(t, []any{"RUN_ELSEWHERE", connect.CodeFailedPrecondition}, []any{reason, code})
		require.ErrorContains(t, err, "is not known to Temporal at "+other)
		require.ErrorContains(t, err, " in Temporal at "+home)
	}
	b := startBatch(t, w.Server, &signalboxv1.StartBatchRequest{Action: "cancel", RunIds: []string{id}})
	awaitBatch(t, w.Server, b.GetId(), soon, func(b *signalboxv1.Batch) bool {
		return batchEnded(b) && b.GetFailed() == 1
	})
}

// A server with the wrong Temporal that was alone for a while hands the reconciling over as soon as there is another
// server.
func TestServerWithWrongTemporalHandsReconcilingOver(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	store := platform.Postgres(t)
	home, other := platform.StartTemporal(t), platform.StartTemporal(t)
	right := serverAt(t, store, home)
	long := right.Publish(t, platform.Document("long", waits(60)))
	waiting := right.Publish(t, platform.Document("stays", waits(3600)))
	goesOn, stays := right.Start(t, long, "").GetId(), right.Start(t, waiting, "").GetId()
	right.awaitRow(t, soon, long, goesOn, "waiting")
	right.awaitRow(t, soon, waiting, stays, "waiting")
	right.awaitPass(t, time.Time{}, "")

	astray := serverAt(t, store, other)
	right.end(t)
	astray.awaitPass(t, time.Time{}, home.Address)
	right = serverAt(t, store, home)
	begun := time.Now()
	platform.Eventually(t, agreed, func() string {
		if right.reconciler(t).GetLastTime().AsTime().After(begun) {
			return ""
		}
		return "the server at the right Temporal does not get its turn"
	})
	right.awaitRow(t, 3*agreed, long, goesOn, "completed")
	require.Equal(t, "waiting", right.row(t, waiting, stays).GetStatus())
	require.Equal(t, 1, strings.Count(astray.Output(), leftAlone), astray.Output())
	require.NotContains(t, right.Output(), leftAlone)
}
