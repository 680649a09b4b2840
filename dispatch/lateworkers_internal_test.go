package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heartbeat"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// dispatcherClient is a client of one dispatcher that records late signals and answers queries with a state.
type dispatcherClient struct {
	client.Client
	reports [][]string
	queries int
	state   dispatchtype.State
	failure error
}

func (s *dispatcherClient) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	s.reports = append(s.reports, arg.(wire.Late).ServerIDs)
	return nil
}

func (s *dispatcherClient) QueryWorkflow(context.Context, string, string, string,
	...any) (converter.EncodedValue, error) {
	s.queries++
	return answer{s.state}, s.failure
}

type answer struct{ state dispatchtype.State }

func (answer) HasValue() bool { return true }

func (a answer) Get(into any) error {
	text, err := json.Marshal(a.state)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// lists sets the workers that the dispatcher lists.
func (s *dispatcherClient) lists(ids ...string) {
	s.state.Workers = nil
	for _, id := range ids {
		s.state.Workers = append(s.state.Workers, dispatchtype.RegisteredWorker{ServerID: id})
	}
}

// watcher is a process that owns a dispatcher, with given heartbeats.
type watcher struct {
	*dispatcherClient
	*Dispatchers
	beats map[string]heartbeat.Process
	owned []owner.Ownership
	sent  map[Name]*lateReports
}

func newWatcher(t *testing.T, late ...string) *watcher {
	s := &dispatcherClient{state: dispatchtype.State{Phase: dispatchtype.Parked}}
	d, err := New(Options{
		ServerID: "me", Client: func() (client.Client, error) {
			return s, nil
		}, Namespace: "default", Leases: lease.NewMemory(),
		Inbox: memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		}),
	})
	require.NoError(t, err)
	shop := Name{Project: "shop", TaskQueue: "orders"}
	w := &watcher{dispatcherClient: s, Dispatchers: d, beats: map[string]heartbeat.Process{},
		sent: map[Name]*lateReports{}}
	w.owned = []owner.Ownership{{Name: shop, Owner: inbox.Owner{Epoch: 1, Holder: "me"}}}
	for _, id := range late {
		w.beats[id] = heartbeat.Process{Beat: dispatchtype.Heartbeat{Projects: []string{"shop"}, Serves: 1}}
	}
	return w
}

// watch checks the workers every five seconds.
func (w *watcher) watch(t *testing.T, d time.Duration) {
	t.Helper()
	for range d / (5 * time.Second) {
		w.reportLate(t.Context(), w.beats, w.owned, w.sent)
		<-time.After(5 * time.Second)
	}
}

// TestStillListedWorkersAreReportedAgain: the dispatcher could not read the heartbeats, or missed one of two workers
// that died together only once.
func TestStillListedWorkersAreReportedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t, "a", "b")
		w.lists("a", "b", "me")
		w.watch(t, 20*time.Second)
		require.Equal(t, [][]string{{"a", "b"}}, w.reports)
		require.Zero(t, w.queries, "it has the time of a check first")
		w.lists("b", "me")
		w.watch(t, 20*time.Second)
		require.Equal(t, [][]string{{"a", "b"}, {"b"}}, w.reports)
		w.watch(t, 24*time.Hour)
		require.Less(t, len(w.reports), 160, "the pauses grow")
		require.Greater(t, len(w.reports), 100, "up to ten minutes")

		w.lists("me")
		w.watch(t, time.Hour)
		reports, queries := len(w.reports), w.queries
		w.watch(t, 3*24*time.Hour)
		require.Len(t, w.reports, reports, "evicted workers are not reported again")
		require.Equal(t, queries, w.queries)
	})
}

