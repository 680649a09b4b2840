package connection_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestStartedBeforeTemporalConnectsByItself(t *testing.T) {
	t.Parallel()
	var connected, polling promise.Times
	trials := promise.Trials(3, 40)
	for trial := range trials {
		away := time.Second
		if promise.Full() && trial == 0 {
			away = time.Minute
		}
		temporal := platform.ReserveTemporal(t)
		s := newSubject(t, optionsFor(temporal.Address))
		s.watch(t)
		s.waitForState(t, soonBusy, conn.Down, conn.Unreachable)
		_, err := s.Client()
		var down *conn.DownError
		require.ErrorAs(t, err, &down)
		require.GreaterOrEqual(t, down.RetryAfter(), time.Second)
		waitFor(t, away)
		up := temporal.Relaunch(t)
		accepting := up.AwaitAccepting(t)
		s.waitForConnection(t, patience)
		connected = append(connected, time.Since(accepting))
		s.waitForPolling(t, patience)
		polling = append(polling, time.Since(accepting))
		s.waitForCharge(t, s.mustStart(t, order{}), patience)
		require.Equal(t, 1, s.Status().Generation)
		s.stop(t)
		up.Kill()
	}
	promise.Record(t, promise.Figure{
		Promise: "P-C1", What: "library started before Temporal: from Temporal's first accepted connection to connected",
		Aim: "p95 1 s", Trials: trials, Figure: connected.String()})
	promise.Record(t, promise.Figure{Promise: "P-C1", What: "library started before Temporal: from Temporal's first " +
		"accepted connection to workers polling",
		Aim: "2 s", Trials: trials, Figure: polling.String()})
	promise.Within(t, "connecting", connected.At(.95), time.Second)
	promise.Within(t, "polling", polling.At(.95), 2*time.Second)
}

// A Temporal was killed and restarts soon: work continues, and no accepted work is lost.
func TestTemporalKilledAndRestarted(t *testing.T) {
	t.Parallel()
	lengths := []time.Duration{2 * time.Second}
	if promise.Full() {
		lengths = append(lengths, 30*time.Second, 90*time.Second)
	}
	for _, away := range lengths {
		t.Run(away.String(), func(t *testing.T) {
			t.Parallel()
			temporal := platform.StartTemporal(t)
			s := newSubject(t, optionsFor(temporal.Address))
			before := s.waitForIdle(t)
			s.watch(t)
			load := s.traffic(t, 100*time.Millisecond)
			load.waitForStart(t)
			var noticed, connected, polling, first promise.Times
			trials := promise.Trials(2, 5)
			for range trials {
				temporal.Kill()
				noticed = append(noticed, s.waitForState(t, soonBusy, conn.Down, conn.Unreachable))
				waitFor(t, away)
				temporal = temporal.Relaunch(t)
				accepting := temporal.AwaitAccepting(t)
				s.waitForConnection(t, patience)
				connected = append(connected, time.Since(accepting))
				s.waitForPolling(t, patience)
				polling = append(polling, time.Since(accepting))
				began := time.Now()
				s.waitForCharge(t, s.mustStart(t, order{}), patience)
				first = append(first, time.Since(began))
			}
			load.requireCharged(t, s)
			s.requireNoLeak(t, before)
			what := "library, Temporal killed for " + away.String() + ", same data: "
			for name, figure := range map[string]promise.Times{
				"until the loss is known": noticed, "from accepting to connected": connected, "from accepting to polling": polling,
				"a new order started then, to its charge": first,
			} {
				promise.Record(t, promise.Figure{Promise: "P-C2", What: what + name, Trials: trials, Figure: figure.String()})
			}
			promise.Within(t, "polling again", polling.At(.95), time.Second)
		})
	}
}

