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

// The owner is killed while another worker lives: routing goes on at once, another owner takes over when the lease is out.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	f := x.publishes(t)
	var takeover promise.Times
	trials := promise.Trials(1, 40)
	for n := range trials {
		owner := x.settle(t)
		x.leave(owner)
		owner.Kill()
		_, took := x.succeeds(t, owner)
		takeover = append(takeover, took)
		if n+1 < trials {
			x.join(t, 1)
		}
	}
	v := f.judge(t, x)
	line := x.line(t)
	require.Equal(t, trials, succession.Terminated(line), "one takeover for each crash")
	changes := x.history(t, line)
	require.Equal(t, "takeover", changes[len(changes)-1].GetHow())
	promise.Within(t, "takeover", takeover.At(.95), 20*time.Second)
	promise.Within(t, "pause of routing", pause(v), 10*time.Second)
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "owner killed (SIGKILL), another worker lives: until it owns the dispatcher", Aim: "p95 20 s", Trials: trials, Figure: takeover.String()})
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "the same: longest time that an event waited for its run", Aim: "p95 10 s", Trials: trials, Figure: promise.Times{pause(v)}.String()})
	promise.Record(t, promise.Figure{Promise: "P-D2", What: "the same: dispatchers replaced, each by one attempt, the termination before the new start in the history", Aim: "all", Trials: trials, Figure: "all"})
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "the same, under events that start runs and wake one", Aim: "none lost, none twice", Trials: trials, Figure: f.String()})
}

// All workers are killed and one comes back when the lease is out. What was published meanwhile is delivered.
func TestAllWorkersKilled(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	f := x.publishes(t)
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
				return "the lease is not out yet"
			}
			return ""
		})
		began := time.Now()
		x.join(t, 1)
		x.settle(t)
		boot = append(boot, time.Since(began))
		x.join(t, 1)
	}
	v := f.judge(t, x)
	line := x.line(t)
	require.Equal(t, trials, succession.Terminated(line))
	x.history(t, line)
	promise.Within(t, "takeover at boot", boot.At(.95), 3*time.Second)
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "all workers killed, one started when the lease was out: from its start until it owns the dispatcher", Aim: "p95 3 s", Trials: trials, Figure: boot.String()})
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "the same, under events; the longest that one waited", Aim: "none lost, none twice", Trials: trials, Figure: f.String() + "; " + promise.Times{pause(v)}.String()})
}

// The owner is frozen until it counts as gone and is replaced. What it would do then is refused, and thawed it finds that it has lost
// the dispatcher and changes nothing: the execution of its successor goes on.
func TestOwnerFrozen(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	f := x.publishes(t)
	var takeover promise.Times
	trials := promise.Trials(1, 20)
	for range trials {
		old := x.settle(t)
		was, lost, terminated := x.present(t), x.counted(t, old, "dispatcher_takeovers_total", `outcome="lost"`), x.counted(t, old, "dispatcher_terminations_total")
		old.Freeze()
		x.leave(old)
		owner, took := x.succeeds(t, old)
		takeover = append(takeover, took)
		x.goes(t, old)
		x.refuses(t, was)
		before := x.present(t)
		require.Equal(t, owner.id, before.owner.Holder)
		old.Thaw()
		x.workers = append(x.workers, old)
		platform.Eventually(t, soon, func() string {
			now, owns := x.counted(t, old, "dispatcher_takeovers_total", `outcome="lost"`), x.counted(t, old, "dispatcher_active")
			if now <= lost || owns > 0 {
				return fmt.Sprintf("%s has lost %v dispatchers, %v before it was frozen, and owns %v", old.id, now, lost, owns)
			}
			return ""
		})
		require.Contains(t, old.Output(), "Ownership lost; the dispatcher runs on")
		after(t, 5*time.Second) // it renews its heartbeat, claims, looks for what is stale
		now := x.present(t)
		require.Equal(t, before.owner, now.owner)
		require.Equal(t, before.runID, now.runID, "the new dispatcher did not survive")
		require.Equal(t, before.lease.Token, now.lease.Token)
		require.InDelta(t, terminated, x.counted(t, old, "dispatcher_terminations_total"), 0, "it has terminated something")
		old.AwaitReady(t)
	}
	f.judge(t, x)
	line := x.line(t)
	require.LessOrEqual(t, succession.Terminated(line), trials)
	x.history(t, line)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "owner frozen past its lease and its heartbeat, replaced, thawed: until another owned the dispatcher; renewal, claim, resignation and termination of the old one were refused",
		Aim: "p95 20 s; no duplicate", Trials: trials, Figure: takeover.String()})
	promise.Record(t, promise.Figure{Promise: "P-D4", What: "the same, under events", Aim: "none lost, none twice", Trials: trials, Figure: f.String()})
}

