package conn_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the time limit of waits, which normally take a second or two.
const patience = time.Minute

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) count(message string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), `msg="`+message+`"`)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// rig is a manager with a frontend, for faults under the test's control.
type rig struct {
	*conn.Manager

	frontend *conntest.Frontend
	log      *logBuffer
}

// quick returns options for tests, with durations several times shorter than the defaults.
func quick(address string) conn.Options {
	return conn.Options{
		Client: client.Options{HostPort: address}, CheckEvery: 3 * time.Second, CheckTimeout: time.Second,
		ProbeEvery:   500 * time.Millisecond,
		ConfirmAfter: 200 * time.Millisecond, SlowAfter: 300 * time.Millisecond, RebuildAfter: time.Second,
		DrainTimeout: 3 * time.Second,
	}
}

func newRig(t *testing.T, given conntest.Options, change ...func(*conn.Options)) *rig {
	t.Helper()
	r := &rig{frontend: conntest.Run(t, given), log: &logBuffer{}}
	options := quick(r.frontend.Addr())
	options.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, c := range change {
		c(&options)
	}
	m, err := conn.New(options)
	require.NoError(t, err)
	r.Manager = m
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, m.Stop(ctx))
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

func (r *rig) start(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Start(t.Context()))
}

func (r *rig) connect(t *testing.T) {
	t.Helper()
	r.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, r.Await(ctx))
}

// soon returns a context with the time limit of a wait.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits until the status satisfies a condition, and returns it.
func (r *rig) until(t *testing.T, want func(conn.Status) bool) conn.Status {
	t.Helper()
	var s conn.Status
	require.Eventually(t, func() bool { s = r.Status(); return want(s) }, patience, 5*time.Millisecond)
	return s
}

func is(state conn.State, kind conn.Kind) func(conn.Status) bool {
	return func(s conn.Status) bool { return s.State == state && s.Kind == kind }
}

// idle is a factory of workers that poll a queue and receive no tasks.
func idle(queue string) conn.Factory {
	return func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "nothing"})
		return w, nil
	}
}

func polling(s conn.Status) bool {
	for _, w := range s.Workers {
		if !w.Polling {
			return false
		}
	}
	return s.State == conn.Connected
}

func TestStartBeforeTemporal(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{Stopped: true})
	require.NoError(t, r.Register("orders", idle("orders")))
	_, err := r.Client()
	var down *conn.DownError
	require.ErrorAs(t, err, &down)
	require.Equal(t, conn.Connecting, down.State)

	watch := stopwatch.Start(t)
	r.start(t)
	require.Less(t, watch.Elapsed(), 500*time.Millisecond, "Start does not wait")
	r.until(t, is(conn.Down, conn.Unreachable))
	_, err = r.Client()
	require.ErrorAs(t, err, &down)
	require.Contains(t, err.Error(), r.frontend.Addr())
	require.Contains(t, err.Error(), "refused")
	require.GreaterOrEqual(t, down.RetryAfter(), time.Second)

	require.NoError(t, r.frontend.Restart())
	watch = stopwatch.Start(t)
	require.NoError(t, r.Await(soon(t)))
	require.Less(t, watch.Elapsed(), 2*time.Second)
	r.until(t, polling)
	t.Logf("connected and polling %s after the frontend accepted", watch.Elapsed())
	c, err := r.Client()
	require.NoError(t, err)
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "orders"}, "any")
	require.NoError(t, err)
	for _, line := range []string{
		"Starting Temporal health monitor", "Failed initial Temporal connection - will retry automatically",
		"Initial Temporal connection successful", "All Temporal workers started",
	} {
		require.Equal(t, 1, r.log.count(line), line)
	}
}

func TestNewGenerationAfterLongOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	hooked := make(chan client.Client, 8)
	r.OnConnect("controllers", func(_ context.Context, c client.Client) error { hooked <- c; return nil })
	r.connect(t)
	r.until(t, polling)
	first := <-hooked
	r.frontend.Stop()
	stopped := time.Now()
	s := r.until(t, is(conn.Down, conn.Unreachable))
	down := time.Now() // the outage began before, with its first sign
	t.Logf("down after %s: %s", down.Sub(stopped), s.LastError)
	require.Eventually(t, func() bool { return time.Since(down) > 2*time.Second }, patience, 10*time.Millisecond)
	require.NoError(t, r.frontend.Restart())
	begin := time.Now()
	require.NoError(t, r.Await(soon(t)))
	s = r.until(t, polling)
	t.Logf("connected and polling %s after the frontend accepted again", time.Since(begin))
	require.Equal(t, 2, s.Generation)
	require.Equal(t, int64(1), s.Statistics.Outages)
	require.Greater(t, s.Statistics.LastOutage, 2*time.Second)
	second := <-hooked
	require.NotSame(t, first, second)
	current, err := r.Client()
	require.NoError(t, err)
	require.Same(t, second, current)
	r.until(t, func(s conn.Status) bool { return s.Draining == 0 })
	require.NoError(t, r.frontend.Await(soon(t), func() bool {
		return r.frontend.Connections() == 1
	}), "the old generation's connection is closed")
	for _, line := range []string{
		"Temporal connection unhealthy, initiating reconnection", "Temporal reconnected successfully",
		"Workers restarted successfully", "Stopping old workers",
	} {
		require.Equal(t, 1, r.log.count(line), line)
	}
	require.Equal(t, 2, r.log.count("Workflow creators reinjected successfully"))
}

// TestOutageKeepsWorkers has an outage that is longer than freshAfter and shorter than RebuildAfter.
func TestOutageKeepsWorkers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		begin   func(*conntest.Frontend)
		recover func(*conntest.Frontend) error
	}{
		"stopped": {(*conntest.Frontend).Stop, (*conntest.Frontend).Restart},
		"frozen":  {(*conntest.Frontend).Freeze, func(f *conntest.Frontend) error { f.Thaw(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, conntest.Options{}, func(o *conn.Options) { o.RebuildAfter = time.Minute })
			require.NoError(t, r.Register("orders", idle("orders")))
			hooked := make(chan struct{}, 8)
			r.OnConnect("controllers", func(context.Context, client.Client) error { hooked <- struct{}{}; return nil })
			r.connect(t)
			<-hooked
			before := r.until(t, polling)
			tt.begin(r.frontend)
			r.until(t, func(s conn.Status) bool { return s.State == conn.Down && s.Attempts >= 3 })
			require.NoError(t, tt.recover(r.frontend))
			begin := time.Now()
			after := r.until(t, polling)
			t.Logf("polling %s after the recovery", time.Since(begin))
			require.Equal(t, 1, after.Generation)
			require.Equal(t, before.Workers[0].Since, after.Workers[0].Since)
			<-hooked
			require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Connections() == 1 }))
		})
	}
}

func TestShortOutageKeepsWorkers(t *testing.T) {
	t.Parallel()
	// on a slow machine a short outage takes longer than the tests' second
	r := newRig(t, conntest.Options{}, func(o *conn.Options) { o.RebuildAfter = time.Minute })
	require.NoError(t, r.Register("orders", idle("orders")))
	r.connect(t)
	before := r.until(t, polling)
	for range 3 {
		require.NoError(t, r.frontend.Flap(soon(t), 600*time.Millisecond, 300*time.Millisecond, 1))
	}
	after := r.until(t, polling)
	require.Equal(t, 1, after.Generation)
	require.Equal(t, before.Workers[0].Since, after.Workers[0].Since)
}

