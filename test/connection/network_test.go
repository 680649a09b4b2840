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

// frontendOfShared starts a frontend in front of the shared Temporal, which the test can disturb.
func frontendOfShared(t *testing.T, options conntest.Options) *conntest.Frontend {
	t.Helper()
	options.Upstream = shared.Get(t).Address
	return conntest.Run(t, options)
}

// A port that accepts connections and sends nothing counts as no Temporal, and does not block the manager.
func TestSilentPortIsReportedAsDown(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	frontend.Mute()
	s := newSubject(t, promptOptions(frontend.Addr()))
	s.watch(t)
	noticed := s.waitForState(t, soonBusy, conn.Down, conn.Hung)
	frontend.Unmute()
	recovered := s.waitForConnection(t, soonBusy)
	s.waitForPolling(t, patience)
	s.waitForCharge(t, s.mustStart(t, order{}), patience)
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, a port that accepts and stays silent: until " +
		"known, and from its first word to connected",
		Aim: "10 s", Trials: 1, Figure: promise.Times{noticed, recovered}.String()})
}

// On half-open connections one side has no state of the connection any more.
func TestHalfOpenConnectionsAreDetected(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		begin, end func(*conntest.Frontend)
		noticed    bool // whether Temporal counts as down for the duration of the fault
	}{
		"forgotten by the network": {begin: (*conntest.Frontend).LoseConnections, end: func(*conntest.Frontend) {}},
		"nothing arrives at Temporal": {
			begin: func(f *conntest.Frontend) {
				f.Blackhole(conntest.ToServer)
			}, end: (*conntest.Frontend).Restore, noticed: true,
		},
		"nothing arrives from Temporal": {
			begin: func(f *conntest.Frontend) {
				f.Blackhole(conntest.ToClient)
			}, end: (*conntest.Frontend).Restore, noticed: true,
		},
	}
	for name, fault := range faults {
		for traffic, limit := range map[string]time.Duration{"under traffic": soonBusy, "idle": soonIdle} {
			t.Run(name+", "+traffic, func(t *testing.T) {
				t.Parallel()
				frontend := frontendOfShared(t, conntest.Options{})
				s := newSubject(t, promptOptions(frontend.Addr()))
				rest := s.waitForIdle(t)
				s.watch(t)
				if traffic == "under traffic" {
					load := s.traffic(t, 200*time.Millisecond)
					defer load.requireCharged(t, s)
					load.waitForStart(t)
				}
				began := time.Now()
				fault.begin(frontend)
				if fault.noticed {
					s.waitForState(t, limit, conn.Down, conn.Hung)
				}
				noticed := time.Since(began)
				fault.end(frontend)
				began = time.Now()
				s.waitForCharge(t, s.mustStart(t, order{}), patience)
				recovered := time.Since(began)
				s.requireNoLeak(t, rest)
				if fault.noticed {
					promise.Record(t, promise.Figure{
						Promise: "P-C3", What: "library, " + name + ", " + traffic + ": until known", Aim: "10 s", Trials: 1,
						Figure: promise.Times{noticed}.String()})
				}
				promise.Record(t, promise.Figure{
					Promise: "P-C3", What: "library, " + name + ", " + traffic + ": until a new order is charged again", Trials: 1,
					Figure: promise.Times{recovered}.String()})
			})
		}
	}
}

