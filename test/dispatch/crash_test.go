package dispatch_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// The owner is killed while another worker runs: routing continues at once, and another owner takes over when the lease
// has expired.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	f := x.startTraffic(t)
	var takeover promise.Times
	trials := promise.Trials(1, 40)
	for n := range trials {
		owner := x.waitForOwner(t)
		x.forget(owner)
		owner.Kill()
		_, took := x.waitForSuccessor(t, owner)
		takeover = append(takeover, took)
		if n+1 < trials {
			x.join(t, 1)
		}
	}
	v := f.verify(t, x)
	line := x.executions(t)
	require.Equal(t, trials, succession.Terminated(line), "one takeover for each crash")
	changes := x.history(t, line)
	require.Equal(t, "takeover", changes[len(changes)-1].GetHow())
	promise.Within(t, "takeover", takeover.At(.95), 10*time.Second)
	promise.Within(t, "pause of routing", longestWait(v), 10*time.Second)
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "owner killed (SIGKILL), another worker lives: until it " +
		"owns the dispatcher", Aim: "p95 10 s", Trials: trials, Figure: takeover.String()})
	promise.Record(t, promise.Figure{
		Promise: "P-D5", What: "the same: longest time that an event waited for its run", Aim: "p95 10 s", Trials: trials,
		Figure: promise.Times{longestWait(v)}.String()})
	promise.Record(t, promise.Figure{Promise: "P-D2", What: "the same: dispatchers replaced, each by one attempt, the " +
		"termination before the new start in the history", Aim: "all", Trials: trials, Figure: "all"})
	promise.Record(t, promise.Figure{
		Promise: "P-D4", What: "the same, under events that start runs and wake one", Aim: "none lost, none twice",
		Trials: trials, Figure: f.String()})
}

// All workers are killed and one is started when the lease has expired. Events published meanwhile are delivered.
func TestAllWorkersKilled(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	f := x.startTraffic(t)
	var boot promise.Times
	trials := promise.Trials(1, 20)
	for range trials {
		for _, w := range x.workers {
			w.Kill()
		}
		x.workers = nil
		platform.Eventually(t, soon, func() string {
			d, err := x.dispatcher(t)
			switch {
			case err != nil:
				return err.Error()
			case d.GetLease().GetState() == "held":
				return "the lease has not expired yet"
			}
			return ""
		})
		began := time.Now()
		x.join(t, 1)
		x.waitForOwner(t)
		boot = append(boot, time.Since(began))
		x.join(t, 1)
	}
	v := f.verify(t, x)
	line := x.executions(t)
	require.Equal(t, trials, succession.Terminated(line))
	x.history(t, line)
	promise.Within(t, "takeover at boot", boot.At(.95), 3*time.Second)
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "all workers killed, one started when the lease was out: " +
		"from its start until it owns the dispatcher", Aim: "p95 3 s", Trials: trials, Figure: boot.String()})
	promise.Record(t, promise.Figure{
		Promise: "P-D4", What: "the same, under events; the longest that one waited", Aim: "none lost, none twice",
		Trials: trials, Figure: f.String() + "; " + promise.Times{longestWait(v)}.String()})
}

// The owner is frozen until its heartbeat has expired and it is replaced. Its outdated requests are refused. After it
// is thawed it detects the loss of the dispatcher and changes nothing: the execution of its successor continues.
func TestOwnerFrozen(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	f := x.startTraffic(t)
	var takeover promise.Times
	trials := promise.Trials(1, 20)
	for range trials {
		old := x.waitForOwner(t)
		was, lost, terminated := x.currentOwnership(t), x.counted(t, old, "dispatcher_takeovers_total", `outcome="lost"`),
			x.counted(t, old, "dispatcher_terminations_total")
		old.Freeze()
		x.forget(old)
		owner, took := x.waitForSuccessor(t, old)
		takeover = append(takeover, took)
		x.waitForExpiry(t, old)
		x.requireStaleOwnerRefused(t, was)
		before := x.currentOwnership(t)
		require.Equal(t, owner.id, before.owner.Holder)
		old.Thaw()
		x.workers = append(x.workers, old)
		platform.Eventually(t, soon, func() string {
			now, owns := x.counted(t, old, "dispatcher_takeovers_total", `outcome="lost"`),
				x.counted(t, old, "dispatcher_active")
			if now <= lost || owns > 0 {
				return fmt.Sprintf("%s has lost %v dispatchers, %v before it was frozen, and owns %v", old.id, now, lost, owns)
			}
			return ""
		})
		require.Contains(t, old.Output(), "Ownership lost; the dispatcher runs on")
		waitFor(t, 5*time.Second) // it renews its heartbeat, claims, and scans for stale dispatchers
		now := x.currentOwnership(t)
		require.Equal(t, before.owner, now.owner)
		require.Equal(t, before.runID, now.runID, "the new dispatcher was replaced")
		require.Equal(t, before.lease.Token, now.lease.Token)
		require.InDelta(t, terminated, x.counted(t, old, "dispatcher_terminations_total"), 0,
			"it has terminated a dispatcher")
		old.AwaitReady(t)
	}
	f.verify(t, x)
	line := x.executions(t)
	require.LessOrEqual(t, succession.Terminated(line), trials)
	x.history(t, line)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "owner frozen past its lease and its heartbeat, replaced, " +
		"thawed: until another owned the dispatcher; renewal, claim, resignation and termination of the old one were refused",
		Aim: "p95 20 s; no duplicate", Trials: trials, Figure: takeover.String()})
	promise.Record(t, promise.Figure{
		Promise: "P-D4", What: "the same, under events", Aim: "none lost, none twice", Trials: trials, Figure: f.String()})
}

