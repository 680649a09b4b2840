package fsm_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

func TestIntervalsWhileUp(t *testing.T) {
	t.Parallel()
	c := connected(t)
	for range 2 {
		for range 4 {
			c.wait(3*s, fsm.Command{Op: fsm.Probe})
			c.answer(fsm.Command{})
		}
		c.wait(3*s, fsm.Command{Op: fsm.Check})
		c.answer(fsm.Command{})
	}
	c.pass(3 * s)
	c.tick(fsm.Command{Op: fsm.Probe})
	c.answer(fsm.Command{})
	c.pass(12 * s)
	c.tick(fsm.Command{Op: fsm.Check})
	c.pass(500 * ms)
	c.answer(fsm.Command{})
	c.pass(14500 * ms) // from the start of one check to the next
	c.tick(fsm.Command{Op: fsm.Check})
	v := c.m.View(c.now)
	require.Equal(t, c.start, v.Since)
	require.EqualValues(t, 1, v.Attempts)
}

func TestProbesHaveJitter(t *testing.T) {
	t.Parallel()
	set := settings()
	set.Random = func() float64 { return 0.5 }
	c := begin(t, set)
	c.tick(attempt(1, 0, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.on(fsm.Built{}, fsm.Command{})
	c.wait(3150*ms, fsm.Command{Op: fsm.Probe})
}

func TestLostAndSuspectedCauseOneCheck(t *testing.T) {
	t.Parallel()
	for _, e := range []fsm.Event{fsm.Lost{}, fsm.Suspected{}} {
		t.Run(fmt.Sprintf("%T", e), func(t *testing.T) {
			t.Parallel()
			c := connected(t)
			c.pass(700 * ms)
			c.on(e, fsm.Command{Op: fsm.Check})
			c.pass(10 * ms)
			c.answer(fsm.Command{})
			c.pass(90 * ms)
			c.on(e, fsm.Command{})
			c.on(e, fsm.Command{})
			c.wait(150*ms, fsm.Command{Op: fsm.Check})
			c.on(e, fsm.Command{}) // during the check
			c.pass(400 * ms)
			c.answer(fsm.Command{Op: fsm.Check})
			c.miss(conntype.Unreachable, fsm.Command{})
			c.on(e, fsm.Command{}) // the confirming check is not brought forward
			c.wait(s, fsm.Command{Op: fsm.Check})
			c.is(conntype.Connected, conntype.None)
			c.miss(conntype.Hung, fsm.Command{})
			c.is(conntype.Down, conntype.Hung)
			c.on(e, fsm.Command{}) // no effect while down
			c.wait(s, attempt(1, s, true))
		})
	}
}

func TestOneMiss(t *testing.T) {
	t.Parallel()
	build := fsm.Command{Op: fsm.Build, Fresh: true}
	cases := map[string]struct {
		confirmation time.Duration
		want         fsm.Command
	}{
		"short": {999 * ms, fsm.Command{}},
		"long":  {s, build},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connected(t)
			c.wait(3*s, fsm.Command{Op: fsm.Probe})
			c.miss(conntype.Hung, fsm.Command{})
			c.wait(s, fsm.Command{Op: fsm.Check})
			c.pass(tc.confirmation)
			c.answer(tc.want)
			c.is(conntype.Connected, conntype.None)
			if tc.want == build {
				c.on(fsm.Built{}, fsm.Command{})
				c.is(conntype.Connected, conntype.None)
			}
			require.Zero(t, c.m.View(c.now).Statistics.Outages)
		})
	}
}

