package machine_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var errRefused = errors.New("connection refused")

// settings are the defaults of the product, without chance.
func settings() machine.Settings {
	return machine.Settings{
		CheckEvery: 15 * s, ProbeEvery: 3 * s, ConfirmAfter: s, SlowAfter: s, RebuildAfter: 2 * s,
		BackoffFirst: s, BackoffMost: 30 * s, BreakerAfter: 10, BreakerEvery: 5 * time.Minute,
		Random: func() float64 { return 0 },
	}
}

// script drives a machine by hand. Its clock moves only where the test says so.
type script struct {
	*testing.T

	m     *machine.Machine
	start time.Time
	now   time.Time
}

func begin(t *testing.T, set machine.Settings) *script {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &script{t, machine.New(set, start), start, start}
}

// connected is a script whose machine has just connected, at its start.
func connected(t *testing.T) *script {
	t.Helper()
	c := begin(t, settings())
	c.tick(machine.Command{Do: machine.Attempt, Fresh: true, Number: 1})
	c.on(machine.Checked{Took: ms}, machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{}, machine.Command{})
	c.is(machine.Connected, machine.None)
	return c
}

// down is a script whose machine went down just now, by an outage that began a second ago.
func down(t *testing.T, kind machine.Kind) *script {
	t.Helper()
	c := connected(t)
	c.on(machine.Suspected{}, machine.Command{Do: machine.Check})
	c.miss(kind, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.miss(kind, machine.Command{})
	c.is(machine.Down, kind)
	return c
}

func (c *script) on(e machine.Event, want machine.Command) {
	c.Helper()
	require.Equal(c, want, c.m.On(c.now, e))
}

func (c *script) tick(want machine.Command) {
	c.Helper()
	require.Equal(c, want, c.m.Tick(c.now))
}

func (c *script) miss(kind machine.Kind, want machine.Command) {
	c.Helper()
	c.on(machine.Checked{Kind: kind, Err: errRefused}, want)
}

func (c *script) answer(want machine.Command) {
	c.Helper()
	c.on(machine.Checked{Took: ms}, want)
}

// pass moves the clock while an operation is under way.
func (c *script) pass(d time.Duration) { c.now = c.now.Add(d) }

// wait expects that nothing is due for exactly so long, and then the command.
func (c *script) wait(d time.Duration, want machine.Command) {
	c.Helper()
	require.Equal(c, d, c.m.Deadline().Sub(c.now), "the deadline")
	require.Equal(c, machine.Command{}, c.m.Tick(c.now.Add(d-1)), "a tick too early")
	c.pass(d)
	c.tick(want)
	require.Zero(c, c.m.Deadline(), "an operation is under way")
}

func (c *script) is(state machine.State, kind machine.Kind) {
	c.Helper()
	v := c.m.View(c.now)
	require.Equal(c, state, v.State)
	require.Equal(c, kind, v.Kind)
}

func (c *script) breaker(state machine.BreakerState, failures int) {
	c.Helper()
	b := c.m.View(c.now).Breaker
	require.Equal(c, state, b.State)
	require.Equal(c, failures, b.Failures)
}

func attempt(number int64, pause time.Duration, fresh bool) machine.Command {
	return machine.Command{Do: machine.Attempt, Fresh: fresh, Number: number, Backoff: pause}
}

func TestConnecting(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.is(machine.Connecting, machine.None)
	require.Equal(t, c.start, c.m.Deadline())
	c.tick(attempt(1, 0, true))
	c.pass(40 * ms)
	c.miss(machine.TLSError, machine.Command{})
	c.is(machine.Down, machine.TLSError)
	v := c.m.View(c.now)
	require.Equal(t, c.now, v.Since)
	require.Equal(t, errRefused, v.LastErr)
	require.Equal(t, c.now, v.LastErrAt)
	require.Equal(t, c.now.Add(s), v.NextAttempt)
	require.EqualValues(t, 1, v.Attempts)
	require.Zero(t, v.Statistics.Outages, "nothing was there to go out")
	c.wait(s, attempt(2, s, true))
	require.Zero(t, c.m.View(c.now).NextAttempt, "it is under way")
	c.pass(60 * ms)
	c.on(machine.Checked{Took: 60 * ms}, machine.Command{Do: machine.Build, Fresh: true, Number: 2})
	c.is(machine.Down, machine.TLSError)
	c.pass(100 * ms)
	c.on(machine.Built{}, machine.Command{})
	c.is(machine.Connected, machine.None)
	v = c.m.View(c.now.Add(s))
	require.Equal(t, 60*ms, v.Latency)
	require.Zero(t, v.NextAttempt)
	require.Equal(t, machine.Statistics{
		Uptime: s, Downtime: 1200 * ms, Connections: 1, ConnectedSince: c.now,
	}, v.Statistics)
}

func TestFirstBuildFailsByItself(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{Err: errRefused}, machine.Command{})
	c.is(machine.Connecting, machine.None)
	c.breaker(machine.BreakerClosed, 1)
	c.wait(s, attempt(2, s, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 2})
	c.on(machine.Built{Err: errRefused, Kind: machine.Hung}, machine.Command{})
	c.is(machine.Down, machine.Hung)
	c.wait(2*s, attempt(3, 2*s, true))
}

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
	c.on(machine.Ready{}, attempt(1, s, false))
	c.answer(machine.Command{})
	c.is(machine.Connected, machine.None)
	st := c.m.View(c.now).Statistics
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
	c.wait(s, machine.Command{Do: machine.Check})
	c.on(slow, machine.Command{})
	c.is(machine.Connected, machine.None)
	c.wait(s, machine.Command{Do: machine.Check})
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

