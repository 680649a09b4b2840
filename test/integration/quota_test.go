package integration_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// short is a workflow that takes a moment, long one that does not end.
const (
	short = "  - rest:\n      wait: {milliseconds: 50}\n"
	long  = "  - rest:\n      wait: {hours: 1}\n"
)

// limitRuns sets the project's limit of concurrent runs, as an operator would.
func limitRuns(t *testing.T, s *platform.Server, limit string) {
	t.Helper()
	r := s.CLI(t, "quota", "set", "--concurrent-runs", limit)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
}

// startAtOnce starts runs from as many concurrent clients, alternating between the servers, and returns the runs in
// order of acceptance.
func startAtOnce(t *testing.T, count int, workflow string, servers ...*platform.Server) []*signalboxv1.Run {
	t.Helper()
	runs := make([]*signalboxv1.Run, count)
	var clients sync.WaitGroup
	for i := range runs {
		clients.Go(func() {
			var err error
			if runs[i], err = servers[i%len(servers)].TryStart(t.Context(), workflow, ""); err != nil {
				t.Errorf("start: %v", err)
			}
		})
	}
	clients.Wait()
	if t.Failed() {
		t.FailNow()
	}
	slices.SortFunc(runs, func(a, b *signalboxv1.Run) int {
		return cmp.Compare(a.GetQueuePosition(), b.GetQueuePosition())
	})
	return runs
}

// requireOneAndQueue requires that the first run has the only slot, and that the others wait in order.
func requireOneAndQueue(t *testing.T, runs []*signalboxv1.Run) {
	t.Helper()
	require.NotEqual(t, "admission", runs[0].GetQueuedReason())
	for i, r := range runs[1:] {
		require.Equal(t, "queued admission "+fmt.Sprint(i+1),
			fmt.Sprint(r.GetStatus(), " ", r.GetQueuedReason(), " ", r.GetQueuePosition()))
	}
}

// requireInTurn waits until the runs are completed, and requires that each began after the previous one had ended.
func requireInTurn(t *testing.T, s *platform.Server, runs []*signalboxv1.Run) {
	t.Helper()
	before := time.Time{}
	for _, r := range runs {
		r = s.Await(t, r.GetId(), agreed, "completed")
		require.False(t, r.GetStartTime().AsTime().Before(before), "run %s began before the previous one had ended",
			r.GetId())
		before = r.GetEndTime().AsTime()
	}
}

// Ten runs are started at once where one is allowed. Meanwhile the server is killed, and a waiting run is canceled.
func TestConcurrencyLimitOfOneRun(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{
			Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		limitRuns(t, s, "1")
		servers := []*platform.Server{s}
		if store.Driver == "postgres" {
			other := options
			other.Port = platform.FreePort(t)
			servers = append(servers, platform.StartServer(t, other))
		}

		// A child needs no slot of its own: its parent would wait for it forever.
		single := s.Publish(t, platform.Document("single", short))
		s.Await(t, s.Start(t, s.Publish(t, platform.Document("parent", subflow(single, ""))), "").GetId(), soon, "completed")

		// Many clients, and as many servers as the database permits.
		forever := s.Publish(t, platform.Document("long", long))
		first := s.Start(t, forever, "")
		runs := append([]*signalboxv1.Run{first}, startAtOnce(t, 9, single, servers...)...)
		requireOneAndQueue(t, runs)
		cancel(t, s, first.GetId())
		requireInTurn(t, servers[len(servers)-1], runs[1:])

		// All processes that could admit the next run crash.
		runs = startAtOnce(t, 10, forever, servers...)
		requireOneAndQueue(t, runs)
		s.Await(t, runs[0].GetId(), soon, "waiting")
		for _, server := range servers {
			server.Kill()
		}
		s = platform.StartServer(t, options)
		usage, err := s.Quotas.GetQuota(t.Context(), connect.NewRequest(&signalboxv1.GetQuotaRequest{}))
		require.NoError(t, err)
		require.Equal(t, []int64{1, 9}, []int64{usage.Msg.GetAdmittedRuns(), usage.Msg.GetQueuedRuns()})

		// A waiting run is canceled: the others move up, and it never reaches Temporal.
		cancel(t, s, runs[2].GetId())
		s.Await(t, runs[2].GetId(), soon, "canceled")
		require.EqualValues(t, 2, s.Run(t, runs[3].GetId()).GetQueuePosition())
		const waited = "quota of concurrent runs of project default, position 2 in the queue"
		require.Equal(t, waited, s.Run(t, runs[3].GetId()).GetWaits()[0].GetWhat())
		shown := s.CLI(t, "run", "show", runs[3].GetId())
		require.Contains(t, shown.Stdout, waited+", since ", shown.String())
		cancel(t, s, runs[0].GetId())
		s.Await(t, runs[1].GetId(), soon, "waiting")
		require.EqualValues(t, 1, s.Run(t, runs[3].GetId()).GetQueuePosition())

		// A higher limit admits further runs at once.
		limitRuns(t, s, "3")
		for _, r := range runs[3:5] {
			s.Await(t, r.GetId(), soon, "waiting")
		}
		require.Equal(t, "admission", s.Run(t, runs[5].GetId()).GetQueuedReason())
		limitRuns(t, s, "none")
		for _, r := range runs[5:] {
			s.Await(t, r.GetId(), soon, "waiting")
		}
	})
}

