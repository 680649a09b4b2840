// Package bounded_test verifies that no run takes the platform down: while one project runs the most expensive
// workloads, a steady load in another project keeps its latency, and no process exceeds its memory bound, exits or
// restarts.
package bounded_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestMain(m *testing.M) { os.Exit(platform.Main(m, func(*platform.Suite) {})) }

const (
	// memoryLimit is the soft limit of each process, maxMemory the resident memory it may use, in MB.
	memoryLimit = "GOMEMLIMIT=1GiB"
	maxMemory   = 2048

	// steadyProject runs the steady load.
	steadyProject  = "steady"
	steadyInterval = 100 * time.Millisecond
	// noise is the latency difference that other processes on the machine may cause.
	noise = 50 * time.Millisecond
)

// environment is two API servers, two workers and a runner with one Temporal, one Postgres and one Redis.
type environment struct {
	servers []*platform.Server // the APIs
	all     []*platform.Server
	dwell   time.Duration // how long a workload may run before it is canceled
	// how long a workload that ends by itself is repeated: 150 runs of the steady load at full length
	least time.Duration

	mu     sync.Mutex
	memory map[string]float64 // the largest seen, in MB, by process
}

func build(t *testing.T) *environment {
	t.Helper()
	if !platform.HasPostgres() || !platform.HasRedis() {
		t.Skipf("%s and %s are not set; `make test` starts both", platform.PostgresVariable, platform.RedisVariable)
	}
	temporal, store := platform.StartTemporal(t), platform.Postgres(t)
	x := &environment{dwell: promise.Length(2*time.Second, 30*time.Second), least: promise.Length(0, 15*time.Second),
		memory: map[string]float64{}}
	for i := range 4 {
		role := platform.API
		if i >= 2 {
			role = platform.Worker
		}
		s := platform.StartServer(t, platform.ServerOptions{
			Temporal: temporal.Address, Store: store, Roles: []string{role},
			Env: []string{memoryLimit, "SIGNALBOX_RUNNER_KINDS=shell"},
		})
		x.all = append(x.all, s)
	}
	x.all = append(x.all, platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Redis: platform.NoRedis, Roles: []string{platform.Runner},
		Store: platform.Store{Driver: "sqlite", DSN: "/nowhere/signalbox.db"},
		Env:   []string{memoryLimit, "SIGNALBOX_PROJECTS=" + platform.DefaultProject},
	}))
	x.servers = x.all[:2]
	_, err := x.servers[0].Projects.CreateProject(t.Context(),
		connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: steadyProject}))
	require.NoError(t, err)
	for _, project := range []string{platform.DefaultProject, steadyProject} {
		_, err = x.servers[0].Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
			Project: project, Source: leaf,
		}))
		require.NoError(t, err)
	}
	return x
}