func TestSignsCutTheBackoffShort(t *testing.T) {
	t.Parallel()
	for _, e := range []machine.Event{machine.Ready{}, machine.Changed{}, machine.Reset{}} {
		t.Run(fmt.Sprintf("%T", e), func(t *testing.T) {
			t.Parallel()
			c := begin(t, settings())
			c.tick(attempt(1, 0, true))
			for n, pause := int64(2), s; n <= 5; n, pause = n+1, 2*pause {
				c.miss(machine.Unreachable, machine.Command{})
				if probes := c.m.Deadline().Sub(c.now); probes < pause {
					c.wait(3*s, machine.Command{Do: machine.Probe})
					c.miss(machine.Unreachable, machine.Command{})
					c.wait(pause-3*s, attempt(n, pause, true))
					continue
				}
				c.wait(pause, attempt(n, pause, true))
			}
			c.miss(machine.Unreachable, machine.Command{})
			due := c.m.View(c.now).NextAttempt
			require.Equal(t, 16*s, due.Sub(c.now))
			c.pass(100 * ms)
			c.on(e, attempt(6, 16*s, true))
			c.pass(5 * ms)
			c.miss(machine.Unreachable, machine.Command{})
			require.Equal(t, due, c.m.View(c.now).NextAttempt, "the sequence stands")
			c.pass(100 * ms)
			c.on(e, machine.Command{})
			c.on(e, machine.Command{})
			require.Equal(t, 400*ms, c.m.View(c.now).NextAttempt.Sub(c.now))
			c.wait(400*ms, attempt(7, 16*s, true))
			c.on(e, machine.Command{}) // during the attempt
			c.miss(machine.Unreachable, machine.Command{})
			c.wait(500*ms, attempt(8, 16*s, true))
			c.miss(machine.Unreachable, machine.Command{})
			c.pass(600 * ms)
			c.on(e, attempt(9, 16*s, true))
			c.pass(20 * s) // beyond its time: it has served for the one that was due
			c.miss(machine.Unreachable, machine.Command{})
			require.Equal(t, 30*s, c.m.View(c.now).NextAttempt.Sub(c.now))
		})
	}
}

// Signs of two kinds do not pace each other.
func TestSignsOfTwoKinds(t *testing.T) {
	t.Parallel()
	c := down(t, machine.Unreachable)
	c.on(machine.Ready{}, attempt(1, s, false))
	c.miss(machine.Unreachable, machine.Command{})
	c.on(machine.Reset{}, attempt(2, s, false))
	c.miss(machine.Unreachable, machine.Command{})
	c.on(machine.Changed{}, attempt(3, s, true))
}

// A new client has a connection of its own, whose becoming ready must not cause the next attempt for ever.
func TestReadyOfTheAttemptItself(t *testing.T) {
	t.Parallel()
	for _, kind := range []machine.Kind{machine.NamespaceMissing, machine.AuthFailed} {
		c := begin(t, settings())
		c.tick(attempt(1, 0, true))
		c.on(machine.Ready{}, machine.Command{})
		c.miss(kind, machine.Command{})
		c.wait(s, attempt(2, s, true))
	}
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	c.on(machine.Ready{}, machine.Command{})
	c.miss(machine.Hung, attempt(2, s, true))
	c.on(machine.Ready{}, machine.Command{})
	c.pass(3 * s)
	c.miss(machine.Hung, machine.Command{})
	c.wait(2*s, attempt(3, 2*s, true))
}

