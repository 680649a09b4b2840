package fsm_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

func TestSignsOfLifeEndBackoffEarly(t *testing.T) {
	t.Parallel()
	for _, e := range []fsm.Event{fsm.Ready{}, fsm.Changed{}, fsm.Reset{}} {
		t.Run(fmt.Sprintf("%T", e), func(t *testing.T) {
			t.Parallel()
			c := begin(t, settings())
			c.tick(attempt(1, 0, true))
			for n, pause := int64(2), s; n <= 5; n, pause = n+1, 2*pause {
				c.miss(conntype.Unreachable, fsm.Command{})
				if probes := c.m.Deadline().Sub(c.now); probes < pause {
					c.wait(3*s, fsm.Command{Op: fsm.Probe})
					c.miss(conntype.Unreachable, fsm.Command{})
					c.wait(pause-3*s, attempt(n, pause, true))
					continue
				}
				c.wait(pause, attempt(n, pause, true))
			}
			c.miss(conntype.Unreachable, fsm.Command{})
			due := c.m.View(c.now).NextAttempt
			require.Equal(t, 16*s, due.Sub(c.now))
			c.pass(100 * ms)
			c.on(e, attempt(6, 16*s, true))
			c.pass(5 * ms)
			c.miss(conntype.Unreachable, fsm.Command{})
			require.Equal(t, due, c.m.View(c.now).NextAttempt, "the schedule stays as it was")
			c.pass(100 * ms)
			c.on(e, fsm.Command{})
			c.on(e, fsm.Command{})
			require.Equal(t, 400*ms, c.m.View(c.now).NextAttempt.Sub(c.now))
			c.wait(400*ms, attempt(7, 16*s, true))
			c.on(e, fsm.Command{}) // during the attempt
			c.miss(conntype.Unreachable, fsm.Command{})
			c.wait(500*ms, attempt(8, 16*s, true))
			c.miss(conntype.Unreachable, fsm.Command{})
			c.pass(600 * ms)
			c.on(e, attempt(9, 16*s, true))
			c.pass(20 * s) // beyond the scheduled time: this attempt replaces the scheduled one
			c.miss(conntype.Unreachable, fsm.Command{})
			require.Equal(t, 30*s, c.m.View(c.now).NextAttempt.Sub(c.now))
		})
	}
}

// The minimum interval applies to each kind of sign separately.
func TestSignsOfTwoKinds(t *testing.T) {
	t.Parallel()
	c := down(t, conntype.Unreachable)
	c.on(fsm.Ready{}, attempt(1, s, false))
	c.miss(conntype.Unreachable, fsm.Command{})
	c.on(fsm.Reset{}, attempt(2, s, false))
	c.miss(conntype.Unreachable, fsm.Command{})
	c.on(fsm.Changed{}, attempt(3, s, true))
}

// A new client has its own connection, whose Ready must not cause attempt after attempt.
func TestReadyCausedByAttempt(t *testing.T) {
	t.Parallel()
	for _, kind := range []conntype.Kind{conntype.NamespaceMissing, conntype.AuthFailed} {
		c := begin(t, settings())
		c.tick(attempt(1, 0, true))
		c.on(fsm.Ready{}, fsm.Command{})
		c.miss(kind, fsm.Command{})
		c.wait(s, attempt(2, s, true))
	}
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	c.on(fsm.Ready{}, fsm.Command{})
	c.miss(conntype.Hung, attempt(2, s, true))
	c.on(fsm.Ready{}, fsm.Command{})
	c.pass(3 * s)
	c.miss(conntype.Hung, fsm.Command{})
	c.wait(2*s, attempt(3, 2*s, true))
}

func TestAnsweredProbeIsASignOfLife(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	for range 4 {
		c.miss(conntype.Hung, fsm.Command{})
		next := c.m.View(c.now).NextAttempt
		for c.now = c.m.Deadline(); c.m.Tick(c.now).Op == fsm.Probe; c.now = c.m.Deadline() {
			c.miss(conntype.Hung, fsm.Command{})
		}
		require.Equal(t, next, c.now)
	}
	c.miss(conntype.Hung, fsm.Command{})
	next := c.m.View(c.now).NextAttempt
	require.Equal(t, 16*s, next.Sub(c.now))
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
	c.miss(conntype.Unreachable, fsm.Command{})
	c.is(conntype.Down, conntype.Unreachable) // the probe's result changes the kind
	c.breaker(conntype.BreakerClosed, 5)
	require.Equal(t, next, c.m.View(c.now).NextAttempt)
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
	c.answer(attempt(6, 16*s, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 6})
}