// watchProcesses checks until ctx ends that every process runs and stays within its memory bound.
func (x *environment) watchProcesses(ctx context.Context, t *testing.T) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for i, s := range x.all {
			select {
			case <-s.Done():
				t.Errorf("process %d (%s) has ended", i, s.Name)
				return
			default:
			}
			name, used := fmt.Sprintf("%s %d", []string{"api", "worker", "runner"}[i/2], i%2+1), s.Memory(t)
			x.mu.Lock()
			x.memory[name] = max(x.memory[name], used)
			x.mu.Unlock()
			if used > maxMemory {
				t.Errorf("%s takes %.0f MB, more than %d", name, used, maxMemory)
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// runSteadyLoad starts a run at an interval until ctx ends, and returns the time of each from acceptance to end.
func (x *environment) runSteadyLoad(ctx context.Context, t *testing.T) promise.Times {
	t.Helper()
	var (
		mu    sync.Mutex
		times promise.Times
		open  sync.WaitGroup
	)
	ticker := time.NewTicker(steadyInterval)
	defer ticker.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		open.Go(func() {
			took, err := x.completeRun(t.Context(), x.servers[n%2])
			if err != nil {
				t.Errorf("the steady load: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, took)
		})
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	open.Wait()
	return times
}

// completeRun starts a run of the steady load, waits for its end, and returns its duration by the run's own times: a
// watch at another server than the one that wrote the row adds up to half a second.
func (x *environment) completeRun(ctx context.Context, s *platform.Server) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	started, err := s.Runs.StartRun(ctx,
		connect.NewRequest(&signalboxv1.StartRunRequest{Project: steadyProject, Workflow: "bombs/leaf"}))
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	stream, err := s.Runs.WatchRun(ctx,
		connect.NewRequest(&signalboxv1.WatchRunRequest{Project: steadyProject, Id: started.Msg.GetRun().GetId()}))
	if err != nil {
		return 0, fmt.Errorf("watch: %w", err)
	}
	var last *signalboxv1.Run
	for stream.Receive() {
		last = stream.Msg().GetRun()
	}
	if err := stream.Err(); err != nil {
		return 0, fmt.Errorf("watch: %w", err)
	}
	if last.GetStatus() != "completed" {
		return 0, fmt.Errorf("the run ended as %q", last.GetStatus())
	}
	return last.GetEndTime().AsTime().Sub(last.GetCreateTime().AsTime()), stream.Close()
}

// TestBoundedWorkloads runs one workload after the other beside the steady load.
func TestBoundedWorkloads(t *testing.T) {
	t.Parallel()
	x := build(t)
	ctx, cancel := context.WithCancel(t.Context())
	var observer sync.WaitGroup
	observer.Go(func() { x.watchProcesses(ctx, t) })
	defer observer.Wait()
	defer cancel()

	x.measure(t, 3*time.Second) // the workers begin to serve the new project
	quiet := x.measure(t, promise.Length(5*time.Second, time.Minute))
	var slowest workload
	var slowestTimes promise.Times
	for _, b := range workloads() {
		t.Run(b.name, func(t *testing.T) { //nolint:paralleltest // each workload is measured by itself
			if _, err := exec.LookPath("bwrap"); b.program && err != nil {
				t.Skip("bubblewrap is not installed; on Debian: apt-get install bubblewrap")
			}
			var steady promise.Times
			during, stop := context.WithCancel(t.Context())
			var load sync.WaitGroup
			load.Go(func() { steady = x.runSteadyLoad(during, t) })
			defer load.Wait() // also if the workload fails the test
			defer stop()
			canceled := x.runWorkload(t, b)
			stop()
			load.Wait()
			if b.spreads {
				x.stopSpreading(t, b)
			}
			x.requireWithinBounds(t, b, quiet, steady, canceled)
			if len(slowestTimes) == 0 || steady.At(.95) > slowestTimes.At(.95) {
				slowest, slowestTimes = b, steady
			}
		})
		if t.Failed() && !promise.Full() {
			return // figures after the end of a process mean nothing
		}
	}
	promise.Record(t, promise.Figure{
		Promise: "bounded", What: "runs of another project beside the bomb that slows them most",
		Aim:    "p95 at most twice the quiet one and 50 ms",
		Trials: len(slowestTimes), Figure: fmt.Sprintf("quiet %s; beside %q %s", quiet, slowest.name, slowestTimes),
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	promise.Record(t, promise.Figure{
		Promise: "bounded", What: "resident memory of two API servers and two workers with " + memoryLimit +
			" under all bombs",
		Aim: fmt.Sprintf("at most %d MB each", maxMemory), Trials: len(workloads()), Figure: x.memoryText(),
	})
}

// memoryText returns the largest resident memory of each process. The caller holds the lock.
func (x *environment) memoryText() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(x.memory)) {
		all = append(all, fmt.Sprintf("%s %.0f MB", name, x.memory[name]))
	}
	return strings.Join(all, ", ")
}

func (x *environment) measure(t *testing.T, length time.Duration) promise.Times {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	return x.runSteadyLoad(ctx, t)
}

// runWorkload runs a workload, repeatedly if it ends by itself, and returns how long each run took to end after its
// cancellation.
func (x *environment) runWorkload(t *testing.T, b workload) (canceled promise.Times) {
	t.Helper()
	workflow := x.servers[0].Publish(t, b.source())
	if b.status == "" {
		return x.cancel(t, b, x.start(t, b, workflow))
	}
	for began, rounds := time.Now(), 1; ; rounds++ {
		for i, r := range x.start(t, b, workflow) {
			ended := x.servers[i%2].Await(t, r.GetId(), platform.Patience, b.status)
			require.Contains(t, strings.ToLower(ended.GetError().String()), b.text)
		}
		if took := time.Since(began); took >= x.least {
			t.Logf("%d rounds in %s", rounds, promise.Round(took))
			return nil
		}
	}
}

// start starts the runs of a workload and calls its beside function.
func (x *environment) start(t *testing.T, b workload, workflow string) []*signalboxv1.Run {
	t.Helper()
	var runs []*signalboxv1.Run
	for i := range max(b.runs, 1) {
		runs = append(runs, x.servers[i%2].Start(t, workflow, b.input))
	}
	if b.beside != nil {
		b.beside(t, x, workflow, runs)
	}
	return runs
}

// cancel cancels the runs that have not ended after a while, and returns how long each took to end.
func (x *environment) cancel(t *testing.T, b workload, runs []*signalboxv1.Run) (canceled promise.Times) {
	t.Helper()
	dwell, stop := context.WithTimeout(t.Context(), x.dwell)
	defer stop()
	x.watchFor(t, runs[0], x.dwell)
	if b.spreads { // the first run may end soon
		<-dwell.Done()
	}
	for i, r := range runs {
		now := x.servers[i%2].Run(t, r.GetId())
		if slices.Contains(b.ends, now.GetStatus()) {
			continue
		}
		asked := time.Now()
		r := x.servers[i%2].CLI(t, "run", "cancel", now.GetId(), "--reason", "it has had its time")
		if !strings.Contains(r.Stderr, "[RUN_ENDED]") { // it may have ended in the meantime
			require.Equal(t, platform.ExitOK, r.Code, r.String())
		}
		x.servers[i%2].Await(t, now.GetId(), platform.Patience, append([]string{"canceled"}, b.ends...)...)
		canceled = append(canceled, time.Since(asked))
	}
	return canceled
}

// stopSpreading pauses the workflow of runs that start others, and waits for the end of all of them. No worker has
// stopped, so no run may have a verdict that says so.
func (x *environment) stopSpreading(t *testing.T, b workload) {
	t.Helper()
	name := "bombs/" + b.document()
	r := x.servers[0].CLI(t, "workflow", "pause", name, "--reason", "it has had its time")
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	platform.Eventually(t, platform.Patience, func() string {
		counted, err := x.servers[0].Runs.CountRuns(t.Context(), connect.NewRequest(&signalboxv1.CountRunsRequest{
			Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: name}}))
		if err != nil {
			return err.Error()
		}
		require.NotContains(t, counted.Msg.GetStuck(), "POLLER_STALE")
		open := maps.Clone(counted.Msg.GetStatuses())
		maps.DeleteFunc(open, func(status string, _ int64) bool {
			return status != "queued" && status != "running" && status != "waiting"
		})
		if len(open) > 0 {
			return fmt.Sprintf("%v are open", open)
		}
		t.Logf("ended: %v", counted.Msg.GetStatuses())
		return ""
	})
}

// watchFor waits for the given time, or until the run has ended.
func (x *environment) watchFor(t *testing.T, r *signalboxv1.Run, dwell time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), dwell)
	defer cancel()
	_, _ = x.servers[0].Watch(ctx, r.GetId()) // the deadline ends it
}