// An outage begins when gRPC lost the connection, unless a check was answered after that.
func TestOutageStart(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.on(fsm.Lost{}, fsm.Command{Op: fsm.Check})
	c.pass(900 * ms)
	c.miss(conntype.Unreachable, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.pass(200 * ms)
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true})
	c.on(fsm.Built{}, fsm.Command{})

	c.wait(3*s, fsm.Command{Op: fsm.Probe})
	c.pass(ms)
	c.on(fsm.Lost{}, fsm.Command{})
	c.answer(fsm.Command{Op: fsm.Check}) // older than the loss
	c.pass(900 * ms)
	c.miss(conntype.Unreachable, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.pass(200 * ms)
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true})
	c.on(fsm.Built{}, fsm.Command{})

	c.on(fsm.Lost{}, fsm.Command{Op: fsm.Check})
	c.answer(fsm.Command{}) // the loss was short and is no outage
	c.pass(s)
	c.on(fsm.Suspected{}, fsm.Command{Op: fsm.Check})
	c.miss(conntype.Unreachable, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.miss(conntype.Unreachable, fsm.Command{})
	c.pass(400 * ms)
	v := c.m.View(c.now)
	st, began := v.Statistics, c.now.Add(-1400*ms)
	require.Equal(t, []time.Duration{1400 * ms, 1400 * ms}, []time.Duration{st.LastOutage, st.LongestOutage},
		"the outage counts until now")
	require.Equal(t, began, v.Since, "the state begins with the outage")
	require.Equal(t, []time.Duration{began.Sub(c.start), 1400 * ms}, []time.Duration{st.Uptime, st.Downtime})
	c.on(fsm.Ready{}, attempt(1, s, false))
	c.answer(fsm.Command{})
	c.is(conntype.Connected, conntype.None)
	st = c.m.View(c.now).Statistics
	require.Equal(t, 1400*ms, st.LastOutage)
	require.Equal(t, 1400*ms, st.LongestOutage)
	require.EqualValues(t, 1, st.Outages)
	require.EqualValues(t, 2, st.Connections)
	require.Equal(t, c.now, st.ConnectedSince)
}

// A lost connection from before an outage, or of a previous client, does not count later.
func TestOldLossesDoNotCount(t *testing.T) {
	t.Parallel()
	blip := func(c *script) {
		c.Helper()
		c.pass(s)
		c.on(fsm.Suspected{}, fsm.Command{Op: fsm.Check})
		c.miss(conntype.Hung, fsm.Command{})
		c.wait(s, fsm.Command{Op: fsm.Check})
		c.answer(fsm.Command{})
	}
	c := connected(t)
	c.on(fsm.Lost{}, fsm.Command{Op: fsm.Check})
	c.miss(conntype.Unreachable, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.miss(conntype.Unreachable, fsm.Command{})
	c.on(fsm.Ready{}, attempt(1, s, false))
	c.answer(fsm.Command{})
	blip(c)

	c = connected(t)
	c.on(fsm.Changed{}, fsm.Command{Op: fsm.Build, Fresh: true})
	c.on(fsm.Lost{}, fsm.Command{}) // of the client that is being replaced
	c.pass(4 * s)
	c.on(fsm.Built{}, fsm.Command{Op: fsm.Check})
	c.answer(fsm.Command{})
	blip(c)
}

// A sign of life counts only for the outage in which it came.
func TestOldSignsDoNotCount(t *testing.T) {
	t.Parallel()
	fall := func(c *script) {
		c.Helper()
		c.pass(300 * ms)
		c.on(fsm.Suspected{}, fsm.Command{Op: fsm.Check})
		c.miss(conntype.Unreachable, fsm.Command{})
		c.wait(s, fsm.Command{Op: fsm.Check})
		c.miss(conntype.Unreachable, fsm.Command{})
		require.Equal(c, s, c.m.View(c.now).NextAttempt.Sub(c.now))
	}
	c := connected(t)
	c.on(fsm.Suspected{}, fsm.Command{Op: fsm.Check})
	c.on(fsm.Reset{}, fsm.Command{})
	c.answer(fsm.Command{})
	fall(c)
	c.wait(s, attempt(1, s, true))
	c.on(fsm.Reset{}, fsm.Command{})
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.on(fsm.Built{}, fsm.Command{})
	fall(c)
	c.on(fsm.Ready{}, attempt(1, s, false))
	c.on(fsm.Suspected{}, fsm.Command{}) // during the attempt: causes a check after it
	c.answer(fsm.Command{Op: fsm.Check})
	c.answer(fsm.Command{})
	c.on(fsm.Changed{}, fsm.Command{Op: fsm.Build, Fresh: true})
	c.on(fsm.Reset{}, fsm.Command{})
	c.on(fsm.Built{}, fsm.Command{})
	fall(c)
	c.on(fsm.Ready{}, attempt(1, s, false))
	c.on(fsm.Lost{}, fsm.Command{})
	c.miss(conntype.Unreachable, fsm.Command{}) // covers the loss
	c.wait(s, attempt(2, s, true))
	c.on(fsm.Ready{}, fsm.Command{})
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 2})
	c.on(fsm.Built{Err: errRefused, Kind: conntype.Unreachable}, fsm.Command{}) // and no attempt for its own Ready
	c.wait(2*s, attempt(3, 2*s, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 3})
	c.on(fsm.Built{}, fsm.Command{}) // and no check for a loss long ago

	c.pass(300 * ms)
	c.on(fsm.Suspected{}, fsm.Command{Op: fsm.Check})
	c.miss(conntype.Unreachable, fsm.Command{})
	c.on(fsm.Ready{}, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.miss(conntype.Unreachable, fsm.Command{}) // covers the Ready
}