func cancel(t *testing.T, s *platform.Server, id string) {
	t.Helper()
	_, err := s.Runs.CancelRun(t.Context(), connect.NewRequest(&signalboxv1.CancelRunRequest{Id: id, Reason: "enough"}))
	require.NoError(t, err)
}

// A run needs more steps than its project may enter: it stops at exactly the limit, and continues when more are
// allowed: in the next period, under a higher limit, or after an operator releases it.
func TestStepQuotaPerPeriod(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		s := newServer(t, store)
		const steps = 50
		workflow := s.Publish(t, platform.Document("steps", tasks(steps)))
		month := []string{"--period", "720h"}

		// Steps that were granted to a run and not used return to the project.
		limitSteps(t, s, append([]string{"--steps", "2000"}, month...)...)
		s.Await(t, s.Start(t, workflow, "").GetId(), soon, "completed")
		platform.Eventually(t, soon, func() string {
			if used := quotaOf(t, s).GetUsedSteps(); used != steps {
				return fmt.Sprintf("%d steps are used", used)
			}
			return ""
		})

		// The run stops at the limit, and continues when the limit is raised, and when an operator releases it.
		limitSteps(t, s, "--steps", "70")
		id := s.Start(t, workflow, "").GetId()
		r := awaitSteps(t, s, id, 20)
		require.Equal(t, []int64{70, 70}, []int64{r.GetQuota().GetUsed(), r.GetQuota().GetLimit()})
		require.True(t, r.GetQuota().GetResetTime().AsTime().After(time.Now()))
		require.Len(t, r.GetWaits(), 1)
		require.Equal(t, "quota quota of steps of project default: 70 of 70 used in this period",
			r.GetWaits()[0].GetKind()+" "+r.GetWaits()[0].GetWhat())
		require.Equal(t, r.GetQuota().GetResetTime().AsTime(), r.GetWaits()[0].GetDueTime().AsTime())
		require.EqualValues(t, 1, quotaOf(t, s).GetWaitingRuns())
		limitSteps(t, s, "--steps", "80")
		awaitSteps(t, s, id, 30)
		resumed := s.CLI(t, "quota", "resume", id, "--reason", "it is urgent", "-o", "json")
		require.Equal(t, platform.ExitOK, resumed.Code, resumed.String())
		require.JSONEq(t, `{"resumed": 1}`, resumed.Stdout)
		s.Await(t, id, soon, "completed")

		// The run continues by itself when the next period begins. Each period allows the limit, and no more.
		limitSteps(t, s, "--steps", "20", "--period", "2s")
		id = s.Start(t, workflow, "").GetId()
		s.Await(t, id, soon, "completed")
		entered := map[int64]int{}
		for _, step := range s.Steps(t, id) {
			entered[step.GetStartTime().AsTime().Unix()/2]++
		}
		require.GreaterOrEqual(t, len(entered), 3)
		for period, count := range entered {
			require.LessOrEqual(t, count, 20, "in period %d of %v", period, entered)
		}
		limitSteps(t, s, "--steps", "none")
		s.Await(t, s.Start(t, workflow, "").GetId(), soon, "completed")
	})
}

// tasks returns the given number of tasks that compute.
func tasks(count int) string {
	var all strings.Builder
	for i := range count {
		fmt.Fprintf(&all, "  - step%d:\n      set: {n: %d}\n", i, i)
	}
	return all.String()
}

func limitSteps(t *testing.T, s *platform.Server, flags ...string) {
	t.Helper()
	r := s.CLI(t, append([]string{"quota", "set"}, flags...)...)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
}

func quotaOf(t *testing.T, s *platform.Server) *signalboxv1.GetQuotaResponse {
	t.Helper()
	res, err := s.Quotas.GetQuota(t.Context(), connect.NewRequest(&signalboxv1.GetQuotaRequest{}))
	require.NoError(t, err)
	return res.Msg
}

// awaitSteps waits until a run that has entered the given number of steps waits for its quota.
func awaitSteps(t *testing.T, s *platform.Server, id string, steps int64) (r *signalboxv1.Run) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		r = s.Run(t, id)
		if r.GetStatus() != "waiting" || r.GetWaitingKind() != "quota" || r.GetStepsTotal() != steps {
			return fmt.Sprintf("run %s is %s %s after %d steps", id, r.GetStatus(), r.GetWaitingKind(), r.GetStepsTotal())
		}
		return ""
	})
	return r
}
