package connection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// before puts a frontend that can suffer before the shared Temporal.
func before(t *testing.T, options conntest.Options) *conntest.Frontend {
	t.Helper()
	options.Upstream = shared.Get(t).Address
	return conntest.Run(t, options)
}

// A port that accepts and says nothing is no Temporal, and no reason to wait for it for ever.
func TestSilentPort(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	frontend.Mute()
	s := newSubject(t, to(frontend.Addr()))
	s.watch(t)
	noticed := s.turns(t, soonBusy, conn.Down, conn.Hung)
	frontend.Unmute()
	recovered := s.turns(t, soonBusy, conn.Connected, conn.None)
	s.polls(t, patience)
	s.charged(t, s.mustStart(t, order{}), patience)
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, a port that accepts and stays silent: until known, and from its first word to connected",
		Aim: "10 s", Trials: 1, Figure: promise.Times{noticed, recovered}.String()})
}

// Connections of which one side knows nothing any more.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		begin, end func(*conntest.Frontend)
		noticed    bool // whether Temporal is down for as long as it lasts
	}{
		"forgotten by the network": {begin: (*conntest.Frontend).Forget, end: func(*conntest.Frontend) {}},
		"nothing arrives at Temporal": {
			begin: func(f *conntest.Frontend) { f.Blackhole(conntest.ToServer) }, end: (*conntest.Frontend).Restore, noticed: true,
		},
		"nothing arrives from Temporal": {
			begin: func(f *conntest.Frontend) { f.Blackhole(conntest.ToClient) }, end: (*conntest.Frontend).Restore, noticed: true,
		},
	}
	for name, fault := range faults {
		for traffic, limit := range map[string]time.Duration{"under traffic": soonBusy, "idle": soonIdle} {
			t.Run(name+", "+traffic, func(t *testing.T) {
				t.Parallel()
				frontend := before(t, conntest.Options{})
				s := newSubject(t, to(frontend.Addr()))
				rest := s.rest(t)
				s.watch(t)
				if traffic == "under traffic" {
					load := s.traffic(t, 200*time.Millisecond)
					defer load.settleMost(t, s)
					load.flows(t)
				}
				began := time.Now()
				fault.begin(frontend)
				if fault.noticed {
					s.turns(t, limit, conn.Down, conn.Hung)
				}
				noticed := time.Since(began)
				fault.end(frontend)
				began = time.Now()
				s.charged(t, s.mustStart(t, order{}), patience)
				recovered := time.Since(began)
				s.back(t, rest)
				if fault.noticed {
					promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, " + name + ", " + traffic + ": until known", Aim: "10 s", Trials: 1,
						Figure: promise.Times{noticed}.String()})
				}
				promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, " + name + ", " + traffic + ": until a new order is charged again", Trials: 1,
					Figure: promise.Times{recovered}.String()})
			})
		}
	}
}

// A blip is gRPC's business: the same client and the same workers go on. An outage is as long as the manager sees it, which
// is up to 0.7 s longer than the network's: that is how often gRPC dials.
func TestBlipsTouchNoWorker(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	s := newSubject(t, to(frontend.Addr()))
	rest := s.rest(t)
	s.watch(t)
	load := s.traffic(t, 50*time.Millisecond)
	was := s.Status()
	held := s.mustStart(t, order{Hold: 6 * time.Second})
	for _, gap := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		frontend.Stop()
		after(t, gap)
		require.NoError(t, frontend.Restart())
		s.polls(t, soonBusy)
		after(t, time.Second)
	}
	now := s.Status()
	require.Equal(t, was.Generation, now.Generation, "a new client was made for a blip")
	require.Equal(t, was.Workers[0].Since, now.Workers[0].Since, "a worker was restarted for a blip")
	require.NotContains(t, s.lines.String(), "Stopped Worker")
	s.charged(t, held, 3*patience)
	load.settle(t, s)
	require.Equal(t, 1, s.times(held))
	s.back(t, rest)
}