// A probe never delays an attempt, provided that it takes at most ProbeEvery.
func TestProbeDoesNotDelayAttempt(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	c.miss(conntype.Hung, fsm.Command{})
	for n := int64(2); n < 40; n++ {
		due := c.m.View(c.now).NextAttempt
		for {
			c.now = c.m.Deadline()
			cmd := c.m.Tick(c.now)
			if cmd.Op == fsm.Attempt {
				require.Equal(t, n, cmd.Number)
				require.Equal(t, due, c.now)
				break
			}
			require.Equal(t, fsm.Probe, cmd.Op)
			c.pass(3 * s)
			if cmd = c.m.Handle(c.now, fsm.Checked{Kind: conntype.Hung}); cmd.Op != fsm.Nothing {
				require.Equal(t, fsm.Attempt, cmd.Op)
				require.Equal(t, due, c.now)
				break
			}
		}
		c.miss(conntype.Hung, fsm.Command{})
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
			c.miss(conntype.Unreachable, fsm.Command{})
			got := c.m.View(c.now).NextAttempt.Sub(c.now)
			require.GreaterOrEqual(t, got, want)
			require.LessOrEqual(t, got, want+want/5)
			require.InDelta(t, float64(want)*(1+0.2*random), float64(got), 1)
			c.pass(got)
			require.Equal(t, got, c.m.Tick(c.now).Backoff)
			want = min(2*want, 30*s)
		}
		c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 10_001})
		c.on(fsm.Built{}, fsm.Command{})
		c.on(fsm.Lost{}, fsm.Command{Op: fsm.Check})
		c.miss(conntype.Unreachable, fsm.Command{})
		confirmation := c.m.Deadline().Sub(c.now)
		require.InDelta(t, float64(s)*(1+0.2*random), float64(confirmation), 1, "the confirmation has jitter")
		c.pass(confirmation)
		c.tick(fsm.Command{Op: fsm.Check})
		c.miss(conntype.Unreachable, fsm.Command{})
		require.LessOrEqual(t, c.m.View(c.now).NextAttempt.Sub(c.now), 1200*ms, "a success resets the back-off")
	}
}

func TestBackoffDoesNotOverflow(t *testing.T) {
	t.Parallel()
	set := settings()
	set.BackoffMax, set.BreakerAfter = 200*365*24*time.Hour, math.MaxInt
	c := begin(t, set)
	c.tick(attempt(1, 0, true))
	before := time.Duration(0)
	for range 200 {
		c.miss(conntype.Unreachable, fsm.Command{})
		pause := c.m.View(c.now).NextAttempt.Sub(c.now)
		require.GreaterOrEqual(t, pause, before)
		require.LessOrEqual(t, pause, set.BackoffMax)
		before = pause
		c.pass(pause)
		require.Equal(t, fsm.Attempt, c.m.Tick(c.now).Op)
	}
	require.Equal(t, set.BackoffMax, before)
}

