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

// reconcile asks for the supervisor's plan.
func (x *site) reconcile(t *testing.T, dryRun bool) *signalboxv1.ReconcileDispatchersResponse {
	t.Helper()
	res, err := x.workers[0].Dispatchers.ReconcileDispatchers(t.Context(), connect.NewRequest(&signalboxv1.ReconcileDispatchersRequest{DryRun: dryRun}))
	require.NoError(t, err)
	return res.Msg
}

// items are the plan's, by action and kind: "alert no_keys".
func items(plan *signalboxv1.ReconcileDispatchersResponse) map[string]int {
	out := map[string]int{}
	for _, item := range plan.GetItems() {
		out[item.GetAction()+" "+item.GetKind()]++
	}
	return out
}

// Redis forgets everything, goes away for longer than a lease lasts, or becomes slow: the dispatcher runs on, nothing is terminated,
// and it is adopted afterwards.
func TestRedisInTrouble(t *testing.T) {
	t.Parallel()
	away := promise.Length(18*time.Second, 2*time.Minute)
	for name, trouble := range map[string]func(*testing.T, *site){
		"flushed": func(t *testing.T, x *site) {
			for range promise.Trials(1, 10) {
				x.redis.Flush(t)
				plan := x.reconcile(t, true)
				require.Zero(t, plan.GetStale(), "nothing is stale for lack of data: %v", plan)
				after(t, 2*time.Second)
			}
		},
		"down": func(t *testing.T, x *site) {
			x.redis.Kill()
			after(t, away)
			x.redis.Restart(t)
		},
		"frozen": func(t *testing.T, x *site) {
			x.redis.Freeze()
			after(t, away)
			x.redis.Thaw()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := build(t, 2)
			f := x.publishes(t)
			after(t, time.Second)
			trouble(t, x)
			back := time.Now()
			x.settle(t)
			owned := time.Since(back)
			v := f.judge(t, x)
			line := x.line(t)
			require.Zero(t, succession.Terminated(line))
			require.Len(t, line, 1)
			x.history(t, line)
			promise.Within(t, "pause of routing", pause(v), 10*time.Second)
			promise.Record(t, promise.Figure{Promise: "P-D4", What: "Redis " + name + " under events: the longest that one waited; from Redis' return until the dispatcher had an owner; terminated",
				Aim: "none lost, none twice; 0", Trials: 1, Figure: promise.Times{pause(v)}.String() + "; " + promise.Times{owned}.String() + "; 0"})
		})
	}
}

// A slow Redis changes nothing.
func TestRedisSlow(t *testing.T) {
	t.Parallel()
	x := prepare(t)
	link := platform.NewLink(t, x.redis.Address)
	x.options.Redis = "redis://" + link.Address
	x.open(t)
	x.join(t, 2)
	x.settle(t)
	f := x.publishes(t)
	link.Slow(300 * time.Millisecond)
	after(t, promise.Length(8*time.Second, 2*time.Minute))
	link.Slow(0)
	x.settle(t)
	f.judge(t, x)
	line := x.line(t)
	require.Len(t, succession.Owners(line), 1, "a slow Redis costs nobody the ownership")
}

// What nobody can read is told, and harms nobody; the next owner replaces it.
func TestMalformedEntries(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	c, ctx := x.redis.Client, t.Context()
	require.NoError(t, c.Set(ctx, x.key("worker:"+strings.Repeat("x", 20)), "neither a hash nor an entry", 0).Err())
	require.NoError(t, c.HSet(ctx, x.key("worker:half"), "holder", "half").Err())
	require.NoError(t, c.HSet(ctx, x.key("dispatcher:other:signalbox-other"), "expires", "tomorrow").Err())
	require.NoError(t, c.Set(ctx, x.key("dispatcher:no-queue"), "", 0).Err())
	platform.Eventually(t, soon, func() string {
		if n := items(x.reconcile(t, false))["alert malformed"]; n < 3 {
			return "not all of them are told"
		}
		return ""
	})
	r := x.CLI(t, "worker", "list")
	require.Zero(t, r.Code, r)
	require.NoError(t, c.Del(ctx, x.key(ownerKey)).Err())
	require.NoError(t, c.Set(ctx, x.key(ownerKey), "garbage", 0).Err())
	x.settle(t)
	f := x.publishes(t)
	after(t, time.Second)
	f.judge(t, x)
	require.Zero(t, succession.Terminated(x.line(t)))
}

// A server on Postgres that was not told of a Redis does not start: leases in memory are for one process.
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