// A longer loss ends with new workers, while the old ones finish what they have begun.
func TestActivitiesInFlightFinishOnceOverARebuild(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	s := newSubject(t, renewing(frontend.Addr()))
	rest := s.rest(t)
	s.watch(t)
	var gap promise.Times
	trials := promise.Trials(2, 20)
	for range trials {
		generation := s.Status().Generation
		load := s.traffic(t, 50*time.Millisecond)
		var held []string
		for range 5 {
			held = append(held, s.mustStart(t, order{Hold: 8 * time.Second}))
		}
		platform.Eventually(t, patience, func() string {
			if i := slices.IndexFunc(held, func(id string) bool { return !s.begun(id) }); i >= 0 {
				return "the charge of " + held[i] + " is not under way"
			}
			return ""
		})
		frontend.Stop()
		after(t, 4*time.Second)
		require.NoError(t, frontend.Restart())
		back := time.Now()
		s.polls(t, soonBusy)
		require.Equal(t, generation+1, s.Status().Generation)
		s.charged(t, s.mustStart(t, order{}), patience)
		gap = append(gap, time.Since(back))
		for _, id := range held {
			s.charged(t, id, patience)
		}
		load.settle(t, s)
		for _, id := range held {
			require.Equal(t, 1, s.times(id), "an activity that was in flight was done again")
		}
	}
	s.back(t, rest)
	promise.Record(t, promise.Figure{Promise: "P-C2", What: "library, connection lost for 4 s, activities of 8 s in flight finish once: from its return to a new order charged",
		Aim: "a task is delayed by 10 s at most", Trials: trials, Figure: gap.String()})
	promise.Within(t, "a new order after the return", gap.Worst(), 10*time.Second)
}

func TestFlapping(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	s := newSubject(t, to(frontend.Addr()))
	rest := s.rest(t)
	s.watch(t)
	load := s.traffic(t, 100*time.Millisecond)
	load.flows(t)
	require.NoError(t, frontend.Flap(t.Context(), 100*time.Millisecond, 100*time.Millisecond, 20))
	s.polls(t, soonBusy)
	generations := s.Status().Generation
	times := promise.Trials(4, 15)
	require.NoError(t, frontend.Flap(t.Context(), 2*time.Second, 2*time.Second, times))
	recovered := s.polls(t, soonBusy)
	require.Equal(t, generations, s.Status().Generation, "no worker is stopped by a blip")
	load.settleMost(t, s)
	s.back(t, rest)
	platform.Eventually(t, soonIdle, func() string {
		if n := frontend.Connections(); n > 2 {
			return fmt.Sprintf("%d connections are open", n)
		}
		return ""
	})
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, flapping 20 times in 4 s, then every 2 s: from the end to polling", Aim: "10 s", Trials: times,
		Figure: fmt.Sprintf("%s; no worker was stopped", promise.Times{recovered})})
}

// An answer that takes long is no outage; one that takes too long is. Neither makes a storm of connections.
func TestSlowFrontend(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	s := newSubject(t, to(frontend.Addr()))
	rest := s.rest(t)
	s.watch(t)
	load := s.traffic(t, 200*time.Millisecond)
	load.flows(t)
	generation := s.Status().Generation
	frontend.Slow(2 * time.Second)
	slow := s.turns(t, 2*soonBusy, conn.Degraded, conn.Slow)
	_, err := s.Client()
	require.NoError(t, err, "a slow Temporal is used")
	require.Equal(t, generation, s.Status().Generation, "a slow Temporal is no reason for a new client")
	frontend.Slow(6 * time.Second)
	hung := s.turns(t, soonIdle, conn.Down, conn.Hung)
	accepted := frontend.Accepted()
	after(t, 15*time.Second)
	require.Empty(t, s.is(conn.Down, conn.Hung))
	require.LessOrEqual(t, frontend.Accepted()-accepted, 6, "connections made in 15 s")
	made := frontend.Accepted() - accepted
	frontend.Slow(0)
	recovered := s.polls(t, soonIdle)
	load.settleMost(t, s)
	s.back(t, rest)
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, answers take 2 s: until degraded", Trials: 1, Figure: promise.Times{slow}.String()})
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, answers take 6 s: until known as hung, and from normal answers to polling", Aim: "10 s", Trials: 2,
		Figure: promise.Times{hung, recovered}.String()})
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, answers take 6 s: connections made in 15 s", Aim: "no storm", Trials: 1, Figure: fmt.Sprint(made)})
}

// Frontends end every connection after five minutes: nobody may notice.
func TestGoAwayIsNotNoticed(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	s := newSubject(t, to(frontend.Addr()))
	s.watch(t)
	s.polls(t, patience)
	was := s.Status()
	load := s.undisturbed(t, 20*time.Millisecond)
	for range promise.Trials(5, 50) {
		accepted := frontend.Accepted()
		frontend.GoAway()
		require.NoError(t, frontend.Await(t.Context(), func() bool { return frontend.Accepted() > accepted }))
		after(t, 300*time.Millisecond)
	}
	load.settle(t, s)
	require.Empty(t, load.failed(), "a request failed: %v", load.failed())
	now := s.Status()
	require.NotContains(t, s.lines.String(), "initiating reconnection")
	require.Equal(t, was.Generation, now.Generation)
	require.Equal(t, was.Workers[0].Since, now.Workers[0].Since, "a worker was restarted")
	require.Equal(t, was.Statistics.Outages, now.Statistics.Outages)
}