// breakerOpen returns a script with a breaker that has just opened.
func breakerOpen(t *testing.T) *script {
	t.Helper()
	set := settings()
	set.ProbeEvery = time.Hour // no probes
	c := begin(t, set)
	c.tick(attempt(1, 0, true))
	for n := range 9 {
		c.breaker(conntype.BreakerClosed, n)
		c.miss(conntype.Unreachable, fsm.Command{})
		c.now = c.m.Deadline()
		require.Equal(t, fsm.Attempt, c.m.Tick(c.now).Op)
	}
	c.breaker(conntype.BreakerClosed, 9)
	c.miss(conntype.Unreachable, fsm.Command{})
	c.breaker(conntype.BreakerOpen, 10)
	require.Equal(t, conntype.Breaker{
		State: conntype.BreakerOpen, Failures: 10, OpenedAt: c.now, NextProbe: c.now.Add(5 * time.Minute)},
		c.m.View(c.now).Breaker)
	return c
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	c := breakerOpen(t)
	opened := c.now
	c.wait(5*time.Minute, attempt(11, 5*time.Minute, true))
	c.breaker(conntype.BreakerHalfOpen, 10)
	c.miss(conntype.Unreachable, fsm.Command{})
	c.breaker(conntype.BreakerOpen, 11)
	c.pass(time.Minute)
	c.on(fsm.Reset{}, attempt(12, 5*time.Minute, true))
	c.breaker(conntype.BreakerHalfOpen, 11)
	c.miss(conntype.Unreachable, fsm.Command{})
	require.Equal(t, conntype.Breaker{
		State: conntype.BreakerOpen, Failures: 12, OpenedAt: opened, NextProbe: c.now.Add(5 * time.Minute)},
		c.m.View(c.now).Breaker)
	c.on(fsm.Reset{}, fsm.Command{})
	c.breaker(conntype.BreakerHalfOpen, 12)
	require.Equal(t, c.now.Add(500*ms), c.m.View(c.now).Breaker.NextProbe)
	c.on(fsm.Ready{}, attempt(13, 5*time.Minute, true)) // also satisfies the reset
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 13})
	c.breaker(conntype.BreakerHalfOpen, 12)
	c.on(fsm.Built{}, fsm.Command{})
	require.Equal(t, conntype.Breaker{State: conntype.BreakerClosed}, c.m.View(c.now).Breaker)
}

func TestResetWhileClosed(t *testing.T) {
	t.Parallel()
	c := down(t, conntype.Unreachable)
	c.wait(s, attempt(1, s, true))
	c.miss(conntype.Unreachable, fsm.Command{})
	c.breaker(conntype.BreakerClosed, 1)
	c.on(fsm.Reset{}, attempt(2, 2*s, true))
	c.breaker(conntype.BreakerClosed, 0)
	c.miss(conntype.Unreachable, fsm.Command{})
	c.breaker(conntype.BreakerClosed, 1)
	c.wait(2*s, attempt(3, 2*s, true))

	c = connected(t)
	c.on(fsm.Reset{}, fsm.Command{})
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
}

func TestFailedBuildIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	c := down(t, conntype.Unreachable)
	c.wait(s, attempt(1, s, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.pass(s)
	c.on(fsm.Built{Err: errRefused}, fsm.Command{})
	c.is(conntype.Down, conntype.Unreachable)
	c.wait(2*s, attempt(2, 2*s, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 2})
	c.on(fsm.Built{Err: errRefused, Kind: conntype.Hung}, fsm.Command{})
	c.is(conntype.Down, conntype.Hung)
	c.breaker(conntype.BreakerClosed, 2)
	due := c.m.View(c.now).NextAttempt
	c.on(fsm.Ready{}, attempt(3, 4*s, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 3})
	c.on(fsm.Built{Err: errRefused}, fsm.Command{})
	require.Equal(t, due, c.m.View(c.now).NextAttempt, "the schedule stays as it was")
}

// A current client that is answered too is kept with its workers, unless those did not survive the outage.
func TestCurrentClientIsKept(t *testing.T) {
	t.Parallel()
	both := fsm.Checked{Took: ms, CurrentAnswered: true}
	long := settings()
	long.RebuildAfter = time.Minute
	for name, tt := range map[string]struct {
		settings fsm.Settings
		kind     conntype.Kind
		event    fsm.Event
		answer   fsm.Checked
		build    bool
	}{
		"both answer":              {long, conntype.Unreachable, nil, both, false},
		"hung before":              {long, conntype.Hung, nil, both, false},
		"only the new one answers": {long, conntype.Unreachable, nil, fsm.Checked{Took: ms}, true},
		"polls were refused":       {long, conntype.AuthFailed, nil, both, true},
		"the namespace was gone":   {long, conntype.NamespaceMissing, nil, both, true},
		"identity changed":         {long, conntype.Unreachable, fsm.Changed{}, both, true},
		"outage too long":          {settings(), conntype.Unreachable, nil, both, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := attempting(t, tt.settings, tt.kind, tt.event)
			want := fsm.Command{}
			if tt.build {
				want = fsm.Command{Op: fsm.Build, Fresh: true, Number: 1}
			}
			c.on(tt.answer, want)
			require.Equal(t, !tt.build, c.m.View(c.now).State == conntype.Connected)
		})
	}
}