// gRPC handles short interruptions: client and workers stay the same. The outage that the manager measures is
// up to 0.7 s longer than the network's, because of gRPC's dial interval.
func TestShortInterruptionsKeepClientAndWorkers(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	s := newSubject(t, optionsFor(frontend.Addr()))
	rest := s.waitForIdle(t)
	s.watch(t)
	load := s.traffic(t, 50*time.Millisecond)
	was := s.Status()
	held := s.mustStart(t, order{Hold: 6 * time.Second})
	for _, gap := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		frontend.Stop()
		waitFor(t, gap)
		require.NoError(t, frontend.Restart())
		s.waitForPolling(t, soonBusy)
		waitFor(t, time.Second)
	}
	now := s.Status()
	require.Equal(t, was.Generation, now.Generation, "a short interruption caused a new client")
	require.Equal(t, was.Workers[0].Since, now.Workers[0].Since, "a short interruption restarted a worker")
	require.NotContains(t, s.lines.String(), "Stopped Worker")
	s.waitForCharge(t, held, patience)
	load.requireChargedOnce(t, s)
	require.Equal(t, 1, s.charges(held))
	s.requireNoLeak(t, rest)
}

// A longer interruption ends with new workers, while the old ones finish the activities that they have begun.
func TestActivitiesInFlightFinishOnceAcrossRebuild(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	s := newSubject(t, rebuilding(optionsFor(frontend.Addr())))
	rest := s.waitForIdle(t)
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
		waitFor(t, 4*time.Second)
		require.NoError(t, frontend.Restart())
		back := time.Now()
		s.waitForPolling(t, soonBusy)
		require.Equal(t, generation+1, s.Status().Generation)
		s.waitForCharge(t, s.mustStart(t, order{}), patience)
		gap = append(gap, time.Since(back))
		for _, id := range held {
			s.waitForCharge(t, id, patience)
		}
		load.requireChargedOnce(t, s)
		for _, id := range held {
			require.Equal(t, 1, s.charges(id), "an activity in flight was repeated")
		}
	}
	s.requireNoLeak(t, rest)
	promise.Record(t, promise.Figure{Promise: "P-C2", What: "library, connection lost for 4 s, activities of 8 s in " +
		"flight finish once: from its return to a new order charged",
		Aim: "a task is delayed by 10 s at most", Trials: trials, Figure: gap.String()})
	promise.Within(t, "a new order after the return", gap.Worst(), 10*time.Second)
}

func TestFlappingConnectionStabilizes(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	s := newSubject(t, optionsFor(frontend.Addr()))
	rest := s.waitForIdle(t)
	s.watch(t)
	load := s.traffic(t, 100*time.Millisecond)
	load.waitForStart(t)
	require.NoError(t, frontend.Flap(t.Context(), 100*time.Millisecond, 100*time.Millisecond, 20))
	s.waitForPolling(t, soonBusy)
	times := promise.Trials(4, 15)
	require.NoError(t, frontend.Flap(t.Context(), 2*time.Second, 2*time.Second, times))
	recovered := s.waitForPolling(t, soonBusy)
	load.requireCharged(t, s)
	s.requireNoLeak(t, rest)
	platform.Eventually(t, soonIdle, func() string {
		if n := frontend.Connections(); n > 2 {
			return fmt.Sprintf("%d connections are open", n)
		}
		return ""
	})
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, flapping 20 times in 4 s, then every 2 s: from " +
		"the end to polling", Aim: "10 s", Trials: times,
		Figure: promise.Times{recovered}.String()})
}

// Which worker a flapping connection stops depends on how fast it is back after each interruption: this test has a
// frontend that answers at once, without Temporal.
func TestFlappingConnectionStopsNoWorker(t *testing.T) {
	t.Parallel()
	frontend := conntest.Run(t, conntest.Options{})
	s := newSubject(t, optionsFor(frontend.Addr()))
	s.waitForPolling(t, patience)
	was := s.Status()
	times := promise.Trials(4, 15)
	for range times {
		frontend.Stop()
		waitFor(t, time.Second)
		require.NoError(t, frontend.Restart())
		s.waitForPolling(t, soonBusy)
	}
	now := s.Status()
	require.Equal(t, was.Generation, now.Generation, "a short interruption caused a new client")
	require.Equal(t, was.Workers[0].Since, now.Workers[0].Since, "a short interruption restarted a worker")
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, connection lost for 1 s again and again: workers " +
		"stopped", Aim: "0", Trials: times, Figure: "0"})
}