func TestAnsweredProbeIsASignOfLife(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	for range 4 {
		c.miss(machine.Hung, machine.Command{})
		next := c.m.View(c.now).NextAttempt
		for c.now = c.m.Deadline(); c.m.Tick(c.now).Do == machine.Probe; c.now = c.m.Deadline() {
			c.miss(machine.Hung, machine.Command{})
		}
		require.Equal(t, next, c.now)
	}
	c.miss(machine.Hung, machine.Command{})
	next := c.m.View(c.now).NextAttempt
	require.Equal(t, 16*s, next.Sub(c.now))
	c.wait(3*s, machine.Command{Do: machine.Probe})
	c.miss(machine.Unreachable, machine.Command{})
	c.is(machine.Down, machine.Unreachable) // it could tell
	c.breaker(machine.BreakerClosed, 5)
	require.Equal(t, next, c.m.View(c.now).NextAttempt)
	c.wait(3*s, machine.Command{Do: machine.Probe})
	c.answer(attempt(6, 16*s, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 6})
}

// An attempt that is due is never late for a probe, however long the probe takes (at most its own pace).
func TestAttemptIsNeverMaskedByAProbe(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	c.miss(machine.Hung, machine.Command{})
	for n := int64(2); n < 40; n++ {
		due := c.m.View(c.now).NextAttempt
		for {
			c.now = c.m.Deadline()
			cmd := c.m.Tick(c.now)
			if cmd.Do == machine.Attempt {
				require.Equal(t, n, cmd.Number)
				require.Equal(t, due, c.now)
				break
			}
			require.Equal(t, machine.Probe, cmd.Do)
			c.pass(3 * s)
			if cmd = c.m.On(c.now, machine.Checked{Kind: machine.Hung}); cmd.Do != machine.Nothing {
				require.Equal(t, machine.Attempt, cmd.Do)
				require.Equal(t, due, c.now)
				break
			}
		}
		c.miss(machine.Hung, machine.Command{})
	}
}

func TestBackoffSequence(t *testing.T) {
	t.Parallel()
	for _, random := range []float64{0, 0.5, math.Nextafter(1, 0)} {
		set := settings()
		set.BreakerAfter = math.MaxInt
		set.Random = func() float64 { return random }
		c := begin(t, set)
		c.tick(attempt(1, 0, true))
		want := s
		for range 10_000 {
			c.miss(machine.Unreachable, machine.Command{})
			got := c.m.View(c.now).NextAttempt.Sub(c.now)
			require.GreaterOrEqual(t, got, want)
			require.LessOrEqual(t, got, want+want/5)
			require.InDelta(t, float64(want)*(1+0.2*random), float64(got), 1)
			c.pass(got)
			require.Equal(t, got, c.m.Tick(c.now).Backoff)
			want = min(2*want, 30*s)
		}
		c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 10_001})
		c.on(machine.Built{}, machine.Command{})
		c.on(machine.Lost{}, machine.Command{Do: machine.Check})
		c.miss(machine.Unreachable, machine.Command{})
		c.pass(s)
		c.tick(machine.Command{Do: machine.Check})
		c.miss(machine.Unreachable, machine.Command{})
		require.LessOrEqual(t, c.m.View(c.now).NextAttempt.Sub(c.now), 1200*ms, "a success resets the sequence")
	}
}

func TestBackoffDoesNotOverflow(t *testing.T) {
	t.Parallel()
	set := settings()
	set.BackoffMost, set.BreakerAfter = 200*365*24*time.Hour, math.MaxInt
	c := begin(t, set)
	c.tick(attempt(1, 0, true))
	before := time.Duration(0)
	for range 200 {
		c.miss(machine.Unreachable, machine.Command{})
		pause := c.m.View(c.now).NextAttempt.Sub(c.now)
		require.GreaterOrEqual(t, pause, before)
		require.LessOrEqual(t, pause, set.BackoffMost)
		before = pause
		c.pass(pause)
		require.Equal(t, machine.Attempt, c.m.Tick(c.now).Do)
	}
	require.Equal(t, set.BackoffMost, before)
}

