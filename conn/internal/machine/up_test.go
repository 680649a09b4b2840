package machine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

func TestPacesWhileUp(t *testing.T) {
	t.Parallel()
	c := connected(t)
	for range 2 {
		for range 4 {
			c.wait(3*s, machine.Command{Do: machine.Probe})
			c.answer(machine.Command{})
		}
		c.wait(3*s, machine.Command{Do: machine.Check})
		c.answer(machine.Command{})
	}
	c.pass(3 * s)
	c.tick(machine.Command{Do: machine.Probe})
	c.answer(machine.Command{})
	c.pass(12 * s)
	c.tick(machine.Command{Do: machine.Check})
	c.pass(500 * ms)
	c.answer(machine.Command{})
	c.pass(14500 * ms) // from the start of one check to the next
	c.tick(machine.Command{Do: machine.Check})
	v := c.m.View(c.now)
	require.Equal(t, c.start, v.Since)
	require.EqualValues(t, 1, v.Attempts)
}

func TestProbesAreSpread(t *testing.T) {
	t.Parallel()
	set := settings()
	set.Random = func() float64 { return 0.5 }
	c := begin(t, set)
	c.tick(attempt(1, 0, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{}, machine.Command{})
	c.wait(3150*ms, machine.Command{Do: machine.Probe})
}

func TestSuspicion(t *testing.T) {
	t.Parallel()
	for _, e := range []machine.Event{machine.Lost{}, machine.Suspected{}} {
		t.Run(fmt.Sprintf("%T", e), func(t *testing.T) {
			t.Parallel()
			c := connected(t)
			c.pass(700 * ms)
			c.on(e, machine.Command{Do: machine.Check})
			c.pass(10 * ms)
			c.answer(machine.Command{})
			c.pass(90 * ms)
			c.on(e, machine.Command{})
			c.on(e, machine.Command{})
			c.wait(150*ms, machine.Command{Do: machine.Check})
			c.on(e, machine.Command{}) // during the check
			c.pass(400 * ms)
			c.answer(machine.Command{Do: machine.Check})
			c.miss(machine.Unreachable, machine.Command{})
			c.on(e, machine.Command{}) // the miss waits for its confirmation, and for nothing else
			c.wait(s, machine.Command{Do: machine.Check})
			c.is(machine.Connected, machine.None)
			c.miss(machine.Hung, machine.Command{})
			c.is(machine.Down, machine.Hung)
			c.on(e, machine.Command{}) // known
			c.wait(s, attempt(1, s, true))
		})
	}
}

func TestOneMiss(t *testing.T) {
	t.Parallel()
	build := machine.Command{Do: machine.Build, Fresh: true}
	cases := map[string]struct {
		confirmation time.Duration
		want         machine.Command
	}{
		"short": {999 * ms, machine.Command{}},
		"long":  {s, build},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connected(t)
			c.wait(3*s, machine.Command{Do: machine.Probe})
			c.miss(machine.Hung, machine.Command{})
			c.wait(s, machine.Command{Do: machine.Check})
			c.pass(tc.confirmation)
			c.answer(tc.want)
			c.is(machine.Connected, machine.None)
			if tc.want == build {
				c.on(machine.Built{}, machine.Command{})
				c.is(machine.Connected, machine.None)
			}
			require.Zero(t, c.m.View(c.now).Statistics.Outages)
		})
	}
}