// Slow answers are not an outage; answers over the limit are. Neither causes a large number of connections. The
// frontend answers without Temporal, so the latencies are those that the test gives.
func TestSlowAnswersAreDegradedAndHungAnswersDown(t *testing.T) {
	t.Parallel()
	frontend := conntest.Run(t, conntest.Options{})
	options := promptOptions(frontend.Addr())
	slowAnswer, hungAnswer := 2*time.Second, 6*time.Second
	// a stall of some seconds makes no slow answer a hung one, and no late answer to the load shows that Temporal lives
	if !promise.Full() {
		options.CheckTimeout, slowAnswer, hungAnswer = 10*time.Second, 3*time.Second, 10*time.Minute
	}
	s := newSubject(t, options)
	rest := s.waitForIdle(t)
	s.watch(t)
	load := s.patientTraffic(t, time.Second)
	load.waitForStart(t)
	generation := s.Status().Generation
	frontend.Slow(slowAnswer)
	slow := s.waitForState(t, 2*soonBusy, conn.Degraded, conn.Slow)
	_, err := s.Client()
	require.NoError(t, err, "a slow Temporal is used")
	require.Equal(t, generation, s.Status().Generation, "a slow Temporal causes no new client")
	frontend.Slow(hungAnswer)
	hung := s.waitForState(t, soonIdle, conn.Down, conn.Hung)
	accepted := frontend.Accepted()
	waitFor(t, 15*time.Second)
	require.Empty(t, s.differsFrom(conn.Down, conn.Hung))
	require.LessOrEqual(t, frontend.Accepted()-accepted, 6, "connections made in 15 s")
	made := frontend.Accepted() - accepted
	frontend.Slow(0)
	load.stop()
	recovered := s.waitForPolling(t, soonIdle)
	s.mustStart(t, order{})
	s.requireNoLeak(t, rest)
	promise.Record(t, promise.Figure{
		Promise: "P-C3", What: fmt.Sprintf("library, answers take %s: until degraded", slowAnswer), Trials: 1,
		Figure: promise.Times{slow}.String()})
	promise.Record(t, promise.Figure{Promise: "P-C3", What: fmt.Sprintf("library, answers take %s: until known as hung, "+
		"and from normal answers to polling", hungAnswer), Aim: "10 s", Trials: 2,
		Figure: promise.Times{hung, recovered}.String()})
	promise.Record(t, promise.Figure{
		Promise: "P-C3", What: fmt.Sprintf("library, answers take %s: connections made in 15 s", hungAnswer), Aim: "no storm",
		Trials: 1, Figure: fmt.Sprint(made)})
}

// Frontends close every connection after five minutes, which must cause no failure.
func TestGoAwayCausesNoFailure(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	s := newSubject(t, optionsFor(frontend.Addr()))
	s.watch(t)
	s.waitForPolling(t, patience)
	was := s.Status()
	load := s.patientTraffic(t, 20*time.Millisecond)
	for range promise.Trials(5, 50) {
		accepted := frontend.Accepted()
		frontend.GoAway()
		require.NoError(t, frontend.Await(t.Context(), func() bool { return frontend.Accepted() > accepted }))
		waitFor(t, 300*time.Millisecond)
	}
	load.requireChargedOnce(t, s)
	require.Empty(t, load.failed(), "a request failed: %v", load.failed())
	now := s.Status()
	require.NotContains(t, s.lines.String(), "initiating reconnection")
	require.Equal(t, was.Generation, now.Generation)
	require.Equal(t, was.Workers[0].Since, now.Workers[0].Since, "a worker was restarted")
	require.Equal(t, was.Statistics.Outages, now.Statistics.Outages)
}

