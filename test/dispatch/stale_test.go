package dispatch_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// startForeignDispatcher starts a dispatcher without an owner, as a program other than this platform would.
func (x *environment) startForeignDispatcher(t *testing.T, id, queue string, memo map[string]any) client.WorkflowRun {
	t.Helper()
	run, err := x.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue, Memo: memo},
		succession.WorkflowType)
	require.NoError(t, err)
	return run
}

// ended waits until an execution is terminated and returns it.
func (x *environment) ended(t *testing.T, limit time.Duration, id, runID string) succession.Execution {
	t.Helper()
	var found succession.Execution
	platform.Eventually(t, limit, func() string {
		for _, e := range succession.Read(t, x.client, id) {
			if e.RunID == runID && !e.Open() {
				found = e
				return ""
			}
		}
		return fmt.Sprintf("%s %s is open", id, runID)
	})
	require.NotEmpty(t, found.Reason, "%s was not terminated: %s", id, found)
	return found
}

// A dispatcher of an early release, which has our ID and no memo, is replaced within one attempt; one with an ID of
// an older scheme is ended, since another dispatcher routes in its place.
func TestDispatchersOfOlderReleasesAreReplaced(t *testing.T) {
	t.Parallel()
	x := prepare(t, "--supervisor-legacy-ids", "dispatcher-{project}-host-*")
	x.open(t)
	legacy := x.startForeignDispatcher(t, dispatcherID, "signalbox-default", nil)
	older := x.startForeignDispatcher(t, "dispatcher-default-host-a-4711", "signalbox-default", map[string]any{
		"project": "default", "task_queue": "signalbox-default", "owner": "host-a", "epoch": 3, "interpreter": 1,
	})
	// Its owner is alive, by its heartbeat.
	beats, err := redislease.Open(redislease.Options{URL: x.redis.URL(), Prefix: x.key("")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, beats.Close()) })
	_, _, err = beats.Acquire(t.Context(), "worker:host-a", "host-a", []byte(`{"serverId":"host-a"}`),
		lease.Lifetime{TTL: time.Hour, Retention: time.Hour})
	require.NoError(t, err)
	x.join(t, 1)
	x.waitForOwner(t)
	require.Contains(t, x.ended(t, soon, dispatcherID, legacy.GetRunID()).Reason, x.workers[0].id)
	platform.Eventually(t, soon, func() string {
		x.reconcile(t, false)
		for _, e := range succession.Read(t, x.client, older.GetID()) {
			if e.Open() {
				return "the dispatcher of an older scheme is open"
			}
		}
		return ""
	})
	line := succession.Read(t, x.client, dispatcherID)
	require.Len(t, line, 2)
	require.Empty(t, succession.Wrong(line))
	changes := x.history(t, line)
	require.Equal(t, "takeover", changes[0].GetHow())
	require.Equal(t, legacy.GetRunID(), changes[0].GetEndedRunId())
	f := x.startTraffic(t)
	waitFor(t, time.Second)
	f.verify(t, x)
	promise.Record(t, promise.Figure{Promise: "P-D2", What: "a dispatcher of an early release under our ID, and one of " +
		"an older scheme whose owner has a heartbeat: ended, replaced within one attempt", Aim: "1 attempt", Trials: 1,
		Figure: "1 attempt"})
}

// Foreign dispatchers are never touched, though they have our workflow type: another project's under our ID, and
// another program's.
func TestForeignDispatchersAreNotTouched(t *testing.T) {
	t.Parallel()
	x := prepare(t)
	x.open(t)
	foreign := x.startForeignDispatcher(t, dispatcherID, "elsewhere", map[string]any{
		"project": "default-signalbox", "task_queue": "default", "owner": "somebody", "epoch": 7, "interpreter": 1,
	})
	x.startForeignDispatcher(t, "somebody-elses-own", "elsewhere", nil)
	x.join(t, 1)
	platform.Eventually(t, soon, func() string {
		d, err := x.dispatcher(t)
		switch {
		case err != nil:
			return err.Error()
		case d.GetState() != "foreign":
			return fmt.Sprintf("the dispatcher is %s (%s)", d.GetState(), d.GetDetail())
		}
		return ""
	})
	require.Positive(t, items(x.reconcile(t, false))["alert foreign"])
	r := x.CLI(t, "dispatcher", "reconcile", "--dry-run")
	require.Zero(t, r.Code, r)
	require.Regexp(t, `^ACTION\s+KIND\s+PROJECT\s+WORKFLOW\s+DONE\s+REASON`, r.Stdout)
	require.Regexp(t, `\nalert\s+foreign\s.*somebody-elses-own\s+for you\s+\S`, r.Stdout)
	line := succession.ReadAll(t, x.client)
	require.Len(t, line, 2)
	require.Len(t, succession.Open(line), 2, "both are still open")
	// When it has ended, the ID is free.
	require.NoError(t, x.client.TerminateWorkflow(t.Context(), dispatcherID, foreign.GetRunID(), "done"))
	x.waitForOwner(t)
}

// The worker of a project crashes, and no other serves it: the supervisor of another project's worker cleans up.
func TestStaleDispatcherIsCleanedUp(t *testing.T) {
	t.Parallel()
	x := prepare(t)
	x.open(t)
	_, err := x.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: "side"}))
	require.NoError(t, err)
	options := x.options
	x.options.Args = slices.Concat(options.Args, []string{"--projects", platform.DefaultProject})
	x.join(t, 1)
	x.waitForOwner(t)
	var cleanup promise.Times
	trials := promise.Trials(1, 40)
	const side = "dispatcher-side-signalbox-side"
	for range trials {
		o := options
		o.Args = slices.Concat(options.Args, []string{"--projects", "side"})
		s := platform.StartServer(t, o)
		var run string
		platform.Eventually(t, soon, func() string {
			if open := succession.Open(succession.Read(t, x.client, side)); len(open) == 1 {
				run = open[0].RunID
				return ""
			}
			return "the project has no dispatcher yet"
		})
		s.Kill()
		killed := time.Now()
		e := x.ended(t, soon, side, run)
		cleanup = append(cleanup, e.Close.Sub(killed))
		platform.Eventually(t, soon, func() string {
			n, err := x.redis.Client.Exists(t.Context(), x.key("dispatcher:side:signalbox-side")).Result()
			switch {
			case err != nil:
				return err.Error()
			case n != 0:
				return "the entry of the owner still exists"
			}
			return ""
		})
	}
	succession.Judge(t, succession.ReadAll(t, x.client))
	promise.Within(t, "cleanup", cleanup.At(.95), 30*time.Second)
	promise.Record(t, promise.Figure{Promise: "P-D6", What: "the only worker of a project killed: until another " +
		"project's supervisor has ended its dispatcher", Aim: "p95 30 s", Trials: trials, Figure: cleanup.String()})
}