// An outage counts from what gRPC lost, where no answer came in between.
func TestOutageStart(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.on(machine.Lost{}, machine.Command{Do: machine.Check})
	c.pass(900 * ms)
	c.miss(machine.Unreachable, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.pass(200 * ms)
	c.answer(machine.Command{Do: machine.Build, Fresh: true})
	c.on(machine.Built{}, machine.Command{})

	c.wait(3*s, machine.Command{Do: machine.Probe})
	c.pass(ms)
	c.on(machine.Lost{}, machine.Command{})
	c.answer(machine.Command{Do: machine.Check}) // older than the loss
	c.pass(900 * ms)
	c.miss(machine.Unreachable, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.pass(200 * ms)
	c.answer(machine.Command{Do: machine.Build, Fresh: true})
	c.on(machine.Built{}, machine.Command{})

	c.on(machine.Lost{}, machine.Command{Do: machine.Check})
	c.answer(machine.Command{}) // everyday
	c.pass(s)
	c.on(machine.Suspected{}, machine.Command{Do: machine.Check})
	c.miss(machine.Unreachable, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.miss(machine.Unreachable, machine.Command{})
	c.pass(400 * ms)
	st := c.m.View(c.now).Statistics
	require.Equal(t, []time.Duration{1400 * ms, 1400 * ms}, []time.Duration{st.LastOutage, st.LongestOutage}, "until now, while it lasts")
	c.on(machine.Ready{}, attempt(1, s, false))
	c.answer(machine.Command{})
	c.is(machine.Connected, machine.None)
	st = c.m.View(c.now).Statistics
	require.Equal(t, 1400*ms, st.LastOutage)
	require.Equal(t, 1400*ms, st.LongestOutage)
	require.EqualValues(t, 1, st.Outages)
	require.EqualValues(t, 2, st.Connections)
	require.Equal(t, c.now, st.ConnectedSince)
}

// What was before an outage, or before a new client, is no part of what comes later.
func TestOldLossesAreForgotten(t *testing.T) {
	t.Parallel()
	blip := func(c *script) {
		c.Helper()
		c.pass(s)
		c.on(machine.Suspected{}, machine.Command{Do: machine.Check})
		c.miss(machine.Hung, machine.Command{})
		c.wait(s, machine.Command{Do: machine.Check})
		c.answer(machine.Command{})
	}
	c := connected(t)
	c.on(machine.Lost{}, machine.Command{Do: machine.Check})
	c.miss(machine.Unreachable, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.miss(machine.Unreachable, machine.Command{})
	c.on(machine.Ready{}, attempt(1, s, false))
	c.answer(machine.Command{})
	blip(c)

	c = connected(t)
	c.on(machine.Changed{}, machine.Command{Do: machine.Build, Fresh: true})
	c.on(machine.Lost{}, machine.Command{}) // of the client that is being replaced
	c.pass(4 * s)
	c.on(machine.Built{}, machine.Command{Do: machine.Check})
	c.answer(machine.Command{})
	blip(c)
}

// A sign of life counts for the outage it came in.
func TestOldSignsAreForgotten(t *testing.T) {
	t.Parallel()
	fall := func(c *script) {
		c.Helper()
		c.pass(300 * ms)
		c.on(machine.Suspected{}, machine.Command{Do: machine.Check})
		c.miss(machine.Unreachable, machine.Command{})
		c.wait(s, machine.Command{Do: machine.Check})
		c.miss(machine.Unreachable, machine.Command{})
		require.Equal(c, s, c.m.View(c.now).NextAttempt.Sub(c.now))
	}
	c := connected(t)
	c.on(machine.Suspected{}, machine.Command{Do: machine.Check})
	c.on(machine.Reset{}, machine.Command{})
	c.answer(machine.Command{})
	fall(c)
	c.wait(s, attempt(1, s, true))
	c.on(machine.Reset{}, machine.Command{})
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{}, machine.Command{})
	fall(c)
	c.on(machine.Ready{}, attempt(1, s, false))
	c.on(machine.Suspected{}, machine.Command{}) // perhaps it is not back for good
	c.answer(machine.Command{Do: machine.Check})
	c.answer(machine.Command{})
	c.on(machine.Changed{}, machine.Command{Do: machine.Build, Fresh: true})
	c.on(machine.Reset{}, machine.Command{})
	c.on(machine.Built{}, machine.Command{})
	fall(c)
	c.on(machine.Ready{}, attempt(1, s, false))
	c.on(machine.Lost{}, machine.Command{})
	c.miss(machine.Unreachable, machine.Command{}) // which answers the loss
	c.wait(s, attempt(2, s, true))
	c.on(machine.Ready{}, machine.Command{})
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 2})
	c.on(machine.Built{Err: errRefused, Kind: machine.Unreachable}, machine.Command{}) // and no attempt for its own Ready
	c.wait(2*s, attempt(3, 2*s, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 3})
	c.on(machine.Built{}, machine.Command{}) // and no check for a loss long ago

	c.pass(300 * ms)
	c.on(machine.Suspected{}, machine.Command{Do: machine.Check})
	c.miss(machine.Unreachable, machine.Command{})
	c.on(machine.Ready{}, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.miss(machine.Unreachable, machine.Command{}) // which answers the Ready
}

// gRPC may hold a check back until there is a connection, so that a restart goes by without a miss.
func TestOutageWithoutMiss(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		regained time.Duration // zero: never said
		want     machine.Command
	}{
		"back at once, then a slow answer": {ms, machine.Command{}},
		"back late":                        {2 * s, machine.Command{Do: machine.Build, Fresh: true}},
		"not said":                         {0, machine.Command{Do: machine.Build, Fresh: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connected(t)
			c.on(machine.Lost{}, machine.Command{Do: machine.Check})
			c.pass(tc.regained)
			if tc.regained > 0 {
				c.on(machine.Ready{}, machine.Command{})
			}
			c.pass(2500*ms - tc.regained)
			c.answer(tc.want)
		})
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	c := connected(t)
	slow := machine.Checked{Took: 1200 * ms}
	c.wait(3*s, machine.Command{Do: machine.Probe})
	c.on(slow, machine.Command{})
	c.wait(s/4, machine.Command{Do: machine.Check})
	c.on(slow, machine.Command{})
	c.is(machine.Connected, machine.None)
	c.wait(s/4, machine.Command{Do: machine.Check})
	c.on(slow, machine.Command{})
	c.is(machine.Degraded, machine.Slow)
	since := c.now
	c.on(machine.Polling{}, machine.Command{})
	c.is(machine.Degraded, machine.Slow)
	c.wait(3*s, machine.Command{Do: machine.Check}) // a probe might be quick where this is not
	c.on(slow, machine.Command{})
	require.Equal(t, since, c.m.View(c.now).Since)
	c.wait(3*s, machine.Command{Do: machine.Check})
	c.answer(machine.Command{})
	c.is(machine.Degraded, machine.NotPolling)
	require.Equal(t, c.now, c.m.View(c.now).Since)
	c.on(machine.Polling{OK: true}, machine.Command{})
	c.is(machine.Connected, machine.None)
	c.wait(3*s, machine.Command{Do: machine.Probe})
	c.on(machine.Checked{Took: s}, machine.Command{}) // just in time
	c.wait(3*s, machine.Command{Do: machine.Probe})
}

// TestRequestsThatAreNotServed has requests in trouble, and checks that say whether the connection is.
func TestRequestsThatAreNotServed(t *testing.T) {
	t.Parallel()
	late := machine.Requests{Late: true, Err: errors.New("late")}
	failing := machine.Requests{Failing: true, Err: errors.New("over the limits")}
	t.Run("checks are answered", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.pass(s)
		c.on(late, machine.Command{Do: machine.Check})
		c.is(machine.Connected, machine.None)
		c.answer(machine.Command{})
		c.is(machine.Degraded, machine.Limited)
		require.Equal(t, late.Err, c.m.View(c.now).LastErr)
		c.on(failing, machine.Command{})
		c.is(machine.Degraded, machine.Limited)
		require.Equal(t, failing.Err, c.m.View(c.now).LastErr)
		c.on(machine.Polling{}, machine.Command{})
		c.is(machine.Degraded, machine.Limited)
		c.on(machine.Requests{}, machine.Command{})
		c.is(machine.Degraded, machine.NotPolling)
		c.on(machine.Polling{OK: true}, machine.Command{})
		c.is(machine.Connected, machine.None)
		require.EqualValues(t, 0, c.m.View(c.now).Statistics.Outages)

		c.pass(s)
		c.on(failing, machine.Command{Do: machine.Check})
		c.is(machine.Connected, machine.None) // the answer before said nothing about it
	})
	t.Run("a check under way is older", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.wait(3*s, machine.Command{Do: machine.Probe})
		c.pass(100 * ms)
		c.on(failing, machine.Command{})
		c.answer(machine.Command{Do: machine.Check})
		c.is(machine.Connected, machine.None)
		c.answer(machine.Command{})
		c.is(machine.Degraded, machine.Limited)
	})
	t.Run("checks are slow as well", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			event machine.Requests
			kind  machine.Kind
			state machine.State
		}{{late, machine.None, machine.Connected}, {failing, machine.Limited, machine.Degraded}} {
			c := connected(t)
			c.on(tt.event, machine.Command{Do: machine.Check})
			c.on(machine.Checked{Took: 2 * s}, machine.Command{})
			c.is(tt.state, tt.kind)
		}
	})
	t.Run("checks are not answered", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.on(late, machine.Command{Do: machine.Check})
		c.miss(machine.Hung, machine.Command{})
		c.wait(s, machine.Command{Do: machine.Check})
		c.on(failing, machine.Command{})
		c.is(machine.Connected, machine.None)
		c.miss(machine.Hung, machine.Command{})
		c.is(machine.Down, machine.Hung)
		c.on(failing, machine.Command{})
		c.is(machine.Down, machine.Hung)
		c.on(machine.Ready{}, attempt(1, s, false))
		c.answer(machine.Command{})
		c.is(machine.Connected, machine.None)
	})
	t.Run("known trouble causes few checks", func(t *testing.T) {
		t.Parallel()
		c := connected(t)
		c.on(failing, machine.Command{Do: machine.Check})
		c.answer(machine.Command{})
		c.pass(s)
		c.on(machine.Suspected{}, machine.Command{})
		c.wait(2*s, machine.Command{Do: machine.Check})
		c.answer(machine.Command{})
		c.pass(s)
		c.on(machine.Lost{}, machine.Command{Do: machine.Check})
	})
}

