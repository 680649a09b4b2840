package start_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// placements are those that a test compares.
type placements = start.PlacementFacts

func at(address, id string) run.ClusterID {
	return run.ClusterID{Address: address, Namespace: "default", NamespaceID: id}
}

func inCluster(p run.ClusterID) run.RunsCluster {
	return run.RunsCluster{ClusterID: p, Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func live(id string, p run.ClusterID) worker.Worker {
	return worker.Worker{ServerID: id,
		Fingerprint: worker.Fingerprint{
			Contract: "c", Address: p.Address, Namespace: p.Namespace, NamespaceID: p.NamespaceID}}
}

func TestCompareAndRefuse(t *testing.T) {
	t.Parallel()
	a, b := at("a:7233", "1"), at("b:7233", "2")
	tests := map[string]struct {
		facts    placements
		mismatch []string // parts of its detail; none: there is no mismatch
		there    bool
		refused  bool
	}{
		"nothing recorded": {placements{Here: a}, nil, false, false},
		"all in one": {
			placements{Here: a, Recorded: inCluster(a), Workers: []worker.Worker{live("w1", a)}}, nil, false, false},
		"another address of the same": {
			placements{Here: at("c:7233", "1"), Recorded: inCluster(a), Workers: []worker.Worker{live("w1", a)}}, nil, false,
			false},
		"not connected yet": {
			placements{Here: at("b:7233", ""), Recorded: inCluster(a), Workers: []worker.Worker{live("w1", a)}}, nil, false,
			false},
		"this Temporal has lost its data": {
			placements{Here: at("a:7233", "9"), Recorded: inCluster(a), Workers: []worker.Worker{live("w1", a)}}, nil, false,
			false},
		"a worker is not connected yet": {
			placements{Here: a, Recorded: inCluster(a), Workers: []worker.Worker{live("w1", at("b:7233", ""))}}, nil, false,
			false},
		"a worker is in another": {
			placements{Here: a, Recorded: inCluster(a), Workers: []worker.Worker{live("w1", a), live("w2", b)}},
			[]string{"a:7233", "b:7233", "w2", "the same in all processes"}, false, false},
		"workers in another, runs unknown": {
			placements{Here: a, Workers: []worker.Worker{live("w2", b)}}, []string{"a:7233", "b:7233", "w2"}, false, false},
		"runs and workers are in another": {
			placements{Here: b, Recorded: inCluster(a), Workers: []worker.Worker{live("w1", a), live("w2", b)}},
			[]string{"a:7233", "b:7233", "w1", "2026-03-01T12:00:00Z", "stop the workers"}, true, true},
		"runs are in another, no worker": {
			placements{Here: b, Recorded: inCluster(a)}, []string{"a:7233", "b:7233", "point temporal.address"}, true, true},
		"no run is open there, all workers here": {
			placements{Here: b, Recorded: inCluster(a), Workers: []worker.Worker{live("w2", b)}}, []string{"a:7233"}, true,
			false,
		},
		"no run is open there, this process executes runs": {
			placements{Here: b, Recorded: inCluster(a), ExecutesRuns: true}, []string{"a:7233"}, true, false,
		},
		"runs are open there, all workers here": {
			placements{Here: b, Recorded: inCluster(a), Open: 21, ExecutesRuns: true,
				Workers: []worker.Worker{live("w2", b)}},
			[]string{"a:7233", "`signalbox system adopt-temporal b:7233 default`"}, true, true,
		},
		"runs are open there and workers connected": {
			placements{Here: b, Recorded: inCluster(a), Open: 1, ExecutesRuns: true,
				Workers: []worker.Worker{live("w1", a)}},
			[]string{"w1", "stop the workers that are connected there and run `signalbox system adopt-temporal"}, true, true,
		},
		"runs and workers are in another, this process executes runs": {
			placements{Here: b, Recorded: inCluster(a), ExecutesRuns: true, Workers: []worker.Worker{live("w1", a)}},
			[]string{"a:7233"}, true, true,
		},
		"runs are in another, a worker connects there": {
			placements{Here: b, Recorded: inCluster(a),
				Workers: []worker.Worker{live("w1", at("a:7233", "")), live("w2", b)}}, []string{"a:7233", "w1"}, true, true,
		},
		"no run is open there, a worker connects here": {
			placements{Here: b, Recorded: inCluster(a), Workers: []worker.Worker{live("w2", at("b:7233", ""))}},
			[]string{"a:7233"}, true, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := start.CompareClusters(tt.facts)
			require.Equal(t, len(tt.mismatch) > 0, found != start.PlacementMismatch{})
			require.Equal(t, tt.there, found.RunsThere)
			for _, part := range tt.mismatch {
				require.Contains(t, found.Detail, part)
			}
			err := start.PlacementRefusal(tt.facts)
			require.Equal(t, tt.refused, err != nil)
			if tt.refused {
				f, ok := apperror.From(err)
				require.True(t, ok)
				require.Equal(t, []any{apperror.Refused, apperror.ContractMismatch}, []any{f.Class, f.Reason})
				require.Contains(t, f.Message, found.Summary+": "+found.Detail)
			}
		})
	}
}

func TestTitleCountsOpenRuns(t *testing.T) {
	t.Parallel()
	a, b := at("a:7233", "1"), at("b:7233", "2")
	for open, title := range map[int64]string{
		0: "This server uses another Temporal than the runs", 1: "This server uses another Temporal than 1 open run",
		21: "This server uses another Temporal than 21 open runs",
	} {
		require.Equal(t, title, start.CompareClusters(placements{Here: b, Recorded: inCluster(a), Open: open}).Summary)
	}
	require.Equal(t, "Live workers use another Temporal than this server",
		start.CompareClusters(placements{Here: b, Recorded: inCluster(b), Workers: []worker.Worker{live("w1", a)}}).Summary)
}

func TestManyWorkersAreCounted(t *testing.T) {
	t.Parallel()
	b := at("b:7233", "2")
	found := start.CompareClusters(
		placements{Here: at("a:7233", "1"),
			Workers: []worker.Worker{live("w1", b), live("w2", b), live("w3", b), live("w4", b), live("w5", b)}})
	require.Contains(t, found.Detail, ": w1, w2, w3, 2 more; ")
}

// fakes are the store and the registry of a test.
type fakes struct {
	mu       sync.Mutex
	recorded run.RunsCluster
	open     int64
	workers  []worker.Worker
	away     error
	counts   int
	entries  []audit.Entry
	log      bytes.Buffer
}

func (w *fakes) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *fakes) RunsCluster(context.Context) (run.RunsCluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.recorded, w.away
}

