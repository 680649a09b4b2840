package run_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// whereabouts is what is known of where the runs are.
type whereabouts struct {
	here    run.Place
	home    run.Home
	workers []run.Place
	away    error
}

func (w *whereabouts) Place(context.Context) (run.Place, error) { return w.here, w.away }

func (w *whereabouts) RunsHome(context.Context) (run.Home, error) { return w.home, nil }

func (w *whereabouts) WorkerPlaces(context.Context) ([]run.Place, error) { return w.workers, nil }

// astray is a bench whose Temporal knows no run, and what is known of where they are.
func astray(t *testing.T) (*bench, *whereabouts) {
	t.Helper()
	b := newBench(t)
	w := &whereabouts{
		here: run.Place{Address: "other:7233", Namespace: "ns", NamespaceID: "m1"},
		home: run.Home{Place: run.Place{Address: "host:7233", Namespace: "ns", NamespaceID: "n1"}, Since: b.clock()},
	}
	b.Locate(w)
	unknown := func(context.Context, run.Run) error { return run.ErrNotKnown }
	b.engine.cancel, b.engine.end = unknown, unknown
	b.engine.control = func(context.Context, run.Run, string) error { return run.ErrNotKnown }
	return b, w
}

const (
	elsewhere = `is not known to Temporal at other:7233 (namespace "ns", ID m1); since 2026-03-01T12:00:00Z the runs have been in Temporal at host:7233 (namespace "ns", ID n1): it may go on there`
	divided   = `is not known to Temporal at other:7233 (namespace "ns", ID m1), and live workers are connected to Temporal at host:7233 (namespace "ns", ID n1): it may go on there`
)

func TestRunInAnotherTemporalIsNotEndedByMistake(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		place func(*whereabouts)
		says  string
	}{
		"the server is elsewhere": {func(*whereabouts) {}, elsewhere},
		"workers are elsewhere":   {func(w *whereabouts) { w.workers, w.home.Place = []run.Place{w.here, w.home.Place}, w.here }, divided},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, w := astray(t)
			tt.place(w)
			r := b.place(t, run.Running, "")
			for _, c := range []control.Control{control.Cancel, control.Pause, control.Unpause, control.ResumeQuota} {
				_, err := b.use(c, r.ID)
				requireFault(t, err, fault.Refused, fault.RunElsewhere, tt.says)
				require.ErrorContains(t, err, "temporal.address and temporal.namespace")
				require.ErrorContains(t, err, "to end it here alone, terminate it")
				f, _ := fault.From(err)
				require.Equal(t, map[string]string{
					"connected": `Temporal at other:7233 (namespace "ns", ID m1)`, "home": `Temporal at host:7233 (namespace "ns", ID n1)`,
				}, f.Facts)
			}
			require.Equal(t, r, b.row(t, r.ID), "nothing has changed")
			require.Equal(t, []string{"run.start"}, b.audited(t))

			// Whoever terminates it ends the row, which says what was not reached.
			got, err := b.Terminate(b.ctx, here, r.ID, "left behind")
			require.NoError(t, err)
			require.Equal(t, []any{run.Terminated, "Terminated by ada in the table alone"}, []any{got.Status, got.Error.Title})
			for _, part := range []string{"left behind (the execution was not reached: it was not known to Temporal at other:7233", "host:7233", "may go on"} {
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

func TestRunThatTheRightTemporalDoesNotKnowIsEnded(t *testing.T) {
	t.Parallel()
	lost := run.Place{Address: "other:7233", Namespace: "ns", NamespaceID: "m0"}
	for name, place := range map[string]func(*whereabouts){
		"at home":            func(w *whereabouts) { w.home.Place, w.workers = w.here, []run.Place{w.here} },
		"nothing recorded":   func(w *whereabouts) { w.home = run.Home{} },
		"its data was lost":  func(w *whereabouts) { w.home.Place = lost },
		"at another address": func(w *whereabouts) { w.home.NamespaceID = w.here.NamespaceID },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, w := astray(t)
			place(w)
			r := b.place(t, run.Waiting, "")
			got, err := b.Cancel(b.ctx, here, r.ID, "stale")
			require.NoError(t, err)
			require.Equal(t, run.Canceled, got.Status)
			r = b.place(t, run.Waiting, "")
			got, err = b.Terminate(b.ctx, here, r.ID, "stale")
			require.NoError(t, err)
			require.Equal(t, []any{run.Terminated, "stale"}, []any{got.Status, control.TerminateReason(got)})
			require.Equal(t, "Terminated by ada", got.Error.Title)
		})
	}
}

func TestRunIsLeftAloneWhileItIsNotKnownWhereRunsAre(t *testing.T) {
	t.Parallel()
	b, w := astray(t)
	w.away = unavailable()
	r := b.place(t, run.Running, "")
	for _, c := range []control.Control{control.Cancel, control.Terminate, control.Pause} {
		_, err := b.use(c, r.ID)
		requireFault(t, err, fault.Unavailable, fault.EngineUnavailable, "does not answer")
	}
	require.Equal(t, r, b.row(t, r.ID))
	require.Equal(t, []string{"run.start"}, b.audited(t))
}