// A poll survives any number of interruptions: the SDK would back off longer after each.
func TestPollsAreOpenAgainAfterEachInterruption(t *testing.T) {
	t.Parallel()
	const interruptions, polls = 12, 3
	// on a slow machine an interruption takes longer than the tests' second
	r := newRig(t, conntest.Options{}, func(o *conn.Options) { o.RebuildAfter = time.Minute })
	require.NoError(t, r.Register("orders", idle("orders")))
	r.connect(t)
	r.until(t, polling)
	require.NoError(t, r.frontend.AwaitPollers(soon(t), "orders", polls))
	sent := func() int {
		return r.frontend.Calls("PollWorkflowTaskQueue") + r.frontend.Calls("PollActivityTaskQueue")
	}
	for range interruptions {
		before, watch := sent(), stopwatch.Start(t)
		r.frontend.CutConnections()
		// The first poll may be sent again before the last one has ended, so their number need not become zero.
		require.NoError(t, r.frontend.Await(soon(t), func() bool { return sent() >= before+polls }))
		require.NoError(t, r.frontend.AwaitPollers(soon(t), "orders", polls))
		require.Less(t, watch.Elapsed(), 8*time.Second, "the SDK would wait for up to 10 s")
	}
	require.Equal(t, 1, r.Status().Generation)
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	r.connect(t)
	r.until(t, polling)
	require.True(t, r.Polling("orders"))
	require.False(t, r.Polling("unregistered"))
	r.frontend.Freeze()
	begin := time.Now()
	s := r.until(t, is(conn.Down, conn.Hung))
	t.Logf("hung after %s", time.Since(begin))
	require.False(t, s.Workers[0].Polling)
	require.False(t, r.Polling("orders"))
	r.frontend.Thaw()
	begin = time.Now()
	r.until(t, polling)
	t.Logf("polling %s after the thaw", time.Since(begin))
}

func TestKindsOfDown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind    conn.Kind
		text    string
		begin   func(*conntest.Frontend)
		restore func(*conntest.Frontend) error
	}{
		"namespace removed": {
			conn.NamespaceMissing, "Namespace default is not found",
			func(f *conntest.Frontend) { f.RemoveNamespace("default") },
			func(f *conntest.Frontend) error { f.SetNamespaces("default"); return nil },
		},
		"credentials revoked": {
			conn.AuthFailed, "unauthorized",
			func(f *conntest.Frontend) { f.SetAPIKeys("another") },
			func(f *conntest.Frontend) error { f.SetAPIKeys(); return nil },
		},
		"silent port": {
			conn.Hung, "deadline exceeded",
			func(f *conntest.Frontend) { f.Mute(); f.CutConnections() },
			func(f *conntest.Frontend) error { f.Unmute(); return nil },
		},
		"answers lost": {
			conn.Hung, "deadline exceeded",
			func(f *conntest.Frontend) { f.Blackhole(conntest.ToClient) },
			func(f *conntest.Frontend) error { f.Restore(); return nil },
		},
		"requests lost": {
			conn.Hung, "deadline exceeded",
			func(f *conntest.Frontend) { f.Blackhole(conntest.ToServer) },
			func(f *conntest.Frontend) error { f.Restore(); return nil },
		},
		"too slow to count": {
			conn.Hung, "",
			func(f *conntest.Frontend) { f.Slow(2 * time.Second) },
			func(f *conntest.Frontend) error { f.Slow(0); return nil },
		},
		"unavailable": {
			conn.Unreachable, "shutting down",
			func(f *conntest.Frontend) { f.Fail("", serviceerror.NewUnavailable("shutting down")) },
			func(f *conntest.Frontend) error { f.Clear(); return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, conntest.Options{})
			require.NoError(t, r.Register("orders", idle("orders")))
			r.connect(t)
			r.until(t, polling)
			accepted := r.frontend.Accepted()
			test.begin(r.frontend)
			begin := time.Now()
			s := r.until(t, is(conn.Down, test.kind))
			took := time.Since(begin)
			require.Contains(t, s.LastError, test.text)
			require.NoError(t, test.restore(r.frontend))
			begin = time.Now()
			r.until(t, polling)
			t.Logf("%s after %s, polling %s after the recovery; %d connections", test.kind, took, time.Since(begin),
				r.frontend.Accepted()-accepted)
		})
	}
}

func TestConnectionsLostByTheNetworkAreReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	r.connect(t)
	r.until(t, polling)
	r.frontend.LoseConnections()
	begin := time.Now()
	r.until(t, func(s conn.Status) bool { return s.Generation == 2 && polling(s) })
	t.Logf("polling over a new connection after %s", time.Since(begin))
}

func TestSlowIsDegraded(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{}, func(o *conn.Options) {
		o.CheckTimeout = 5 * time.Second
	}) // slow must not become hung
	r.connect(t)
	r.frontend.Slow(600 * time.Millisecond)
	r.until(t, is(conn.Degraded, conn.Slow))
	_, err := r.Client()
	require.NoError(t, err, "it still answers")
	r.frontend.Slow(0)
	s := r.until(t, is(conn.Connected, conn.None))
	require.Equal(t, 1, s.Generation, "nothing was replaced")
}

func TestRateLimitedIsNotDown(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	r.connect(t)
	calls := r.frontend.Calls("DescribeNamespace")
	r.frontend.Fail("DescribeNamespace", serviceerror.NewResourceExhausted(0, "too many requests"))
	require.NoError(t, r.frontend.AwaitCalls(soon(t), "DescribeNamespace", calls+2))
	require.Equal(t, conn.Connected, r.Status().State)
}

// TestRateLimitedAtFirst connects to a server that refuses DescribeNamespace for its rate limit, and so does not return
// the namespace's ID. Under the race detector it shows that Status may be called while the ID is set later.
func TestRateLimitedAtFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	r.frontend.Fail("DescribeNamespace", serviceerror.NewResourceExhausted(0, "too many requests"))
	r.connect(t)
	require.Empty(t, r.Status().NamespaceID)
	r.frontend.Clear()
	s := r.until(t, func(s conn.Status) bool { return s.NamespaceID != "" })
	require.Equal(t, 1, s.Generation)
}

func TestGoAwayIsNoOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	r.connect(t)
	r.until(t, polling)
	for range 5 {
		accepted := r.frontend.Accepted()
		r.frontend.GoAway()
		require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Accepted() > accepted }))
		c, err := r.Client()
		require.NoError(t, err)
		_, err = c.CheckHealth(soon(t), nil) // the new connection is in use
		require.NoError(t, err)
	}
	s := r.until(t, polling)
	require.Equal(t, 1, s.Generation)
	require.Zero(t, s.Statistics.Outages)
	require.Zero(t, r.log.count("Temporal connection unhealthy, initiating reconnection"))
}

func TestWorkerSetThatDoesNotPollDegradesTheConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	r.connect(t)
	r.until(t, polling)
	r.frontend.Fail("PollWorkflowTaskQueue", serviceerror.NewPermissionDenied("no polling here", ""))
	r.frontend.Fail("PollActivityTaskQueue", serviceerror.NewPermissionDenied("no polling here", ""))
	r.frontend.CutConnections()
	s := r.until(t, is(conn.Degraded, conn.NotPolling))
	require.True(t, s.Workers[0].Running)
	require.Contains(t, s.Workers[0].Error, "no polling here")
	r.frontend.Clear()
	r.until(t, polling)
}

func TestSetThatFailsToStartDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	var tries atomic.Int32
	require.NoError(t, r.Register("broken", func(c client.Client) (worker.Worker, error) {
		switch tries.Add(1) {
		case 1:
			return nil, errors.New("no such table")
		case 2:
			return worker.New(c, "broken", worker.Options{MaxConcurrentWorkflowTaskPollers: 1}), nil // the SDK panics
		default:
			return idle("broken")(c)
		}
	}))
	r.connect(t)
	s := r.until(t, func(s conn.Status) bool { return len(s.Workers) == 2 && s.Workers[1].Polling })
	require.Contains(t, s.Workers[0].Error, "no such table")
	r.until(t, func(s conn.Status) bool { return strings.Contains(s.Workers[0].Error, "panic") })
	s = r.until(t, polling)
	require.Empty(t, s.Workers[0].Error)
	require.Equal(t, 1, s.Generation)
	require.Zero(t, r.log.count("All Temporal workers started"), "one of them was not started")
	require.Equal(t, 1, r.log.count("Failed to start worker"), "a repeated failure is logged once")
}