func (w *fakes) OpenInCluster(context.Context) (map[string]int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts++
	return map[string]int64{"shop": w.open}, w.away
}

func (w *fakes) ClaimRuns(_ context.Context, from run.ClusterID, to run.RunsCluster) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recorded.ClusterID != from || w.open > 0 {
		return false, w.away
	}
	w.recorded = to
	return true, w.away
}

func (w *fakes) AdoptCluster(_ context.Context, from run.ClusterID, to run.RunsCluster,
	e audit.Entry) (map[string]int64, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recorded.ClusterID != from {
		return nil, false, w.away
	}
	left := map[string]int64{"shop": w.open}
	w.recorded, w.open, w.entries = to, 0, append(w.entries, e)
	return left, true, w.away
}

func (w *fakes) Live(context.Context) ([]worker.Worker, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.workers, w.away == nil
}

func (w *fakes) LiveNow(ctx context.Context) ([]worker.Worker, bool) { return w.Live(ctx) }

func (w *fakes) Check(project string, _ []worker.Worker) error {
	if project == "shop" {
		return errors.New("no worker serves it")
	}
	return nil
}

func (w *fakes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *fakes) lines(message string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.log.String(), message)
}

// reads counts how often the live workers are read.
type reads struct {
	worker.Store

	live  []worker.Worker
	count int
}

func (r *reads) ListWorkers(context.Context, time.Duration, int) ([]worker.Worker, error) {
	r.count++
	return r.live, nil
}

func TestStartReadsLiveWorkersOnce(t *testing.T) {
	t.Parallel()
	a := at("a:7233", "1")
	store := &reads{}
	m := start.NewPlacementMonitor(start.PlacementOptions{
		Store: &fakes{recorded: inCluster(a)}, Here: func() run.ClusterID { return a },
		Registry: worker.NewRegistry(store, func() worker.Fingerprint { return live("", a).Fingerprint }),
	})
	for i := range 3 {
		require.NoError(t, m.Check(t.Context(), "default"))
		require.Equal(t, i+1, store.count, "without live workers, each start reads them once")
	}
}

