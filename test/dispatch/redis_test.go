package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// reconcile returns the supervisor's plan.
func (x *environment) reconcile(t *testing.T, dryRun bool) *signalboxv1.ReconcileDispatchersResponse {
	t.Helper()
	res, err := x.workers[0].Dispatchers.ReconcileDispatchers(t.Context(),
		connect.NewRequest(&signalboxv1.ReconcileDispatchersRequest{DryRun: dryRun}))
	require.NoError(t, err)
	return res.Msg
}

// items counts the plan's items, by action and kind: "alert no_keys".
func items(plan *signalboxv1.ReconcileDispatchersResponse) map[string]int {
	out := map[string]int{}
	for _, item := range plan.GetItems() {
		out[item.GetAction()+" "+item.GetKind()]++
	}
	return out
}

// Redis loses all keys, stops for longer than a lease lasts, or becomes slow: the dispatcher continues, none is
// terminated, and it is adopted afterwards.
func TestDispatcherContinuesThroughRedisFaults(t *testing.T) {
	t.Parallel()
	away := promise.Length(18*time.Second, 2*time.Minute)
	for name, trouble := range map[string]func(*testing.T, *environment){
		"flushed": func(t *testing.T, x *environment) {
			for range promise.Trials(1, 10) {
				x.redis.Flush(t)
				plan := x.reconcile(t, true)
				require.Zero(t, plan.GetStale(), "nothing is stale for lack of data: %v", plan)
				waitFor(t, 2*time.Second)
			}
		},
		"down": func(t *testing.T, x *environment) {
			x.redis.Kill()
			waitFor(t, away)
			x.redis.Restart(t)
		},
		"frozen": func(t *testing.T, x *environment) {
			x.redis.Freeze()
			waitFor(t, away)
			x.redis.Thaw()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "down" {
				promise.OnlyFull(t.Skip, "Redis is down")
			}
			x := build(t, 2)
			f := x.startTraffic(t)
			waitFor(t, time.Second)
			trouble(t, x)
			back := time.Now()
			x.waitForOwner(t)
			owned := time.Since(back)
			v := f.verify(t, x)
			line := x.executions(t)
			require.Zero(t, succession.Terminated(line))
			require.Len(t, line, 1)
			x.history(t, line)
			promise.Within(t, "pause of routing", longestWait(v), 10*time.Second)
			promise.Record(t, promise.Figure{Promise: "P-D4", What: "Redis " + name + " under events: the longest that one " +
				"waited; from Redis' return until the dispatcher had an owner; terminated",
				Aim: "none lost, none twice; 0", Trials: 1, Figure: promise.Times{longestWait(v)}.String() + "; " +
					promise.Times{owned}.String() + "; 0"})
		})
	}
}

// A slow Redis changes nothing.
func TestSlowRedisKeepsOwner(t *testing.T) {
	t.Parallel()
	x := prepare(t)
	link := platform.NewProxy(t, x.redis.Address)
	x.options.Redis = "redis://" + link.Address
	x.open(t)
	x.join(t, 2)
	x.waitForOwner(t)
	f := x.startTraffic(t)
	link.Slow(300 * time.Millisecond)
	waitFor(t, promise.Length(8*time.Second, 2*time.Minute))
	link.Slow(0)
	x.waitForOwner(t)
	f.verify(t, x)
	line := x.executions(t)
	require.Len(t, succession.Owners(line), 1, "a slow Redis does not change the owner")
}

// Malformed entries are reported and have no effect; the next owner replaces them.
func TestMalformedEntriesAreReportedAndReplaced(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	c, ctx := x.redis.Client, t.Context()
	require.NoError(t, c.Set(ctx, x.key("worker:"+strings.Repeat("x", 20)), "neither a hash nor an entry", 0).Err())
	require.NoError(t, c.HSet(ctx, x.key("worker:half"), "holder", "half").Err())
	require.NoError(t, c.HSet(ctx, x.key("dispatcher:other:signalbox-other"), "expires", "tomorrow").Err())
	require.NoError(t, c.Set(ctx, x.key("dispatcher:no-queue"), "", 0).Err())
	platform.Eventually(t, soon, func() string {
		if n := items(x.reconcile(t, false))["alert malformed"]; n < 3 {
			return "not all of them are reported"
		}
		return ""
	})
	r := x.CLI(t, "worker", "list")
	require.Zero(t, r.Code, r)
	require.NoError(t, c.Del(ctx, x.key(ownerKey)).Err())
	require.NoError(t, c.Set(ctx, x.key(ownerKey), "garbage", 0).Err())
	x.waitForOwner(t)
	f := x.startTraffic(t)
	waitFor(t, time.Second)
	f.verify(t, x)
	require.Zero(t, succession.Terminated(x.executions(t)))
}

// A server on Postgres without a Redis setting does not start: leases in memory are for one process.
func TestLeasesInMemoryNeedOneProcess(t *testing.T) {
	t.Parallel()
	x := prepare(t)
	o := x.options
	o.Redis = platform.NoRedis
	s := platform.LaunchServer(t, o)
	code, ended := s.WaitFor(soon)
	require.True(t, ended)
	require.NotZero(t, code)
	require.Contains(t, s.Output(), "redis")
}
