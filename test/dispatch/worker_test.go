package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// registered returns the server IDs that are registered with the dispatcher, in order.
func (x *environment) registered(t *testing.T) ([]string, error) {
	t.Helper()
	d, err := x.dispatcher(t)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, w := range d.GetWorkers() {
		ids = append(ids, w.GetServerId())
	}
	slices.Sort(ids)
	return ids, nil
}

// alive returns the server IDs of the running workers, in order.
func (x *environment) alive() []string {
	var ids []string
	for _, w := range x.workers {
		ids = append(ids, w.id)
	}
	slices.Sort(ids)
	return ids
}

// waitForRegistered waits until exactly the running workers are registered with the dispatcher.
func (x *environment) waitForRegistered(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	platform.Eventually(t, limit, func() string {
		ids, err := x.registered(t)
		switch {
		case err != nil:
			return err.Error()
		case !slices.Equal(ids, x.alive()):
			return fmt.Sprintf("registered are %v, running are %v", ids, x.alive())
		}
		return ""
	})
	return time.Since(began)
}

// counted reads a metric of a worker: the sum of the series that have the labels.
func (x *environment) counted(t *testing.T, w *worker, metric string, labels ...string) float64 {
	t.Helper()
	sum, _, err := counter.Metric(t.Context(), w.Server, metric, labels...)
	require.NoError(t, err)
	return sum
}

// evictions returns the sum of all workers' eviction counts.
func (x *environment) evictions(t *testing.T) float64 {
	t.Helper()
	var total float64
	for _, w := range x.workers {
		total += x.counted(t, w, "dispatcher_worker_evictions_total")
	}
	return total
}

// Workers that crash are evicted, each once; a worker that is frozen for less than the threshold is not; a worker that
// resumes is registered again.
func TestCrashedWorkersAreEvicted(t *testing.T) {
	t.Parallel()
	var args []string
	if !promise.Full() {
		args = []string{"--dispatch-check-interval", "5s"}
	}
	x := build(t, 3, args...)
	x.waitForRegistered(t, soon)
	// The dispatcher checks its workers while it routes.
	f := x.startTraffic(t)
	owner := x.waitForOwner(t)
	var others []*worker
	for _, w := range x.workers {
		if w != owner {
			others = append(others, w)
		}
	}
	jitter := others[1]
	for range promise.Trials(1, 5) {
		jitter.Freeze()
		waitFor(t, 12*time.Second)
		jitter.Thaw()
		waitFor(t, 2*time.Second)
	}
	require.Zero(t, x.evictions(t), "a worker that is late for less than the threshold stays")
	var took promise.Times
	trials := promise.Trials(1, 10)
	for range trials {
		victim := others[0]
		x.forget(victim)
		victim.Kill()
		took = append(took, x.waitForRegistered(t, soon))
		others[0] = x.join(t, 1)[0]
		x.waitForRegistered(t, soon)
	}
	require.InDelta(t, trials, x.evictions(t), 0, "each is counted once")
	r := x.CLI(t, "worker", "list", "-o", "json")
	require.Zero(t, r.Code, r)
	f.verify(t, x)
	promise.Record(t, promise.Figure{Promise: "P-D7", What: "a worker killed: until it was evicted; evictions of " +
		"workers that were frozen for 12 s", Aim: "exact; 0", Trials: trials, Figure: took.String() + "; 0"})
}

// A parked dispatcher evicts all workers that crash one after another, and stays parked.
func TestParkedDispatcherEvictsWorkers(t *testing.T) {
	t.Parallel()
	x := build(t, 3, "--dispatch-idle", "2s", "--dispatch-check-interval", "6s", "--dispatch-heartbeat", "1s",
		"--dispatch-stale-after", "5s")
	x.waitForRegistered(t, soon)
	x.waitForParked(t)
	owner := x.waitForOwner(t)
	for _, w := range slices.Clone(x.workers) {
		if w != owner {
			x.forget(w)
			w.Kill()
			waitFor(t, time.Second)
		}
	}
	x.waitForRegistered(t, soon)
	x.waitForParked(t)
	platform.Eventually(t, soon, func() string {
		if n := timers(t, x.client, dispatcherID); n > 0 {
			return fmt.Sprintf("it has %d timers", n)
		}
		return ""
	})
}

// waitForParked waits until the dispatcher is parked.
func (x *environment) waitForParked(t *testing.T) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if d, err := x.dispatcher(t); err != nil || d.GetState() != "parked" {
			return fmt.Sprintf("the dispatcher is %s (%v)", d.GetState(), err)
		}
		return ""
	})
}