// The live workers are read again before a refusal, at most each 50 ms.
func TestWorkerThatHasJustStartedCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := at("a:7233", "1")
		serves := func(id, project string) worker.Worker {
			w := live(id, a)
			w.Projects = []string{project}
			return w
		}
		store := &reads{live: []worker.Worker{serves("w1", "side")}}
		m := start.NewPlacementMonitor(start.PlacementOptions{
			Store: &fakes{recorded: inCluster(a)}, Here: func() run.ClusterID { return a },
			Registry: worker.NewRegistry(store, func() worker.Fingerprint { return live("", a).Fingerprint }),
		})
		require.NoError(t, m.Check(t.Context(), "side"))
		store.live = append(store.live, serves("w2", "default"))
		<-time.After(100 * time.Millisecond)
		require.NoError(t, m.Check(t.Context(), "default"))
		require.Equal(t, 2, store.count)
		for range 10 {
			require.True(t, apperror.Is(m.Check(t.Context(), "shop"), apperror.NoWorkerForProject))
		}
		require.Equal(t, 2, store.count)
	})
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := at("a:7233", "1"), at("b:7233", "2")
		w := &fakes{recorded: inCluster(a), workers: []worker.Worker{live("w2", b)}}
		ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(w, nil)))
		m := start.NewPlacementMonitor(start.PlacementOptions{Store: w, Registry: w, Here: func() run.ClusterID { return b }})
		w.set(func() { w.workers = append(w.workers, live("w1", a)) })
		require.ErrorContains(t, m.Check(ctx, "default"), "nothing was started")

		require.NoError(t, m.Start(ctx))
		const different, again = "Processes on this database use different Temporals", "All processes on this database use " +
			"one Temporal again"
		pass := func() {
			<-time.After(2 * time.Second)
			synctest.Wait()
		}
		synctest.Wait()
		require.Zero(t, m.Mismatch(), "one comparison does not count")
		pass()
		require.Contains(t, m.Mismatch().Detail, "w1")
		require.ErrorContains(t, m.Healthy(ctx), "a:7233")
		require.Equal(t, []any{a, "This server uses another Temporal than the runs", m.Title()},
			[]any{m.Elsewhere(), m.RunsTitle(), m.RunsTitle()})
		require.Equal(t, 1, w.lines(different))
		w.set(func() { w.workers = append(w.workers, live("w3", a)) })
		pass()
		require.Contains(t, m.Mismatch().Detail, "w3")
		require.Equal(t, 1, w.lines(different), "another worker is not logged")
		w.set(func() { w.away = errors.New("away") })
		pass()
		require.Contains(t, m.Mismatch().Detail, "w3")
		w.set(func() { w.away, w.recorded, w.workers = nil, inCluster(b), nil })
		pass()
		require.Zero(t, w.lines(again))
		pass()
		require.Zero(t, m.Mismatch())
		require.NoError(t, m.Healthy(ctx))
		require.Equal(t, []any{run.ClusterID{}, ""}, []any{m.Elsewhere(), m.RunsTitle()})
		require.Equal(t, []int{1, 1}, []int{w.lines(different), w.lines(again)})
		require.NoError(t, m.Stop(ctx))
	})
}

// newMonitor returns a monitor of a server with workers, and what it reads.
func newMonitor(here run.ClusterID) (*start.PlacementMonitor, *fakes) {
	w := &fakes{}
	return start.NewPlacementMonitor(start.PlacementOptions{Store: w, Registry: w, Here: func() run.ClusterID {
		return here
	}, ExecutesRuns: true}), w
}