// A Temporal that asks us to slow down is there.
func TestRateLimitIsNoOutage(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	s := newSubject(t, to(frontend.Addr()))
	s.watch(t)
	s.polls(t, patience)
	was := s.Status()
	frontend.Fail("", serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded"))
	load := s.traffic(t, 200*time.Millisecond)
	calls := frontend.Calls("DescribeNamespace")
	require.NoError(t, frontend.AwaitCalls(t.Context(), "DescribeNamespace", calls+1))
	s.turns(t, patience, conn.Degraded, conn.Limited)
	now := s.Status()
	require.Zero(t, now.Statistics.Outages)
	require.Equal(t, was.Generation, now.Generation)
	frontend.Clear()
	s.polls(t, patience)
	s.charged(t, s.mustStart(t, order{}), patience)
	load.settle(t, s)
}

// Many programs lose Temporal at the same moment; they must not all come back at the same moment.
func TestManyManagersComeBackOneAfterAnother(t *testing.T) {
	t.Parallel()
	const managers = 30
	frontend := conntest.Run(t, conntest.Options{})
	var all []*subject
	for range managers {
		all = append(all, newSubject(t, to(frontend.Addr())))
	}
	for _, s := range all {
		s.polls(t, patience)
	}
	// A machine that stands still for a moment makes all that was to happen meanwhile happen at once: what counts on a
	// crowded one is that they part when it does not.
	for left := promise.Trials(3, 1); ; left-- {
		dials := dialsAfterAnOutage(t, frontend, all)
		busiest := busiest(dials, 100*time.Millisecond)
		if busiest > len(dials)*2/3 && left > 1 {
			continue
		}
		require.LessOrEqual(t, busiest, len(dials)*2/3, "most dials came within 100 ms: %v", dials)
		promise.Record(t, promise.Figure{Promise: "P-C3", What: "30 managers lose Temporal together for 5 s: their dials after its return, and the most of them within 100 ms",
			Aim: "spread", Trials: managers, Figure: fmt.Sprintf("%s; %d", dials, busiest)})
		return
	}
}

// dialsAfterAnOutage takes Temporal away for 5 s and returns when each connection was made after its return: the one there
// was, and the one to replace it.
func dialsAfterAnOutage(t *testing.T, frontend *conntest.Frontend, all []*subject) promise.Times {
	t.Helper()
	frontend.Stop()
	for _, s := range all {
		s.turns(t, soonIdle, conn.Down, conn.Unreachable)
	}
	after(t, 5*time.Second)
	accepted := frontend.Accepted()
	require.NoError(t, frontend.Restart())
	began := time.Now()
	var dials promise.Times
	for len(dials) < 2*len(all) {
		require.NoError(t, frontend.Await(t.Context(), func() bool { return frontend.Accepted() > accepted+len(dials) }))
		now := time.Since(began)
		for range frontend.Accepted() - accepted - len(dials) {
			dials = append(dials, now)
		}
	}
	for _, s := range all {
		s.polls(t, patience)
	}
	return dials
}

// busiest is the most of the moments, which are in order, that lie within a span.
func busiest(moments promise.Times, span time.Duration) int {
	most := 0
	for i := range moments {
		n := 0
		for _, m := range moments[i:] {
			if m-moments[i] < span {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// One worker set that dies is replaced; the other goes on undisturbed.
func TestOneWorkerSetDies(t *testing.T) {
	t.Parallel()
	frontend := before(t, conntest.Options{})
	s := prepare(t, to(frontend.Addr()))
	mortal := &mortal{}
	require.NoError(t, s.Register("mortal", s.worker(s.queue+"-mortal", worker.Options{Plugins: []worker.Plugin{mortal}})))
	s.begin(t)
	rest := s.rest(t)
	s.watch(t)
	load := s.traffic(t, 50*time.Millisecond)
	was := s.Status()
	mortal.die()
	platform.Eventually(t, soonIdle, func() string {
		for _, w := range s.Status().Workers {
			if w.Name == "mortal" && w.Since.After(was.Workers[0].Since) && w.Running && w.Polling {
				return ""
			}
		}
		return fmt.Sprintf("the worker that died was not replaced: %+v", s.Status().Workers)
	})
	now := s.Status()
	require.Equal(t, was.Generation, now.Generation, "the connection was not to blame")
	require.Equal(t, was.Workers[1].Since, now.Workers[1].Since, "the other worker set was touched")
	require.Contains(t, s.lines.String(), "Worker has died")
	require.Equal(t, 1, strings.Count(s.lines.String(), "Worker has died"))
	load.settle(t, s)
	s.back(t, rest)
}
