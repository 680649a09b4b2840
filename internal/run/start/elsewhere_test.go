package start_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// clusters are the Temporals that may hold the runs.
type clusters struct {
	here     run.ClusterID
	recorded run.RunsCluster
	workers  []run.ClusterID
	left     run.ClusterID
	away     error
}

func (w *clusters) ClusterID(context.Context) (run.ClusterID, error) { return w.here, w.away }

func (w *clusters) RunsCluster(context.Context) (run.RunsCluster, error) { return w.recorded, nil }

func (w *clusters) WorkerClusters(context.Context) ([]run.ClusterID, error) { return w.workers, nil }

func (w *clusters) LeftIn(context.Context, string) (run.ClusterID, error) { return w.left, nil }

// newMissing returns a bench with a Temporal that has no run, and the Temporals that may have them.
func newMissing(t *testing.T) (*bench, *clusters) {
	t.Helper()
	b := newBench(t)
	w := &clusters{
		here: run.ClusterID{Address: "other:7233", Namespace: "ns", NamespaceID: "m1"},
		recorded: run.RunsCluster{
			ClusterID: run.ClusterID{Address: "host:7233", Namespace: "ns", NamespaceID: "n1"}, Since: b.clock()},
	}
	b.SetClusterReader(w)
	unknown := func(context.Context, run.Run) error { return run.ErrNotKnown }
	b.engine.cancel, b.engine.end = unknown, unknown
	b.engine.control = func(context.Context, run.Run, string) error { return run.ErrNotKnown }
	return b, w
}

const (
	elsewhere = `is not known to Temporal at other:7233 (namespace "ns", ID m1); since 2026-03-01T12:00:00Z the runs have been in Temporal at host:7233 (namespace "ns", ID n1): it may continue there`
	left      = `is not known to Temporal at other:7233 (namespace "ns", ID m1); the run was left in Temporal at host:7233 (namespace "ns", ID n1): it may continue there`
	divided   = `is not known to Temporal at other:7233 (namespace "ns", ID m1), and live workers are connected to Temporal at host:7233 (namespace "ns", ID n1): it may continue there`
)

func TestRunInAnotherTemporalIsNotEndedByMistake(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setUp func(*clusters)
		says  string
	}{
		"the server is elsewhere": {func(*clusters) {}, elsewhere},
		"workers are elsewhere": {func(w *clusters) {
			w.workers, w.recorded.ClusterID = []run.ClusterID{w.here, w.recorded.ClusterID}, w.here
		}, divided},
		"the run was left elsewhere": {func(w *clusters) {
			w.left, w.recorded.ClusterID = w.recorded.ClusterID, w.here
		}, left},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, w := newMissing(t)
			tt.setUp(w)
			r := b.inStatus(t, run.Running, "")
			for _, c := range []control.Control{control.Cancel, control.Pause, control.Unpause, control.ResumeQuota} {
				_, err := b.use(c, r.ID)
				requireError(t, err, apperror.Refused, apperror.RunElsewhere, tt.says)
				require.ErrorContains(t, err, "temporal.address and temporal.namespace")
				require.ErrorContains(t, err, "to end it here alone, terminate it")
				f, _ := apperror.From(err)
				require.Equal(t, map[string]string{
					"connected": `Temporal at other:7233 (namespace "ns", ID m1)`,
					"home":      `Temporal at host:7233 (namespace "ns", ID n1)`,
				}, f.Facts)
			}
			require.Equal(t, r, b.row(t, r.ID), "nothing has changed")
			require.Equal(t, []string{"run.start"}, b.audited(t))

			// Terminate ends the row, which records that the execution was not reached.
			got, err := b.Terminate(b.ctx, here, r.ID, "left behind")
			require.NoError(t, err)
			require.Equal(t, []any{run.Terminated, "Terminated by ada in the table alone"}, []any{got.Status, got.Error.Title})
			for _, part := range []string{"left behind (the execution was not reached: it was not known to Temporal at " +
				"other:7233", "host:7233", "may continue"} {
				require.Contains(t, control.TerminateReason(got), part)
			}
			require.Equal(t, []string{"run.start", "run.terminate left behind"}, b.audited(t))
			list, err := b.store.ListAudit(b.ctx, audit.Filter{Action: audit.RunTerminate, Limit: 1})
			require.NoError(t, err)
			require.JSONEq(t, `{"executionReached": false, "connected": "Temporal at other:7233 (namespace \"ns\", ID m1)",
				"home": "Temporal at host:7233 (namespace \"ns\", ID n1)"}`, string(list[0].Detail))
		})
	}
}

func TestRunMissingInItsOwnTemporalIsEnded(t *testing.T) {
	t.Parallel()
	lost := run.ClusterID{Address: "other:7233", Namespace: "ns", NamespaceID: "m0"}
	for name, setUp := range map[string]func(*clusters){
		"in the recorded Temporal": func(w *clusters) { w.recorded.ClusterID, w.workers = w.here, []run.ClusterID{w.here} },
		"nothing recorded":         func(w *clusters) { w.recorded = run.RunsCluster{} },
		"its data was lost":        func(w *clusters) { w.recorded.ClusterID = lost },
		"at another address":       func(w *clusters) { w.recorded.NamespaceID = w.here.NamespaceID },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, w := newMissing(t)
			setUp(w)
			r := b.inStatus(t, run.Waiting, "")
			got, err := b.Cancel(b.ctx, here, r.ID, "stale")
			require.NoError(t, err)
			require.Equal(t, run.Canceled, got.Status)
			r = b.inStatus(t, run.Waiting, "")
			got, err = b.Terminate(b.ctx, here, r.ID, "stale")
			require.NoError(t, err)
			require.Equal(t, []any{run.Terminated, "stale"}, []any{got.Status, control.TerminateReason(got)})
			require.Equal(t, "Terminated by ada", got.Error.Title)
		})
	}
}

func TestRunStaysUnchangedWhileItsTemporalIsUnknown(t *testing.T) {
	t.Parallel()
	b, w := newMissing(t)
	w.away = unavailable()
	r := b.inStatus(t, run.Running, "")
	for _, c := range []control.Control{control.Cancel, control.Terminate, control.Pause} {
		_, err := b.use(c, r.ID)
		requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "does not answer")
	}
	require.Equal(t, r, b.row(t, r.ID))
	require.Equal(t, []string{"run.start"}, b.audited(t))
}