// gRPC may delay a check until there is a connection, so that a restart causes no failed check.
func TestOutageWithoutMiss(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		regained time.Duration // zero: not reported
		want     fsm.Command
	}{
		"back at once, then a slow answer": {ms, fsm.Command{}},
		"back late":                        {2 * s, fsm.Command{Op: fsm.Build, Fresh: true}},
		"not reported":                     {0, fsm.Command{Op: fsm.Build, Fresh: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connected(t)
			c.on(fsm.Lost{}, fsm.Command{Op: fsm.Check})
			c.pass(tc.regained)
			if tc.regained > 0 {
				c.on(fsm.Ready{}, fsm.Command{})
			}
			c.pass(2500*ms - tc.regained)
			c.answer(tc.want)
		})
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	c := connected(t)
	slow := fsm.Checked{Took: 1200 * ms}
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
	c.on(slow, fsm.Command{})
	c.wait(s/4, fsm.Command{Op: fsm.Check})
	c.on(slow, fsm.Command{})
	c.is(conntype.Connected, conntype.None)
	c.wait(s/4, fsm.Command{Op: fsm.Check})
	c.on(slow, fsm.Command{})
	c.is(conntype.Degraded, conntype.Slow)
	since := c.now
	c.on(fsm.Polling{}, fsm.Command{})
	c.is(conntype.Degraded, conntype.Slow)
	c.wait(3*s, fsm.Command{Op: fsm.Check}) // not a probe, which might be quick where the check is slow
	c.on(slow, fsm.Command{})
	require.Equal(t, since, c.m.View(c.now).Since)
	c.wait(3*s, fsm.Command{Op: fsm.Check})
	c.answer(fsm.Command{})
	c.is(conntype.Degraded, conntype.NotPolling)
	require.Equal(t, c.now, c.m.View(c.now).Since)
	c.on(fsm.Polling{OK: true}, fsm.Command{})
	c.is(conntype.Connected, conntype.None)
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
	c.on(fsm.Checked{Took: s}, fsm.Command{}) // not slow
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
}

// TestRequestsThatAreNotServed has requests in trouble, and checks that show whether the connection is the cause.
func TestRequestsThatAreNotServed(t *testing.T) {
	t.Parallel()
	late := fsm.Requests{Late: true, Err: errors.New("late")}
	failing := fsm.Requests{Failing: true, Err: errors.New("over the limits")}
	t.Run("checks are answered", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.pass(s)
		c.on(late, fsm.Command{Op: fsm.Check})
		c.is(conntype.Connected, conntype.None)
		c.answer(fsm.Command{})
		c.is(conntype.Degraded, conntype.Limited)
		require.Equal(t, late.Err, c.m.View(c.now).LastErr)
		c.on(failing, fsm.Command{})
		c.is(conntype.Degraded, conntype.Limited)
		require.Equal(t, failing.Err, c.m.View(c.now).LastErr)
		c.on(fsm.Polling{}, fsm.Command{})
		c.is(conntype.Degraded, conntype.Limited)
		c.on(fsm.Requests{}, fsm.Command{})
		c.is(conntype.Degraded, conntype.NotPolling)
		c.on(fsm.Polling{OK: true}, fsm.Command{})
		c.is(conntype.Connected, conntype.None)
		require.EqualValues(t, 0, c.m.View(c.now).Statistics.Outages)

		c.pass(s)
		c.on(failing, fsm.Command{Op: fsm.Check})
		c.is(conntype.Connected, conntype.None) // an answer from before the trouble does not count
	})
	t.Run("a check under way is older", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.wait(3*s, fsm.Command{Op: fsm.Probe})
		c.pass(100 * ms)
		c.on(failing, fsm.Command{})
		c.answer(fsm.Command{Op: fsm.Check})
		c.is(conntype.Connected, conntype.None)
		c.answer(fsm.Command{})
		c.is(conntype.Degraded, conntype.Limited)
	})
	t.Run("checks are slow as well", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			event fsm.Requests
			kind  conntype.Kind
			state conntype.State
		}{{late, conntype.None, conntype.Connected}, {failing, conntype.Limited, conntype.Degraded}} {
			c := connected(t)
			c.on(tt.event, fsm.Command{Op: fsm.Check})
			c.on(fsm.Checked{Took: 2 * s}, fsm.Command{})
			c.is(tt.state, tt.kind)
		}
	})
	t.Run("checks are not answered", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.on(late, fsm.Command{Op: fsm.Check})
		c.miss(conntype.Hung, fsm.Command{})
		c.wait(s, fsm.Command{Op: fsm.Check})
		c.on(failing, fsm.Command{})
		c.is(conntype.Connected, conntype.None)
		c.miss(conntype.Hung, fsm.Command{})
		c.is(conntype.Down, conntype.Hung)
		c.on(failing, fsm.Command{})
		c.is(conntype.Down, conntype.Hung)
		c.on(fsm.Ready{}, attempt(1, s, false))
		c.answer(fsm.Command{})
		c.is(conntype.Connected, conntype.None)
	})
	t.Run("known trouble causes few checks", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.on(failing, fsm.Command{Op: fsm.Check})
		c.answer(fsm.Command{})
		c.pass(s)
		c.on(fsm.Suspected{}, fsm.Command{})
		c.wait(2*s, fsm.Command{Op: fsm.Check})
		c.answer(fsm.Command{})
		c.pass(s)
		c.on(fsm.Lost{}, fsm.Command{Op: fsm.Check})
	})
}