// The history of a dispatcher without events does not grow and nothing of it is pending, until its doorbell rings.
func TestIdleDispatcherKeepsItsHistory(t *testing.T) {
	t.Parallel()
	x := build(t, 2, "--dispatch-idle", "2s")
	x.waitForRegistered(t, soon)
	x.waitForParked(t)
	// A registration that a slow machine repeats wakes it once more.
	platform.Eventually(t, promise.Length(soon, 20*time.Minute), func() string {
		before := x.executions(t)
		waitFor(t, promise.Length(8*time.Second, 10*time.Minute))
		now := x.executions(t)
		if was, is := before[len(before)-1].Events, now[len(now)-1].Events; was != is {
			return fmt.Sprintf("its history grew from %d events to %d while it was parked", was, is)
		}
		return ""
	})
	description, err := x.client.DescribeWorkflowExecution(t.Context(), dispatcherID, "")
	require.NoError(t, err)
	require.Empty(t, description.GetPendingActivities())
	require.Nil(t, description.GetPendingWorkflowTask())
	require.Zero(t, timers(t, x.client, dispatcherID), "it waits for no timer, so the idle time does not matter")

	kind := "io.example.idle"
	workflow := x.Publish(t, feed.Starter("starts", kind))
	f := feed.New(feed.Options{Type: kind, Servers: []*platform.Server{x.Server}})
	var woken promise.Times
	trials := promise.Trials(2, 40)
	for n := range trials {
		x.waitForParked(t)
		sent := time.Now()
		require.Len(t, f.Send(t.Context(), n, 1), 1)
		platform.Eventually(t, soon, func() string {
			if len(x.AllRuns(t, workflow, 100)) <= n {
				return "the event has started no run"
			}
			return ""
		})
		woken = append(woken, time.Since(sent))
	}
	feed.Judge(t, feed.Evidence{Feed: f, Server: x.Server, Starts: []string{workflow}, Limit: soon})
	promise.Record(t, promise.Figure{Promise: "P-D10", What: "an idle dispatcher: growth of its history, pending " +
		"timers; an event that wakes it until its run is there", Aim: "0, 0", Trials: trials, Figure: "0, 0; " +
		woken.String()})
}

// timers counts the timers that a dispatcher has started and that neither fired nor were canceled.
func timers(t *testing.T, c client.Client, id string) int {
	t.Helper()
	open := 0
	for _, event := range platform.History(t, c, id).GetEvents() {
		switch {
		case event.GetTimerStartedEventAttributes() != nil:
			open++
		case event.GetTimerFiredEventAttributes() != nil, event.GetTimerCanceledEventAttributes() != nil:
			open--
		}
	}
	return open
}

// The metrics have the names that alerts and dashboards use, and no label that grows with restarts. The worker that is
// left after others have crashed owns a dispatcher, has evicted one of them and ended the dispatcher of another, so it
// has counted everything that can be counted without a failure of Temporal or Redis; dispatcher_terminate_errors_total
// and dispatcher_cleanup_errors_total need one.
func TestDispatcherMetricNames(t *testing.T) {
	t.Parallel()
	x := prepare(t, "--dispatch-ttl", "6s", "--dispatch-renew", "1s", "--dispatch-heartbeat", "1s",
		"--dispatch-stale-after", "5s",
		"--dispatch-check-interval", "1s", "--supervisor-interval", "5s")
	x.open(t)
	_, err := x.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: "side"}))
	require.NoError(t, err)
	serves := func(project string, n int) []*worker {
		o := x.options
		defer func() { x.options = o }()
		x.options.Args = slices.Concat(o.Args, []string{"--projects", project})
		return x.join(t, n)
	}
	side := serves("side", 1)[0]
	platform.Eventually(t, soon, func() string {
		if x.counted(t, side, "dispatcher_active") != 1 {
			return "the project has no dispatcher yet"
		}
		return ""
	})
	x.forget(side)
	serves(platform.DefaultProject, 2)
	x.waitForRegistered(t, soon)
	f := x.startTraffic(t)
	left := x.waitForOwner(t)
	gone := x.workers[0]
	if gone == left {
		gone = x.workers[1]
	}
	x.forget(gone)
	side.Kill()
	gone.Kill()
	names := []string{
		"dispatcher_active", "dispatcher_stale", "dispatcher_terminations_total", "dispatcher_takeovers_total",
		"dispatcher_takeover_seconds_count",
		"dispatcher_stale_cleanups_total", "dispatcher_cleanup_seconds_count", "dispatcher_worker_evictions_total",
		"dispatcher_duplicates",
		"dispatcher_supervisor_last_cycle_timestamp_seconds", "dispatcher_supervisor_cycles_total",
		"dispatcher_supervisor_cycle_seconds_count",
		"dispatcher_inbox_lag_seconds", "dispatcher_inbox_pending", "dispatcher_foreign", "dispatcher_deliveries_total",
	}
	counted := []string{
		"dispatcher_terminations_total", "dispatcher_stale_cleanups_total", "dispatcher_worker_evictions_total",
		"dispatcher_takeovers_total", "dispatcher_deliveries_total",
	}
	platform.Eventually(t, soon, func() string {
		var missing []string
		for _, name := range names {
			if sum, series, err := counter.Metric(t.Context(), left.Server, name); err != nil || series == 0 || sum == 0 &&
				slices.Contains(counted, name) {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return fmt.Sprintf("%s does not serve %v", left.id, missing)
		}
		return ""
	})
	x.waitForOwner(t)
	f.verify(t, x)
	code, body, err := left.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Equal(t, 200, code)
	labels := 0
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "dispatcher_") &&
			(strings.Contains(line, left.id) || strings.Contains(line, gone.id) || strings.Contains(line, side.id)) {
			labels++
		}
	}
	require.Zero(t, labels, body)
	require.InDelta(t, 1, x.counted(t, left, "dispatcher_active"), 0)
	require.Zero(t, x.counted(t, left, "dispatcher_duplicates"))
	promise.Record(t, promise.Figure{Promise: "P-D8", What: "metrics of dispatchers after an eviction and a cleanup: " +
		"names that the worker serves which made them, labels with a server's ID",
		Aim: "16, 0", Trials: 1, Figure: fmt.Sprintf("%d, %d", len(names), labels)})
}