// killer is a worker plugin that can call OnFatalError, as the SDK does when a worker dies.
type killer struct {
	worker.PluginBase

	kill atomic.Value
}

func (*killer) Name() string { return "killer" }

func (k *killer) ConfigureWorker(_ context.Context, options worker.PluginConfigureWorkerOptions) error {
	k.kill.Store(options.WorkerOptions.OnFatalError)
	return nil
}

func TestDeadWorkerIsReplacedAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	require.NoError(t, r.Register("orders", idle("orders")))
	fatal := &killer{}
	var made, called atomic.Int32
	require.NoError(t, r.Register("mortal", func(c client.Client) (worker.Worker, error) {
		if made.Add(1) == 2 {
			return nil, errors.New("not just now")
		}
		return worker.New(c, "mortal", worker.Options{
			Plugins: []worker.Plugin{fatal}, OnFatalError: func(error) { called.Add(1) },
		}), nil
	}))
	r.connect(t)
	before := r.until(t, polling)
	fatal.kill.Load().(func(error))(errors.New("the namespace is gone"))
	r.until(t, func(s conn.Status) bool { return made.Load() == 3 && polling(s) })
	after := r.Status()
	require.Equal(t, int32(1), called.Load(), "the worker's own OnFatalError is called as well")
	require.Equal(t, 1, after.Generation)
	require.Equal(t, before.Workers[1].Since, after.Workers[1].Since, "the other worker was not replaced")
	require.Equal(t, 1, r.log.count("Worker has died, replacing it"))
}

func TestRegisterAndUnregister(t *testing.T) {
	t.Parallel()
	r := newRig(t, conntest.Options{})
	r.connect(t)
	require.Error(t, r.Register("", idle("orders")))
	require.NoError(t, r.Register("orders", idle("orders")))
	require.ErrorContains(t, r.Register("orders", idle("orders")), "already")
	require.NoError(t, r.frontend.AwaitPollers(soon(t), "orders", 1))
	require.NoError(t, r.Unregister(soon(t), "orders"))
	require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Pollers("orders").Total() == 0 }))
	require.Empty(t, r.Status().Workers)
	require.ErrorContains(t, r.Unregister(soon(t), "orders"), "no worker set")
	require.NoError(t, r.Register("orders", idle("orders")))
	r.until(t, polling)
}

func TestBorrowedClientOutlivesItsGeneration(t *testing.T) {
	t.Parallel()
	var identity atomic.Value
	identity.Store("one")
	r := newRig(t, conntest.Options{}, func(o *conn.Options) {
		o.Identity = func() (string, error) { return identity.Load().(string), nil }
	})
	r.connect(t)
	c, release, err := r.Borrow()
	require.NoError(t, err)
	identity.Store("two")
	r.until(t, func(s conn.Status) bool { return s.Generation == 2 })
	require.Equal(t, conn.Connected, r.Status().State)
	_, err = c.CheckHealth(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 1, r.Status().Draining)
	release()
	r.until(t, func(s conn.Status) bool { return s.Draining == 0 })
	_, err = c.CheckHealth(t.Context(), nil)
	require.Error(t, err, "it is closed")
}

func TestNewReportsAllProblemsOfOptions(t *testing.T) {
	t.Parallel()
	_, err := conn.New(conn.Options{CheckEvery: -time.Second, DrainTimeout: -1, BreakerAfter: -1})
	require.ErrorContains(t, err, "CheckEvery is -1s")
	require.ErrorContains(t, err, "DrainTimeout is -1ns")
	require.ErrorContains(t, err, "BreakerAfter is -1")
	_, err = conn.New(conn.Options{CheckTimeout: time.Second, SlowAfter: time.Second})
	require.ErrorContains(t, err, "nothing would ever be slow")
}
