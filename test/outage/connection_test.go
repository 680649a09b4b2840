package outage_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestServerStartedBeforeTemporalConnectsByItself(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		var connected, polling promise.Times
		trials := promise.Trials(2, 20)
		for range trials {
			temporal := platform.ReserveTemporal(t)
			x := &environment{temporal: temporal, options: options(t, temporal.Address, store)}
			began := time.Now()
			x.Server = platform.LaunchServer(t, x.options)
			x.AwaitAPI(t)
			promise.Within(t, "serving without Temporal", time.Since(began), 5*time.Second)
			x.workflow = x.Publish(t, platform.Document("early", hello))
			x.waitForState(t, soon, "down", "unreachable")
			waitFor(t, time.Second)
			up := temporal.Relaunch(t)
			accepting := up.AwaitAccepting(t)
			x.waitForState(t, soon, "connected", "")
			connected = append(connected, time.Since(accepting))
			x.waitForReady(t)
			polling = append(polling, time.Since(accepting))
			x.completeRun(t)
			x.Kill()
			up.Kill()
		}
		promise.Record(t, promise.Figure{
			Promise: "P-C1", What: "server started before Temporal: from Temporal's first accepted connection to connected",
			Aim: "p95 1 s", Trials: trials, Figure: connected.String()})
		promise.Record(t, promise.Figure{Promise: "P-C1", What: "server started before Temporal: from Temporal's first " +
			"accepted connection to both roles ready",
			Aim: "2 s", Trials: trials, Figure: polling.String()})
		promise.Within(t, "connecting", connected.At(.95), time.Second)
		promise.Within(t, "both roles ready", polling.At(.95), 2*time.Second)
	})
}

// Temporal is restarted under load: no process restarts, no run is lost or doubled, nothing leaks.
func TestTemporalRestartedUnderLoad(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store)
		before := x.waitForIdle(t)
		l := load.Start(t, x.Server, x.workflow, 50*time.Millisecond)
		var ready, first promise.Times
		loads := []*load.Load{l}
		trials := promise.Trials(2, 40)
		for range trials {
			waitFor(t, 2*time.Second)
			x.temporal.Kill()
			x.waitForState(t, soon, "down", "unreachable")
			waitFor(t, 2*time.Second)
			x.temporal = x.temporal.Relaunch(t)
			accepting := x.temporal.AwaitAccepting(t)
			x.waitForReady(t)
			ready = append(ready, time.Since(accepting))
			waitFor(t, time.Second-time.Since(accepting))
			one := load.New(x.Server, x.workflow)
			r := one.Send(t.Context(), 0)
			first = append(first, r.Took)
			require.Equal(t, load.Accepted, r.Outcome, "one second after the return of Temporal: %v", r.Err)
			loads = append(loads, one)
		}
		l.Stop()
		t.Logf("%s", l)
		x.verify(t, loads...)
		x.requireNoLeak(t, before)
		promise.Record(t, promise.Figure{Promise: "P-C2", What: "Temporal killed for 3 s under 20 starts/s: from accepting " +
			"to both roles ready", Aim: "1 s", Trials: trials,
			Figure: ready.String()})
		promise.Record(t, promise.Figure{
			Promise: "P-C2", What: "Temporal back for 1 s: a start's answer", Aim: "succeeds", Trials: trials,
			Figure: first.String()})
		promise.Within(t, "both roles ready", ready.At(.95), time.Second)
	})
}

// While the connection is down, every API refuses a start at once, and the refused start leaves no row.
func TestStartIsRefusedFastWhileTemporalIsDown(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store)
		x.temporal.Kill()
		x.waitForState(t, soon, "down", "unreachable")
		l := load.New(x.Server, x.workflow)
		var took promise.Times
		for n := range promise.Trials(100, 1000) {
			r := l.Send(t.Context(), n)
			require.Equal(t, load.Refused, r.Outcome)
			require.Equal(t, connect.CodeUnavailable, r.Code)
			require.Equal(t, "ENGINE_UNAVAILABLE", r.Reason)
			took = append(took, r.Took)
		}
		promise.Record(t, promise.Figure{
			Promise: "P-C5", What: "start refused while down, gRPC", Aim: "100 ms", Trials: len(took), Figure: took.String()})
		promise.Within(t, "a refusal", took.At(.99), 100*time.Millisecond)

		began := time.Now()
		code, header, body := x.post(t, "/v1/projects/default/runs", `{"workflow":"`+x.workflow+`"}`)
		promise.Within(t, "a refusal over HTTP", time.Since(began), 100*time.Millisecond)
		require.Equal(t, http.StatusServiceUnavailable, code, body)
		require.NotEmpty(t, header.Get("Retry-After"), "%v", header)
		requireReason(t, body, "ENGINE_UNAVAILABLE")
		require.Contains(t, body, "unreachable")

		refused := x.CLI(t, "run", "start", x.workflow)
		require.Equal(t, platform.ExitUnavailable, refused.Code, refused.String())
		require.Contains(t, refused.Stderr, "temporal cannot be used (unreachable)")
		require.NotContains(t, refused.Stderr, x.temporal.Address, "callers do not see addresses")
		require.Zero(t, x.count(t, x.workflow), "a refused start left a row")
	})
}