// TestOnlyListedWorkersAreReported if many expired: thousands of names in the history of each dispatcher would be
// useless.
func TestOnlyListedWorkersAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 1000 {
			ids = append(ids, fmt.Sprintf("dead-%03d", i))
		}
		w := newWatcher(t, ids...)
		w.lists("dead-007", "dead-700", "me")
		w.failure = errors.New("no poller")
		w.watch(t, time.Hour)
		require.Empty(t, w.reports)
		require.Less(t, w.queries, 30, "the pauses grow")
		w.failure = nil
		w.watch(t, 11*time.Minute)
		require.Equal(t, []string{"dead-007", "dead-700"}, w.reports[0])
		w.lists("me")
		w.watch(t, time.Hour)
		reports, queries := len(w.reports), w.queries
		w.watch(t, time.Hour)
		require.Equal(t, []int{reports, queries}, []int{len(w.reports), w.queries}, "they are evicted")

		w.lists("late", "me")
		w.beats["late"] = heartbeat.Process{Beat: dispatchtype.Heartbeat{Projects: []string{"shop"}, Serves: 1}}
		w.watch(t, 10*time.Second)
		require.Equal(t, []string{"late"}, w.reports[len(w.reports)-1])
		require.Equal(t, queries, w.queries, "few are reported without a query")
		for _, late := range w.reports {
			require.LessOrEqual(t, len(late), 2)
		}
	})
}

// TestUnlistedWorkersCostOneQuery and no report.
func TestUnlistedWorkersCostOneQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t)
		for i := range 1000 {
			w.beats[fmt.Sprint("dead-", i)] = heartbeat.Process{
				Beat: dispatchtype.Heartbeat{Projects: []string{"shop"}, Serves: 1}}
		}
		w.lists("me")
		w.watch(t, time.Hour)
		require.Empty(t, w.reports)
		require.Equal(t, 1, w.queries)
	})
}

func TestConfirmationSkipsLiveAndRoutedWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t, "a")
		w.lists("a", "me")
		w.state.Phase = dispatchtype.Routing
		w.watch(t, time.Hour)
		require.Len(t, w.reports, 1, "a routing dispatcher checks its workers itself")
		w.failure, w.state.Phase = errors.New("no poller"), dispatchtype.Parked
		w.watch(t, time.Hour)
		require.Len(t, w.reports, 1)
		require.Less(t, w.queries, 30)
		w.failure = nil
		w.watch(t, time.Hour)
		require.Greater(t, len(w.reports), 1)
		reports := len(w.reports)
		w.beats["a"] = heartbeat.Process{Alive: true, Beat: dispatchtype.Heartbeat{Projects: []string{"shop"}, Serves: 1}}
		w.watch(t, time.Hour)
		require.Len(t, w.reports, reports)
		w.beats["a"] = heartbeat.Process{Beat: dispatchtype.Heartbeat{Projects: []string{"shop"}, Serves: 1}}
		w.watch(t, 5*time.Second)
		require.Len(t, w.reports, reports+1, "the worker died again")
	})
}

// TestNewOwnershipReportsAgain: while this process owned nothing, it may not have noticed, as the leases were
// unavailable.
func TestNewOwnershipReportsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t, "a")
		w.watch(t, 10*time.Second)
		require.Len(t, w.reports, 1)
		w.owned[0].Owner.Epoch = 3
		w.watch(t, 10*time.Second)
		require.Len(t, w.reports, 2)
		w.owned = nil
		w.watch(t, 10*time.Second)
		require.Empty(t, w.sent)
	})
}

func TestLateWorkers(t *testing.T) {
	t.Parallel()
	life := func(project string, alive bool) heartbeat.Process {
		return heartbeat.Process{Alive: alive, Beat: dispatchtype.Heartbeat{Projects: []string{project}, Serves: 1}}
	}
	o := owner.Ownership{Name: Name{Project: "shop", TaskQueue: "orders"},
		Workers: []dispatchtype.RegisteredWorker{{ServerID: "forgotten"}, {ServerID: "alive"}}}
	processes := map[string]heartbeat.Process{
		"alive": life("shop", true), "b": life("shop", false), "a": life("shop", false), "elsewhere": life("bank", false)}
	known := map[string]bool{"before": true, "alive": true}
	late := lateWorkers(processes, o, known)
	require.Equal(t, []string{"a", "b", "forgotten"}, late)
	require.Empty(t, known, "live and unknown workers are removed")
	for _, id := range late {
		known[id] = true
	}
	require.Empty(t, lateWorkers(processes, o, known), "each is reported once")
	delete(processes, "a")
	processes["b"] = life("shop", true)
	require.Empty(t, lateWorkers(processes, o, known))
	require.Equal(t, map[string]bool{"forgotten": true}, known)
}