// The API lists the workers, with their last heartbeat and the dispatchers where they are registered.
func TestWorkersAreListed(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	x.waitForRegistered(t, soon)
	var workers []*signalboxv1.WorkerProcess
	platform.Eventually(t, soon, func() string {
		res, err := x.Workers.ListWorkers(t.Context(), connect.NewRequest(&signalboxv1.ListWorkersRequest{}))
		if err != nil || len(res.Msg.GetErrors()) > 0 {
			return fmt.Sprint(err, res)
		}
		workers = res.Msg.GetWorkers()
		return ""
	})
	var ids []string
	for _, w := range workers {
		ids = append(ids, w.GetServerId())
		require.Equal(t, "alive", w.GetState())
		require.Positive(t, w.GetStaleIn().AsDuration())
		require.Len(t, w.GetRegistrations(), 1)
	}
	slices.Sort(ids)
	require.Equal(t, x.alive(), ids)
	stopped := x.workers[1]
	x.stop(t, stopped)
	platform.Eventually(t, soon, func() string {
		r := x.CLI(t, "worker", "list", "-o", "json")
		require.Zero(t, r.Code, r)
		var list []struct {
			ServerID string `json:"serverId"`
			State    string `json:"state"`
		}
		r.JSON(t, &list)
		for _, w := range list {
			if w.ServerID == stopped.id && w.State != "stopped" {
				return fmt.Sprintf("%s is %s", w.ServerID, w.State)
			}
		}
		return ""
	})
}

// Leases in memory end with the process: after a restart every dispatcher finds the former worker registered and
// without a heartbeat. Of one that was killed each reports the eviction; one that stopped in an orderly way has removed
// itself.
func TestWorkerThatStoppedIsNotEvicted(t *testing.T) {
	t.Parallel()
	options := singleProcess(t)
	options.Args = append(options.Args, "--dispatch-check-interval", "5s")
	s := platform.StartServer(t, options)
	projects := []string{platform.DefaultProject}
	for n := range promise.Trials(3, 200) {
		name := fmt.Sprintf("shop-%d", n)
		_, err := s.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: name}))
		require.NoError(t, err)
		projects = append(projects, name)
	}
	awaitOnlyWorker(t, s, projects)
	for _, tt := range []struct {
		end  func(*platform.Server)
		want int
	}{{(*platform.Server).Terminate, 0}, {(*platform.Server).Kill, len(projects)}} {
		tt.end(s)
		_, ended := s.WaitFor(soon)
		require.True(t, ended)
		s = platform.StartServer(t, options)
		awaitOnlyWorker(t, s, projects)
		evictions, _, err := counter.Metric(t.Context(), s, "dispatcher_worker_evictions_total")
		require.NoError(t, err)
		require.InDelta(t, tt.want, evictions, 0)
		require.Equal(t, tt.want, strings.Count(s.Output(), "Workers evicted"))
	}
}

// awaitOnlyWorker waits until the server is the only worker that is registered with the dispatcher of each project.
func awaitOnlyWorker(t *testing.T, s *platform.Server, projects []string) {
	t.Helper()
	id := s.ID(t)
	for _, name := range projects {
		platform.Eventually(t, soon, func() string {
			res, err := s.Dispatchers.GetDispatcher(t.Context(),
				connect.NewRequest(&signalboxv1.GetDispatcherRequest{Project: name}))
			if err != nil {
				return err.Error()
			}
			if list := res.Msg.GetDispatcher().GetWorkers(); len(list) != 1 || list[0].GetServerId() != id {
				return fmt.Sprintf("%s has the workers %v, not %s alone", name, list, id)
			}
			return ""
		})
	}
}