func TestFirstStartRecordsTheTemporal(t *testing.T) {
	t.Parallel()
	a, b := at("a:7233", "1"), at("b:7233", "2")
	m, w := newMonitor(a)
	w.away = errors.New("away")
	require.EqualError(t, m.Check(t.Context(), "default"), "away", "what was never read is not assumed")
	first := start.NewPlacementMonitor(
		start.PlacementOptions{Store: w, Registry: w, Here: func() run.ClusterID { return a }})
	w.set(func() { w.away = nil })
	require.NoError(t, first.Check(t.Context(), "default"))
	require.Equal(t, a, w.recorded.ClusterID)
	require.EqualError(t, first.Check(t.Context(), "shop"), "no worker serves it")
	w.set(func() { w.away = errors.New("away") })
	require.NoError(t, first.Check(t.Context(), "shop"), "unknown workers are no reason to refuse")

	w.set(func() { w.away, w.open = nil, 1 })
	other := start.NewPlacementMonitor(start.PlacementOptions{Store: w, Registry: w, Here: func() run.ClusterID {
		return b
	}, ExecutesRuns: true})
	require.ErrorContains(t, other.Check(t.Context(), "default"), "This server uses another Temporal than 1 open run")
}

func TestTemporalWithoutDataIsNoOther(t *testing.T) {
	t.Parallel()
	m, w := newMonitor(at("a:7233", "9"))
	w.recorded, w.open = inCluster(at("a:7233", "1")), 21
	require.NoError(t, m.Check(t.Context(), "default"))
}

func TestStartReplacesATemporalWithoutOpenRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := at("a:7233", "1"), at("b:7233", "2")
		m, w := newMonitor(b)
		w.recorded, w.open = inCluster(a), 2
		for range 100 {
			err := m.Check(t.Context(), "default")
			require.True(t, apperror.Is(err, apperror.ContractMismatch), err)
			require.ErrorContains(t, err, "This server uses another Temporal than 2 open runs")
		}
		require.Equal(t, 1, w.counts, "refusals do not load the database")
		w.set(func() { w.open, w.workers = 0, []worker.Worker{live("w1", a)} })
		<-time.After(time.Second)
		require.ErrorContains(t, m.Check(t.Context(), "default"), "w1")
		w.set(func() { w.workers = nil })
		<-time.After(time.Second)
		require.NoError(t, m.Check(t.Context(), "default"))
		require.Equal(t, b, w.recorded.ClusterID)
	})
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := at("a:7233", "1"), at("b:7233", "2")
		m, w := newMonitor(b)
		w.recorded, w.open, w.workers = inCluster(a), 21, []worker.Worker{live("w1", a)}
		require.ErrorContains(t, m.Check(t.Context(), "default"), "nothing was started")
		want := run.Adoption{Before: inCluster(a), Now: b, Left: map[string]int64{"shop": 21}, Needed: true}
		dry, err := m.Adopt(t.Context(), run.AdoptRequest{DryRun: true})
		require.NoError(t, err)
		require.Equal(t, want, dry)
		request := run.AdoptRequest{Address: "b:7233", Namespace: "default", Reason: "lost"}
		_, err = m.Adopt(t.Context(), request)
		require.ErrorContains(t, err, "w1; stop them first")
		require.True(t, apperror.Is(err, apperror.ContractMismatch))
		w.workers = nil
		for _, r := range []run.AdoptRequest{
			{}, {Address: "a:7233", Namespace: "default"}, {Address: "b:7233", Namespace: "other"}} {
			_, err = m.Adopt(t.Context(), r)
			require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v: %v", r, err)
		}
		require.Equal(t, a, w.recorded.ClusterID)

		done, err := m.Adopt(t.Context(), request)
		require.NoError(t, err)
		want.Adopted = true
		require.Equal(t, want, done)
		require.Equal(t, run.RunsCluster{ClusterID: b, Since: time.Now()}, w.recorded)
		require.NoError(t, m.Check(t.Context(), "default"), "at once")
		require.Len(t, w.entries, 1)
		e := w.entries[0]
		require.Equal(t, []any{audit.SystemAdoptTemporal, "", "b:7233 default", "lost"},
			[]any{e.Action, e.Project, e.Subject, e.Reason})
		require.JSONEq(t, `{"before": {"address": "a:7233", "namespace": "default", "namespaceId": "1"},
			"now": {"address": "b:7233", "namespace": "default", "namespaceId": "2"}, "left": {"shop": 21}}`, string(e.Detail))

		done, err = m.Adopt(t.Context(), request)
		require.NoError(t, err)
		require.False(t, done.Needed || done.Adopted)
		require.Len(t, w.entries, 1)
		unreached, _ := newMonitor(at("b:7233", ""))
		_, err = unreached.Adopt(t.Context(), request)
		require.True(t, apperror.Is(err, apperror.EngineUnavailable))
	})
}