// A worker that crashes again and again beside a healthy owner never touches the dispatcher.
func TestCrashLoopingWorker(t *testing.T) {
	t.Parallel()
	x := build(t, 1)
	before, err := x.dispatcher(t)
	require.NoError(t, err)
	trials := promise.Trials(4, 20)
	for n := range trials {
		s := platform.LaunchServer(t, x.options)
		after(t, time.Duration(n)*300*time.Millisecond%(2*time.Second)+100*time.Millisecond)
		s.Kill()
	}
	// Workers that cannot even be set up.
	busy, keyless, storeless := x.options, x.options, x.options
	busy.Args = append(slices.Clone(busy.Args), "--listen", x.workers[0].Address)
	keyless.Args = append(slices.Clone(keyless.Args), "--encryption-keys", "test=there-is-no-such-file")
	storeless.Store.DSN = "postgres://nobody@" + platform.Address(platform.FreePort(t)) + "/nothing"
	launched := map[string]*platform.Server{}
	for _, broken := range []struct {
		options platform.ServerOptions
		says    string
	}{{busy, "address already in use"}, {keyless, "there-is-no-such-file"}, {storeless, "connection refused"}} {
		launched[broken.says] = platform.LaunchServer(t, broken.options)
	}
	for says, s := range launched {
		code, ended := s.WaitFor(soon)
		require.True(t, ended, "one of which %q was to be told goes on: %s", says, s.Output())
		require.NotZero(t, code, s.Output())
		require.Contains(t, s.Output(), says)
	}
	now, err := x.dispatcher(t)
	require.NoError(t, err)
	require.Equal(t, before.GetExecution().GetRunId(), now.GetExecution().GetRunId())
	require.Equal(t, before.GetLease().GetOwner().GetEpoch(), now.GetLease().GetOwner().GetEpoch())
	require.Equal(t, before.GetLease().GetAcquireTime().AsTime(), now.GetLease().GetAcquireTime().AsTime())
	require.Len(t, succession.Owners(x.line(t)), 1)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "a worker in a crash loop beside a healthy owner: changes of the dispatcher", Aim: "0", Trials: trials, Figure: "0"})
}

// Workers are told to stop in every moment of their start. Nothing is left that keeps the next from owning the dispatcher.
func TestStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	x := build(t, 0)
	f := x.publishes(t)
	trials := promise.Trials(4, 40)
	for n := range trials {
		s := platform.LaunchServer(t, x.options)
		after(t, time.Duration(n)*370*time.Millisecond%(1500*time.Millisecond)+200*time.Millisecond)
		s.Terminate()
		_, ended := s.WaitFor(soon)
		require.True(t, ended)
	}
	began := time.Now()
	x.join(t, 1)
	x.settle(t)
	took := time.Since(began)
	f.judge(t, x)
	line := x.line(t)
	if terminated := succession.Terminated(line); promise.Full() {
		require.Zero(t, terminated, "who was told to stop leaves a dispatcher that is adopted")
	} else {
		require.LessOrEqual(t, terminated, 1, "on a crowded machine it may not come to an end with what it had begun")
	}
	x.history(t, line)
	promise.Within(t, "the next start", took, 3*time.Second)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "workers stopped (SIGTERM) while they start: until the next owns the dispatcher", Aim: "3 s; nothing terminated", Trials: trials, Figure: promise.Times{took}.String()})
}

// Twenty workers start at once: one dispatcher, one owner.
func TestManyWorkersStartAtOnce(t *testing.T) {
	t.Parallel()
	x := build(t, 0)
	f := x.publishes(t)
	workers := promise.Trials(5, 20)
	x.join(t, workers)
	x.settle(t)
	f.judge(t, x)
	line := x.line(t)
	open, owners, terminated := len(succession.Open(line)), len(succession.Owners(line)), succession.Terminated(line)
	require.Equal(t, 1, open)
	require.LessOrEqual(t, terminated, 1)
	require.Equal(t, 1, owners)
	promise.Record(t, promise.Figure{Promise: "P-D3", What: "workers started at once: owners, dispatchers open, terminated", Aim: "1, 1, at most 1", Trials: workers,
		Figure: fmt.Sprintf("%d, %d, %d", owners, open, terminated)})
}