// requireWithinBounds compares the figures with the promise.
func (x *environment) requireWithinBounds(t *testing.T, b workload, quiet, steady, canceled promise.Times) {
	t.Helper()
	limit := 2*quiet.At(.95) + noise
	t.Logf("steady load: quiet %s; during %q %s (%d runs)", quiet, b.name, steady, len(steady))
	promise.Within(t, "p95 of the other project's runs", steady.At(.95), limit)
	if len(canceled) == 0 {
		return
	}
	t.Logf("ended after cancellation: %s", canceled)
	promise.Within(t, "the end after a cancellation", canceled.Worst(), endWithin)
}

// The run enters a million steps in the process that answers the requests.
func TestComputingRunIsReadAndTerminatedWithoutDelay(t *testing.T) {
	t.Parallel()
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t), Env: []string{memoryLimit},
	})
	workflow := s.Publish(t, workload{name: "loop of loops", tasks: nestedLoop}.source())
	var reads, ends promise.Times
	for range promise.Trials(2, 20) {
		id := s.Start(t, workflow, "").GetId()
		steps := int64(0)
		// The run computes while it is read: the number of its steps grows.
		platform.Eventually(t, platform.Patience, func() string {
			began := time.Now()
			r := s.Run(t, id)
			reads = append(reads, time.Since(began))
			if steps = r.GetStepsTotal(); steps < 10_000 {
				return fmt.Sprintf("the run has entered %d steps", steps)
			}
			return ""
		})
		began := time.Now()
		_, err := s.Control(t.Context(), "terminate", id, "it computes without an end")
		ends = append(ends, time.Since(began))
		require.NoError(t, err)
		r := s.Run(t, id)
		require.Equal(t, "terminated", r.GetStatus())
		require.Less(t, r.GetStepsTotal(), int64(1_000_000), "the run was still computing")
	}
	promise.Record(t, promise.Figure{Promise: "bounded", What: "GET of a run that enters a million steps, while it " +
		"computes", Aim: "1 s", Trials: len(reads), Figure: reads.String()})
	promise.Record(t, promise.Figure{Promise: "bounded", What: "terminate of a run that enters a million steps, while " +
		"it computes", Aim: "1 s", Trials: len(ends), Figure: ends.String()})
	promise.Within(t, "a read", reads.Worst(), time.Second)
	promise.Within(t, "a terminate", ends.Worst(), time.Second)
}
