package placement_test

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
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/placement"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(address, id string) run.ClusterID {
	return run.ClusterID{Address: address, Namespace: "default", NamespaceID: id}
}

func recorded(p run.ClusterID) run.RunsCluster {
	return run.RunsCluster{ClusterID: p, Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func live(id string, p run.ClusterID) worker.Worker {
	return worker.Worker{ServerID: id, Fingerprint: worker.Fingerprint{Contract: "c", Address: p.Address, Namespace: p.Namespace, NamespaceID: p.NamespaceID}}
}

func TestCompareAndRefuse(t *testing.T) {
	t.Parallel()
	a, b := at("a:7233", "1"), at("b:7233", "2")
	tests := map[string]struct {
		facts    placement.Facts
		mismatch []string // parts of its detail; none: there is no mismatch
		there    bool
		refused  bool
	}{
		"nothing recorded":                 {placement.Facts{Here: a}, nil, false, false},
		"all in one":                       {placement.Facts{Here: a, Recorded: recorded(a), Workers: []worker.Worker{live("w1", a)}}, nil, false, false},
		"another address of the same":      {placement.Facts{Here: at("c:7233", "1"), Recorded: recorded(a), Workers: []worker.Worker{live("w1", a)}}, nil, false, false},
		"not connected yet":                {placement.Facts{Here: at("b:7233", ""), Recorded: recorded(a), Workers: []worker.Worker{live("w1", a)}}, nil, false, false},
		"this Temporal has lost its data":  {placement.Facts{Here: at("a:7233", "9"), Recorded: recorded(a), Workers: []worker.Worker{live("w1", a)}}, nil, false, false},
		"a worker is not connected yet":    {placement.Facts{Here: a, Recorded: recorded(a), Workers: []worker.Worker{live("w1", at("b:7233", ""))}}, nil, false, false},
		"a worker is in another":           {placement.Facts{Here: a, Recorded: recorded(a), Workers: []worker.Worker{live("w1", a), live("w2", b)}}, []string{"a:7233", "b:7233", "w2", "the same in all processes"}, false, false},
		"workers in another, runs unknown": {placement.Facts{Here: a, Workers: []worker.Worker{live("w2", b)}}, []string{"a:7233", "b:7233", "w2"}, false, false},
		"runs and workers are in another":  {placement.Facts{Here: b, Recorded: recorded(a), Workers: []worker.Worker{live("w1", a), live("w2", b)}}, []string{"a:7233", "b:7233", "w1", "2026-03-01T12:00:00Z", "stop the workers"}, true, true},
		"runs are in another, no worker":   {placement.Facts{Here: b, Recorded: recorded(a)}, []string{"a:7233", "b:7233", "point temporal.address"}, true, true},
		"runs are in another, all workers here": {
			placement.Facts{Here: b, Recorded: recorded(a), Workers: []worker.Worker{live("w2", b)}}, []string{"a:7233", "end the runs that were left behind"}, true, false,
		},
		"runs are in another, this process executes runs": {
			placement.Facts{Here: b, Recorded: recorded(a), ExecutesRuns: true}, []string{"a:7233"}, true, false,
		},
		"runs and workers are in another, this process executes runs": {
			placement.Facts{Here: b, Recorded: recorded(a), ExecutesRuns: true, Workers: []worker.Worker{live("w1", a)}}, []string{"a:7233"}, true, true,
		},
		"runs are in another, a worker connects there": {
			placement.Facts{Here: b, Recorded: recorded(a), Workers: []worker.Worker{live("w1", at("a:7233", "")), live("w2", b)}}, []string{"a:7233", "w1"}, true, true,
		},
		"runs are in another, a worker connects": {
			placement.Facts{Here: b, Recorded: recorded(a), Workers: []worker.Worker{live("w2", at("b:7233", ""))}}, []string{"a:7233"}, true, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := placement.Compare(tt.facts)
			require.Equal(t, len(tt.mismatch) > 0, found != placement.Mismatch{})
			require.Equal(t, tt.there, found.RunsThere)
			for _, part := range tt.mismatch {
				require.Contains(t, found.Detail, part)
			}
			err := placement.Refusal(tt.facts)
			require.Equal(t, tt.refused, err != nil)
			if tt.refused {
				f, ok := apperror.From(err)
				require.True(t, ok)
				require.Equal(t, []any{apperror.Refused, apperror.ContractMismatch}, []any{f.Class, f.Reason})
				require.Contains(t, f.Message, found.Detail)
			}
		})
	}
}

func TestManyWorkersAreCounted(t *testing.T) {
	t.Parallel()
	b := at("b:7233", "2")
	found := placement.Compare(placement.Facts{Here: at("a:7233", "1"), Workers: []worker.Worker{live("w1", b), live("w2", b), live("w3", b), live("w4", b), live("w5", b)}})
	require.Contains(t, found.Detail, ": w1, w2, w3, 2 more; ")
}

// fakes are the store and the registry of a test.
type fakes struct {
	mu       sync.Mutex
	recorded run.RunsCluster
	workers  []worker.Worker
	away     error
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
	m := placement.New(placement.Options{
		Store: &fakes{recorded: recorded(a)}, Here: func() run.ClusterID { return a },
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
		m := placement.New(placement.Options{
			Store: &fakes{recorded: recorded(a)}, Here: func() run.ClusterID { return a },
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
		w := &fakes{recorded: recorded(a), workers: []worker.Worker{live("w2", b)}}
		ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(w, nil)))
		m := placement.New(placement.Options{Store: w, Registry: w, Here: func() run.ClusterID { return b }})
		require.NoError(t, m.Check(ctx, "default"), "all workers are here: the move may be deliberate")
		require.EqualError(t, m.Check(ctx, "shop"), "no worker serves it")
		w.set(func() { w.workers = append(w.workers, live("w1", a)) })
		require.ErrorContains(t, m.Check(ctx, "default"), "nothing was started")
		w.set(func() { w.away = errors.New("away") })
		require.NoError(t, m.Check(ctx, "default"), "unknown workers are no reason to refuse")
		w.set(func() { w.away = nil })

		require.NoError(t, m.Start(ctx))
		const different, again = "Processes on this database use different Temporals", "All processes on this database use one Temporal again"
		pass := func() {
			<-time.After(2 * time.Second)
			synctest.Wait()
		}
		synctest.Wait()
		require.Empty(t, m.Mismatch(), "one comparison does not count")
		pass()
		require.Contains(t, m.Mismatch(), "w1")
		require.ErrorContains(t, m.Healthy(ctx), "a:7233")
		require.Equal(t, 1, w.lines(different))
		w.set(func() { w.workers = append(w.workers, live("w3", a)) })
		pass()
		require.Contains(t, m.Mismatch(), "w3")
		require.Equal(t, 1, w.lines(different), "another worker is not logged")
		w.set(func() { w.away = errors.New("away") })
		pass()
		require.Contains(t, m.Mismatch(), "w3")
		w.set(func() { w.away, w.recorded, w.workers = nil, recorded(b), nil })
		pass()
		require.Zero(t, w.lines(again))
		pass()
		require.Empty(t, m.Mismatch())
		require.NoError(t, m.Healthy(ctx))
		require.Equal(t, []int{1, 1}, []int{w.lines(different), w.lines(again)})
		require.NoError(t, m.Stop(ctx))
	})
}
