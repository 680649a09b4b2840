package machine_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

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
		confirmation := c.m.Deadline().Sub(c.now)
		require.InDelta(t, float64(s)*(1+0.2*random), float64(confirmation), 1, "many processes do not confirm together")
		c.pass(confirmation)
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

// A current client that is answered as well goes on with the workers it has, unless those cannot.
func TestTheCurrentClientGoesOn(t *testing.T) {
	t.Parallel()
	both := machine.Checked{Took: ms, Current: true}
	long := settings()
	long.RebuildAfter = time.Minute
	for name, tt := range map[string]struct {
		settings machine.Settings
		kind     machine.Kind
		event    machine.Event
		answer   machine.Checked
		build    bool
	}{
		"both answer":              {long, machine.Unreachable, nil, both, false},
		"hung before":              {long, machine.Hung, nil, both, false},
		"only the new one answers": {long, machine.Unreachable, nil, machine.Checked{Took: ms}, true},
		"polls were refused":       {long, machine.AuthFailed, nil, both, true},
		"the namespace was gone":   {long, machine.NamespaceMissing, nil, both, true},
		"another identity":         {long, machine.Unreachable, machine.Changed{}, both, true},
		"too long an outage":       {settings(), machine.Unreachable, nil, both, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := attempting(t, tt.settings, tt.kind, tt.event)
			want := machine.Command{}
			if tt.build {
				want = machine.Command{Do: machine.Build, Fresh: true, Number: 1}
			}
			c.on(tt.answer, want)
			require.Equal(t, !tt.build, c.m.View(c.now).State == machine.Connected)
		})
	}
}