// A Temporal that rate-limits requests is not down.
func TestRateLimitIsNotAnOutage(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	s := newSubject(t, optionsFor(frontend.Addr()))
	s.watch(t)
	s.waitForPolling(t, patience)
	was := s.Status()
	frontend.Fail("", serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
		"namespace rate limit exceeded"))
	load := s.traffic(t, 200*time.Millisecond)
	calls := frontend.Calls("DescribeNamespace")
	require.NoError(t, frontend.AwaitCalls(t.Context(), "DescribeNamespace", calls+1))
	s.waitForState(t, patience, conn.Degraded, conn.Limited)
	now := s.Status()
	require.Zero(t, now.Statistics.Outages)
	require.Equal(t, was.Generation, now.Generation)
	frontend.Clear()
	s.waitForPolling(t, patience)
	s.waitForCharge(t, s.mustStart(t, order{}), patience)
	load.requireChargedOnce(t, s)
}

// Many programs lose Temporal at the same moment. Their reconnections must be spread.
func TestManyManagersSpreadTheirReconnections(t *testing.T) {
	t.Parallel()
	const managers = 30
	frontend := conntest.Run(t, conntest.Options{})
	var all []*subject
	for range managers {
		all = append(all, newSubject(t, optionsFor(frontend.Addr())))
	}
	for _, s := range all {
		s.waitForPolling(t, patience)
	}
	// On a machine that stalls for a moment, all events that were due happen together: the test repeats
	// the measurement there, and requires that one without a stall is spread.
	for left := promise.Trials(3, 1); ; left-- {
		dials := dialsAfterAnOutage(t, frontend, all)
		busiest := busiest(dials, 100*time.Millisecond)
		if busiest > len(dials)*2/3 && left > 1 {
			continue
		}
		require.LessOrEqual(t, busiest, len(dials)*2/3, "most dials came within 100 ms: %v", dials)
		promise.Record(t, promise.Figure{Promise: "P-C3", What: "30 managers lose Temporal together for 5 s: their dials " +
			"after its return, and the most of them within 100 ms",
			Aim: "spread", Trials: managers, Figure: fmt.Sprintf("%s; %d", dials, busiest)})
		return
	}
}

// dialsAfterAnOutage takes Temporal down for 5 s and returns when each connection was made after its return: the
// existing one and its replacement.
func dialsAfterAnOutage(t *testing.T, frontend *conntest.Frontend, all []*subject) promise.Times {
	t.Helper()
	frontend.Stop()
	for _, s := range all {
		s.waitForState(t, soonIdle, conn.Down, conn.Unreachable)
	}
	waitFor(t, 5*time.Second)
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
		s.waitForPolling(t, patience)
	}
	return dials
}

// busiest returns the largest number of the moments, which are in order, within a span.
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

// One failed worker set is replaced; the other is not affected.
func TestFailedWorkerSetIsReplacedAlone(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	s := prepare(t, optionsFor(frontend.Addr()))
	failingWorker := &failingWorker{}
	require.NoError(t, s.Register(
		"failing", s.worker(s.queue+"-failing", worker.Options{Plugins: []worker.Plugin{failingWorker}})))
	s.begin(t)
	rest := s.waitForIdle(t)
	s.watch(t)
	load := s.traffic(t, 50*time.Millisecond)
	was := s.Status()
	failingWorker.fail()
	platform.Eventually(t, soonIdle, func() string {
		for _, w := range s.Status().Workers {
			if w.Name == "failing" && w.Since.After(was.Workers[0].Since) && w.Running && w.Polling {
				return ""
			}
		}
		return fmt.Sprintf("the failed worker was not replaced: %+v", s.Status().Workers)
	})
	now := s.Status()
	require.Equal(t, was.Generation, now.Generation, "the connection did not fail")
	require.Equal(t, was.Workers[1].Since, now.Workers[1].Since, "the other worker set was touched")
	require.Contains(t, s.lines.String(), "Worker has died")
	require.Equal(t, 1, strings.Count(s.lines.String(), "Worker has died"))
	load.requireChargedOnce(t, s)
	s.requireNoLeak(t, rest)
}