func TestPollingIsRemembered(t *testing.T) {
	t.Parallel()
	c := down(t, machine.Unreachable)
	c.on(machine.Polling{}, machine.Command{})
	c.is(machine.Down, machine.Unreachable)
	c.on(machine.Ready{}, attempt(1, s, false))
	c.answer(machine.Command{})
	c.is(machine.Degraded, machine.NotPolling)
}

func TestFreshAfterLongOutage(t *testing.T) {
	t.Parallel()
	c := down(t, machine.Unreachable)
	c.wait(s, attempt(1, s, true)) // two seconds after the first miss
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{}, machine.Command{})
	c.is(machine.Connected, machine.None)

	c = down(t, machine.Hung)
	c.pass(500 * ms)
	c.on(machine.Ready{}, attempt(1, s, false))
	c.pass(2 * s)
	c.answer(machine.Command{Do: machine.Build, Fresh: true}) // short when the attempt began, long when it ended
	c.is(machine.Connected, machine.None)
}

func TestChangedWhileUp(t *testing.T) {
	t.Parallel()
	build := machine.Command{Do: machine.Build, Fresh: true}
	c := connected(t)
	c.on(machine.Changed{}, build)
	c.is(machine.Connected, machine.None)
	c.on(machine.Changed{}, machine.Command{}) // during the build
	c.on(machine.Built{}, build)
	c.on(machine.Built{Err: errRefused}, machine.Command{})
	c.is(machine.Connected, machine.None)
	c.wait(s, build)
	c.on(machine.Built{Err: errRefused, Kind: machine.AuthFailed}, machine.Command{Do: machine.Check}) // is it the connection?
	c.answer(machine.Command{})
	c.wait(2*s, build)
	c.on(machine.Changed{}, machine.Command{})
	c.on(machine.Built{Err: errRefused}, machine.Command{})
	c.wait(500*ms, build) // never in a storm
	c.on(machine.Built{}, machine.Command{})
	c.on(machine.Changed{}, build)
	c.on(machine.Built{Err: errRefused}, machine.Command{})
	c.wait(500*ms, machine.Command{Do: machine.Probe})
	c.answer(machine.Command{})
	c.wait(500*ms, build)
	require.Zero(t, c.m.View(c.now).Statistics.Outages)
}

func TestChangedDuringCheckAndMiss(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.wait(3*s, machine.Command{Do: machine.Probe})
	c.on(machine.Changed{}, machine.Command{})
	c.miss(machine.AuthFailed, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.miss(machine.AuthFailed, attempt(1, s, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{}, machine.Command{})
	c.is(machine.Connected, machine.None)
}