func (x *environment) post(t *testing.T, path, body string) (int, http.Header, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header, string(text)
}

// Temporal is frozen and the server has not detected it: the answer arrives within the limit and reports that the
// outcome is unknown, and the run continues once Temporal is back.
func TestStartsBeforeFrozenTemporalIsDetected(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store)
		l := load.New(x.Server, x.workflow)
		x.temporal.Freeze()
		var took promise.Times
		var sending sync.WaitGroup
		for n := range 20 {
			sending.Go(func() { l.Send(t.Context(), n) })
		}
		sending.Wait()
		for _, r := range l.Requests() {
			took = append(took, r.Took)
			if r.Outcome == load.Accepted {
				require.Equal(t, "queued", r.Status)
			}
		}
		require.Empty(t, l.Of(load.Lost))
		promise.Record(t, promise.Figure{
			Promise: "P-C5", What: "start answered while Temporal is frozen and that is not known", Aim: "2 s",
			Trials: len(took), Figure: took.String()})
		promise.Within(t, "an answer", took.Worst(), 2*time.Second)
		known := x.waitForState(t, promise.Limit(10*time.Second), "down", "hung")
		promise.Record(t, promise.Figure{
			Promise: "P-C3", What: "server, Temporal frozen under requests: until known", Aim: "10 s", Trials: 1,
			Figure: promise.Times{known}.String()})
		for _, r := range l.Of(load.Accepted) {
			require.Equal(t, "starting", x.Run(t, r.Run).GetQueuedReason())
		}
		waitFor(t, promise.Length(5*time.Second, time.Minute))
		x.temporal.Thaw()
		x.waitForReady(t)
		x.verify(t, l)
	})
}

// This is the test of the requirements: start, not connected, start Temporal, connected, create, restart Temporal,
// reconnected, create.
func TestConnectionEndToEnd(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		temporal := platform.ReserveTemporal(t)
		x := &environment{temporal: temporal, options: options(t, temporal.Address, store)}
		// so that the log shows how workers are replaced
		x.options.Args = append(x.options.Args, "--temporal-rebuild-after=2s")
		x.Server = platform.LaunchServer(t, x.options)
		x.AwaitAPI(t)
		x.workflow = x.Publish(t, platform.Document("c9", hello))
		x.waitForState(t, soon, "down", "unreachable")
		_, err := x.TryStart(t.Context(), x.workflow, "")
		require.Error(t, err)
		pid := x.PID()

		x.temporal = temporal.Restart(t)
		connected := x.waitForState(t, soon, "connected", "")
		x.completeRun(t)

		x.temporal.Terminate()
		_, ended := x.temporal.WaitFor(soon)
		require.True(t, ended)
		x.waitForState(t, soon, "down", "unreachable")
		waitFor(t, promise.Length(3*time.Second, 90*time.Second))
		x.temporal = x.temporal.Restart(t)
		again := x.waitForState(t, soon, "connected", "")
		x.completeRun(t)
		require.Equal(t, pid, x.PID())
		require.Equal(t, 2, x.count(t, x.workflow))
		for _, line := range []string{
			"Starting Temporal health monitor", "Failed initial Temporal connection - will retry automatically",
			"Attempting Temporal reconnection",
			"Initial Temporal connection successful", "All Temporal workers started", "Temporal connection unhealthy, " +
				"initiating reconnection",
			"Temporal reconnected successfully", "Workers restarted successfully", "Stopping old workers",
		} {
			platform.Eventually(t, soon, func() string {
				if !strings.Contains(x.Output(), `"`+line+`"`) {
					return "missing log line: " + line
				}
				return ""
			})
		}
		promise.Record(t, promise.Figure{Promise: "C9", What: "start, no Temporal, Temporal, create, restart of Temporal, " +
			"create: from its readiness to connected, both times",
			Aim: "30 s", Trials: 2, Figure: promise.Times{connected, again}.String()})
	})
}