// tripped is a script whose breaker has just opened.
func tripped(t *testing.T) *script {
	t.Helper()
	set := settings()
	set.ProbeEvery = time.Hour // out of the way
	c := begin(t, set)
	c.tick(attempt(1, 0, true))
	for n := range 9 {
		c.breaker(machine.BreakerClosed, n)
		c.miss(machine.Unreachable, machine.Command{})
		c.now = c.m.Deadline()
		require.Equal(t, machine.Attempt, c.m.Tick(c.now).Do)
	}
	c.breaker(machine.BreakerClosed, 9)
	c.miss(machine.Unreachable, machine.Command{})
	c.breaker(machine.BreakerOpen, 10)
	require.Equal(t, machine.Breaker{State: machine.BreakerOpen, Failures: 10, OpenedAt: c.now, NextProbe: c.now.Add(5 * time.Minute)},
		c.m.View(c.now).Breaker)
	return c
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	c := tripped(t)
	opened := c.now
	c.wait(5*time.Minute, attempt(11, 5*time.Minute, true))
	c.breaker(machine.BreakerHalfOpen, 10)
	c.miss(machine.Unreachable, machine.Command{})
	c.breaker(machine.BreakerOpen, 11)
	c.pass(time.Minute)
	c.on(machine.Reset{}, attempt(12, 5*time.Minute, true))
	c.breaker(machine.BreakerHalfOpen, 11)
	c.miss(machine.Unreachable, machine.Command{})
	require.Equal(t, machine.Breaker{State: machine.BreakerOpen, Failures: 12, OpenedAt: opened, NextProbe: c.now.Add(5 * time.Minute)},
		c.m.View(c.now).Breaker)
	c.on(machine.Reset{}, machine.Command{})
	c.breaker(machine.BreakerHalfOpen, 12)
	require.Equal(t, c.now.Add(500*ms), c.m.View(c.now).Breaker.NextProbe)
	c.on(machine.Ready{}, attempt(13, 5*time.Minute, true)) // answers the operator's wish as well
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 13})
	c.breaker(machine.BreakerHalfOpen, 12)
	c.on(machine.Built{}, machine.Command{})
	require.Equal(t, machine.Breaker{State: machine.BreakerClosed}, c.m.View(c.now).Breaker)
}

func TestResetWhileClosed(t *testing.T) {
	t.Parallel()
	c := down(t, machine.Unreachable)
	c.wait(s, attempt(1, s, true))
	c.miss(machine.Unreachable, machine.Command{})
	c.breaker(machine.BreakerClosed, 1)
	c.on(machine.Reset{}, attempt(2, 2*s, true))
	c.breaker(machine.BreakerClosed, 0)
	c.miss(machine.Unreachable, machine.Command{})
	c.breaker(machine.BreakerClosed, 1)
	c.wait(2*s, attempt(3, 2*s, true))

	c = connected(t)
	c.on(machine.Reset{}, machine.Command{})
	c.wait(3*s, machine.Command{Do: machine.Probe})
}

func TestFailedBuildIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	c := down(t, machine.Unreachable)
	c.wait(s, attempt(1, s, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.pass(s)
	c.on(machine.Built{Err: errRefused}, machine.Command{})
	c.is(machine.Down, machine.Unreachable)
	c.wait(2*s, attempt(2, 2*s, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 2})
	c.on(machine.Built{Err: errRefused, Kind: machine.Hung}, machine.Command{})
	c.is(machine.Down, machine.Hung)
	c.breaker(machine.BreakerClosed, 2)
	due := c.m.View(c.now).NextAttempt
	c.on(machine.Ready{}, attempt(3, 4*s, true))
	c.answer(machine.Command{Do: machine.Build, Fresh: true, Number: 3})
	c.on(machine.Built{Err: errRefused}, machine.Command{})
	require.Equal(t, due, c.m.View(c.now).NextAttempt, "the sequence stands")
}

func TestClose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*script{"up": connected(t), "down": down(t, machine.Hung), "new": begin(t, settings())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &script{t, c.m, c.start, c.now.Add(10 * s)}
			before := c.m.View(c.now).Statistics
			c.on(machine.Close{}, machine.Command{})
			c.is(machine.Closed, machine.None)
			for _, e := range []machine.Event{machine.Checked{}, machine.Built{}, machine.Ready{}, machine.Lost{}, machine.Suspected{},
				machine.Changed{}, machine.Polling{}, machine.Reset{}, machine.Close{}} {
				c.pass(time.Minute)
				c.on(e, machine.Command{})
				c.tick(machine.Command{})
				require.Zero(t, c.m.Deadline())
			}
			c.is(machine.Closed, machine.None)
			after := c.m.View(c.now).Statistics
			require.Equal(t, before.Uptime+before.Downtime, after.Uptime+after.Downtime)
			require.Zero(t, after.ConnectedSince)
		})
	}
}