func TestTemporalRestartedWithoutItsData(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := newSubject(t, optionsFor(temporal.Address))
	before := s.waitForIdle(t)
	s.watch(t)
	s.waitForCharge(t, s.mustStart(t, order{}), patience)
	identity := s.Status().NamespaceID
	temporal.Kill()
	s.waitForState(t, soonIdle, conn.Down, conn.Unreachable)
	temporal.Wipe(t)
	temporal = temporal.Relaunch(t)
	accepting := temporal.AwaitAccepting(t)
	s.waitForConnection(t, patience)
	s.waitForPolling(t, patience)
	promise.Record(t, promise.Figure{
		Promise: "P-C2", What: "library, Temporal back on empty data: from accepting to polling", Trials: 1,
		Figure: promise.Times{time.Since(accepting)}.String()})
	platform.Eventually(t, soonBusy, func() string {
		if s.Status().NamespaceID == identity {
			return "another namespace of the same name has not been noticed"
		}
		return ""
	})
	s.waitForCharge(t, s.mustStart(t, order{}), patience) // a task that Temporal sent to a replaced worker takes 10 s more
	s.requireNoLeak(t, before)
}

func TestFrozenTemporalIsDetected(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]bool{"under traffic": true, "idle": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporal := platform.StartTemporal(t)
			s := newSubject(t, promptOptions(temporal.Address))
			before := s.waitForIdle(t)
			s.watch(t)
			limit := soonIdle
			var load *traffic
			if busy {
				limit = soonBusy
				load = s.traffic(t, 100*time.Millisecond)
				load.waitForStart(t)
			}
			frozen := time.Now()
			temporal.Freeze()
			noticed := s.waitForState(t, limit, conn.Down, conn.Hung)
			waitFor(t, promise.Length(20*time.Second, 70*time.Second)-time.Since(frozen))
			require.Empty(t, s.differsFrom(conn.Down, conn.Hung))
			temporal.Thaw()
			thawed := time.Now()
			s.waitForConnection(t, soonBusy)
			s.waitForPolling(t, patience)
			polling := time.Since(thawed)
			s.waitForCharge(t, s.mustStart(t, order{}), patience)
			if busy {
				load.requireCharged(t, s)
			}
			s.requireNoLeak(t, before)
			promise.Record(t, promise.Figure{
				Promise: "P-C3", What: "library, Temporal frozen, " + name + ": until known", Aim: "10 s", Trials: 1,
				Figure: promise.Times{noticed}.String()})
			promise.Record(t, promise.Figure{
				Promise: "P-C3", What: "library, Temporal frozen, " + name + ": from thaw to polling", Aim: "10 s", Trials: 1,
				Figure: promise.Times{polling}.String()})
		})
	}
}

// Namespaces are created and deleted without restarts. A real frontend serves a deleted namespace from its cache for
// some seconds: the measurement begins with the first refused request.
func TestNamespaceMissingCreatedDeletedAndRestored(t *testing.T) {
	t.Parallel()
	const namespace = "orders"
	temporal := platform.StartTemporal(t)
	s := newSubject(t, optionsFor(temporal.Address, namespace))
	s.watch(t)
	missing := promise.Times{s.waitForState(t, soonBusy, conn.Down, conn.NamespaceMissing)}
	var found promise.Times
	for range 2 {
		temporal.CreateNamespace(t, namespace)
		found = append(found, s.waitForConnection(t, promise.Limit(35*time.Second)))
		s.waitForPolling(t, patience)
		s.waitForCharge(t, s.mustStart(t, order{}), patience)
		load := s.traffic(t, 200*time.Millisecond)
		temporal.DeleteNamespace(t, namespace)
		s.waitForState(t, soonIdle, conn.Down, conn.NamespaceMissing)
		load.stop()
		if refused := load.failed(); len(refused) > 0 {
			missing = append(missing, s.Status().Since.Sub(refused[0].at))
			t.Logf("the first request refused: %v", refused[0].err)
		}
	}
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, namespace missing, or deleted and the first " +
		"request refused: until known", Aim: "10 s",
		Trials: len(missing), Figure: missing.String()})
	promise.Record(t, promise.Figure{
		Promise: "P-C3", What: "library, namespace created or restored: until connected", Aim: "30 s", Trials: len(found),
		Figure: found.String()})
	promise.Within(t, "a missing namespace", missing.Worst(), 10*time.Second)
}