// Temporal has accepted the start and its answer is lost.
func TestStartWhoseAnswerIsLost(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		temporal := platform.StartTemporal(t)
		frontend := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
		x := &environment{temporal: temporal, options: options(t, frontend.Addr(), store)}
		x.Server = platform.StartServer(t, x.options)
		x.workflow = x.Publish(t, platform.Document("lost", hello))
		l := load.New(x.Server, x.workflow)
		for trial := range promise.Trials(2, 40) {
			frontend.Blackhole(conntest.ToClient)
			r := l.Send(t.Context(), trial)
			require.Equal(t, load.Accepted, r.Outcome, "%v", r.Err)
			require.Equal(t, "queued", r.Status)
			promise.Within(t, "an answer", r.Took, 2*time.Second)
			frontend.Restore()
			x.Await(t, r.Run, soon, "completed")
			x.waitForReady(t)
		}
		x.verify(t, l)
	})
}

// The connection to Temporal breaks at random moments of a start.
func TestConnectionCutUnderLoad(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	frontend := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
	x := &environment{temporal: temporal, options: options(t, frontend.Addr(), platform.SQLite(t))}
	x.Server = platform.StartServer(t, x.options)
	x.workflow = x.Publish(t, platform.Document("cut", hello))
	l := load.Start(t, x.Server, x.workflow, 20*time.Millisecond)
	cuts := promise.Trials(20, 400)
	for range cuts {
		frontend.CutConnections()
		waitFor(t, 200*time.Millisecond)
	}
	l.Stop()
	x.verify(t, l)
	promise.Record(t, promise.Figure{Promise: "P-C2", What: "connections cut five times a second under 50 starts/s: " +
		"every accepted run once, every refused one nowhere", Trials: cuts, Figure: l.String()})
}

// Every surface reports the real state, and an operator can request an immediate reconnection.
func TestStatusIsCorrectOnEverySurface(t *testing.T) {
	t.Parallel()
	x := build(t, platform.SQLite(t), "--temporal-breaker-failures", "2", "--temporal-breaker-interval", "10m")
	now, err := x.status(t)
	require.NoError(t, err)
	require.Equal(t, "connected", now.State)
	require.Equal(t, x.temporal.Address, now.Address)
	require.Equal(t, "closed", now.Breaker.State)
	require.Len(t, now.WorkerSets, 3, "the project's worker set, that of fires and that of handed-over calls")
	require.True(t, now.WorkerSets[0].Polling)

	x.temporal.Kill()
	x.waitForState(t, soon, "down", "unreachable")
	platform.Eventually(t, soon, func() string {
		code, body, err := x.Get(t.Context(), "/readyz?role=worker")
		if err != nil || code != http.StatusServiceUnavailable {
			return "the worker is still ready: " + body
		}
		return ""
	})
	code, body, err := x.Get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "degraded")
	platform.Eventually(t, soon, func() string {
		if now, err = x.status(t); err != nil || now.Breaker.State != "open" {
			return "the breaker is " + now.Breaker.State
		}
		return ""
	})
	require.False(t, now.WorkerSets[0].Polling)
	text := x.CLI(t, "system", "status")
	require.Equal(t, platform.ExitOK, text.Code, text.String())
	require.Contains(t, text.Stdout, "unreachable")
	require.Contains(t, text.Stdout, x.temporal.Address)

	reset := x.CLI(t, "system", "reset-breaker")
	require.Equal(t, platform.ExitOK, reset.Code, reset.String())
	audit := x.CLI(t, "audit", "list", "--project", "-")
	require.Contains(t, audit.Stdout, "breaker", audit.String())

	// A breaker that is open for ten minutes does not delay the reconnection to a Temporal that is back.
	x.temporal = x.temporal.Relaunch(t)
	accepting := x.temporal.AwaitAccepting(t)
	x.waitForReady(t)
	promise.Record(t, promise.Figure{Promise: "C8", What: "breaker open with a pace of 10 minutes: from Temporal " +
		"accepting to both roles ready", Aim: "does not wait for the pace", Trials: 1,
		Figure: promise.Times{time.Since(accepting)}.String()})
	x.completeRun(t)
	now, err = x.status(t)
	require.NoError(t, err)
	require.Equal(t, "closed", now.Breaker.State)
	require.EqualValues(t, 1, now.Statistics.Outages)
	require.EqualValues(t, 2, now.Statistics.Connections)
}