func TestPollingStateIsKept(t *testing.T) {
	t.Parallel()
	c := down(t, conntype.Unreachable)
	c.on(fsm.Polling{}, fsm.Command{})
	c.is(conntype.Down, conntype.Unreachable)
	c.on(fsm.Ready{}, attempt(1, s, false))
	c.answer(fsm.Command{})
	c.is(conntype.Degraded, conntype.NotPolling)
}

func TestFreshAfterLongOutage(t *testing.T) {
	t.Parallel()
	c := down(t, conntype.Unreachable)
	c.wait(s, attempt(1, s, true)) // two seconds after the first miss
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.on(fsm.Built{}, fsm.Command{})
	c.is(conntype.Connected, conntype.None)

	c = down(t, conntype.Hung)
	c.pass(500 * ms)
	c.on(fsm.Ready{}, attempt(1, s, false))
	c.pass(2 * s)
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true}) // short when the attempt began, long when it ended
	c.is(conntype.Connected, conntype.None)
}

func TestChangedWhileUp(t *testing.T) {
	t.Parallel()
	build := fsm.Command{Op: fsm.Build, Fresh: true}
	c := connected(t)
	c.on(fsm.Changed{}, build)
	c.is(conntype.Connected, conntype.None)
	c.on(fsm.Changed{}, fsm.Command{}) // during the build
	c.on(fsm.Built{}, build)
	c.on(fsm.Built{Err: errRefused}, fsm.Command{})
	c.is(conntype.Connected, conntype.None)
	c.wait(s, build)
	// the failure may be that of the connection
	c.on(fsm.Built{Err: errRefused, Kind: conntype.AuthFailed}, fsm.Command{Op: fsm.Check})
	c.answer(fsm.Command{})
	c.wait(2*s, build)
	c.on(fsm.Changed{}, fsm.Command{})
	c.on(fsm.Built{Err: errRefused}, fsm.Command{})
	c.wait(500*ms, build) // the minimum interval
	c.on(fsm.Built{}, fsm.Command{})
	c.on(fsm.Changed{}, build)
	c.on(fsm.Built{Err: errRefused}, fsm.Command{})
	c.wait(500*ms, fsm.Command{Op: fsm.Probe})
	c.answer(fsm.Command{})
	c.wait(500*ms, build)
	require.Zero(t, c.m.View(c.now).Statistics.Outages)
}

func TestChangedDuringCheckAndMiss(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
	c.on(fsm.Changed{}, fsm.Command{})
	c.miss(conntype.AuthFailed, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.miss(conntype.AuthFailed, attempt(1, s, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.on(fsm.Built{}, fsm.Command{})
	c.is(conntype.Connected, conntype.None)
}