// A worker in a crash loop beside a healthy owner never touches the dispatcher.
func TestCrashLoopingWorkerKeepsOwner(t *testing.T) {
	t.Parallel()
	x := build(t, 1)
	before, err := x.dispatcher(t)
	require.NoError(t, err)
	trials := promise.Trials(4, 20)
	for n := range trials {
		s := platform.LaunchServer(t, x.options)
		waitFor(t, time.Duration(n)*300*time.Millisecond%(2*time.Second)+100*time.Millisecond)
		s.Kill()
	}
	// Workers with a failing setup.
	busy, keyless, storeless := x.options, x.options, x.options
	busy.Args = append(slices.Clone(busy.Args), "--listen", x.workers[0].Address)
	keyless.Args = append(slices.Clone(keyless.Args), "--encryption-keys", "test=there-is-no-such-file")
	storeless.Store.DSN = "postgres://nobody@" + platform.Address(platform.FreePort(t)) + "/nothing"
	launched := map[string]*platform.Server{}
	for _, brokenPlatform := range []struct {
		options platform.ServerOptions
		says    string
	}{{busy, "address already in use"}, {keyless, "there-is-no-such-file"}, {storeless, "connection refused"}} {
		launched[brokenPlatform.says] = platform.LaunchServer(t, brokenPlatform.options)
	}
	for says, s := range launched {
		code, ended := s.WaitFor(soon)
		require.True(t, ended, "a server that should have failed with %q is running: %s", says, s.Output())
		require.NotZero(t, code, s.Output())
		require.Contains(t, s.Output(), says)
	}
	now, err := x.dispatcher(t)
	require.NoError(t, err)
	require.Equal(t, before.GetExecution().GetRunId(), now.GetExecution().GetRunId())
	require.Equal(t, before.GetLease().GetOwner().GetEpoch(), now.GetLease().GetOwner().GetEpoch())
	require.Equal(t, before.GetLease().GetAcquireTime().AsTime(), now.GetLease().GetAcquireTime().AsTime())
	require.Len(t, succession.Owners(x.executions(t)), 1)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "a worker in a crash loop beside a healthy owner: changes " +
		"of the dispatcher", Aim: "0", Trials: trials, Figure: "0"})
}

// Workers are stopped at random moments of their start. Nothing remains that keeps the next one from owning the
// dispatcher.
func TestWorkersStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	x := build(t, 0)
	f := x.startTraffic(t)
	trials := promise.Trials(4, 40)
	for n := range trials {
		s := platform.LaunchServer(t, x.options)
		waitFor(t, time.Duration(n)*370*time.Millisecond%(1500*time.Millisecond)+200*time.Millisecond)
		s.Terminate()
		_, ended := s.WaitFor(soon)
		require.True(t, ended)
	}
	began := time.Now()
	x.join(t, 1)
	x.waitForOwner(t)
	took := time.Since(began)
	f.verify(t, x)
	line := x.executions(t)
	if terminated := succession.Terminated(line); promise.Full() {
		require.Zero(t, terminated, "the dispatcher of a stopped worker is adopted")
	} else {
		require.LessOrEqual(t, terminated, 1, "on a busy machine a stop may interrupt a start")
	}
	x.history(t, line)
	promise.Within(t, "the next start", took, 3*time.Second)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "workers stopped (SIGTERM) while they start: until the next " +
		"owns the dispatcher", Aim: "3 s; nothing terminated", Trials: trials, Figure: promise.Times{took}.String()})
}

// Twenty workers start at once: one dispatcher, one owner.
func TestManyWorkersStartAtOnce(t *testing.T) {
	t.Parallel()
	x := build(t, 0)
	f := x.startTraffic(t)
	workers := promise.Trials(5, 20)
	x.join(t, workers)
	x.waitForOwner(t)
	f.verify(t, x)
	line := x.executions(t)
	open, owners, terminated := len(succession.Open(line)), len(succession.Owners(line)), succession.Terminated(line)
	require.Equal(t, 1, open)
	require.LessOrEqual(t, terminated, 1)
	require.Equal(t, 1, owners)
	promise.Record(t, promise.Figure{
		Promise: "P-D3", What: "workers started at once: owners, dispatchers open, terminated", Aim: "1, 1, at most 1",
		Trials: workers,
		Figure: fmt.Sprintf("%d, %d, %d", owners, open, terminated)})
}