// A server stops in time with many open watches, with and without a Temporal.
func TestServerStopsWithOpenWatches(t *testing.T) {
	t.Parallel()
	for _, away := range []string{"connected", "down", "hung"} {
		t.Run(away, func(t *testing.T) {
			t.Parallel()
			x := build(t, platform.SQLite(t))
			workflow := x.Publish(t, platform.Document("long", "  - pause:\n      wait:\n        seconds: 600\n"))
			id := x.Start(t, workflow, "").GetId()
			x.Await(t, id, soon, "waiting")
			ctx, cancel := context.WithCancel(t.Context())
			var opened, watching sync.WaitGroup
			defer func() { cancel(); watching.Wait() }()
			for range 100 {
				opened.Add(1)
				watching.Go(func() { x.follow(ctx, id, opened.Done) })
			}
			opened.Wait()
			switch away {
			case "down":
				x.temporal.Kill()
				x.waitForState(t, soon, "down", "unreachable")
			case "hung":
				x.temporal.Freeze()
				x.waitForState(t, soon, "down", "hung")
			}
			began := time.Now()
			x.Terminate()
			code, ended := x.WaitFor(promise.Limit(30 * time.Second))
			require.True(t, ended, "the server did not stop")
			require.Equal(t, platform.ExitOK, code, x.Output())
			promise.Record(t, promise.Figure{
				Promise: "C7", What: "server stopped with 100 open watches, Temporal " + away, Aim: "8 s", Trials: 1,
				Figure: promise.Times{time.Since(began)}.String()})
			promise.Within(t, "a stop", time.Since(began), 8*time.Second)
		})
	}
}

// follow watches a run until the watch ends for any reason, and calls open once it is established.
func (x *environment) follow(ctx context.Context, id string, open func()) {
	opened := sync.OnceFunc(open)
	defer opened()
	stream, err := x.Runs.WatchRun(ctx,
		connect.NewRequest(&signalboxv1.WatchRunRequest{Project: platform.DefaultProject, Id: id}))
	if err != nil {
		return
	}
	for stream.Receive() {
		opened()
	}
	_ = stream.Close() // how it ended does not matter
}

// Concurrent requests with one request ID make one run.
func TestConcurrentRequestsWithOneIDMakeOneRun(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store)
		for trial := range promise.Trials(3, 50) {
			l := load.New(x.Server, x.workflow)
			var posting sync.WaitGroup
			for range 20 {
				posting.Go(func() { l.Send(t.Context(), trial) })
			}
			posting.Wait()
			runs := map[string]bool{}
			for _, r := range l.Requests() {
				require.Equal(t, load.Accepted, r.Outcome, "%v", r.Err)
				runs[r.Run] = true
			}
			require.Len(t, runs, 1)
			require.Equal(t, trial+1, x.count(t, x.workflow))
		}
	})
}

// All errors in the connection's configuration are reported together, each with its path.
func TestAllConfigurationErrorsAreReportedTogether(t *testing.T) {
	t.Parallel()
	r := platform.Run(t, platform.Command{Binary: platform.ServerBinary(t), Args: []string{
		"check-config", "--temporal-check-interval=-1s", "--temporal-check-timeout=1ms", "--temporal-breaker-failures=0",
		"--temporal-drain-timeout=-2s",
		"--runs-queue-when-unavailable-enabled", "--runs-queue-when-unavailable-max-runs=0",
		"--runs-queue-when-unavailable-ttl=-1h",
		"--temporal-tls-cert-file=/nonexistent/client.crt", "--temporal-address=nowhere",
	}})
	require.Equal(t, platform.ExitFailed, r.Code, r.String())
	for _, path := range []string{
		"temporal.check_interval", "temporal.check_timeout", "temporal.breaker.failures", "temporal.drain_timeout",
		"temporal.address",
		"runs.queue_when_unavailable.max_runs", "runs.queue_when_unavailable.ttl", "temporal.tls",
	} {
		require.Contains(t, r.Stdout+r.Stderr, path, r.String())
	}
}
