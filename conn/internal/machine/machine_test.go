package machine_test

import (
	"errors"
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
		CheckEvery: 15 * s, ProbeEvery: 3 * s, ConfirmAfter: s, SlowAfter: s, FreshAfter: 2 * s, RebuildAfter: 2 * s,
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
	return connectedBy(t, settings())
}

// connectedBy is connected with settings of the test's own.
func connectedBy(t *testing.T, set machine.Settings) *script {
	t.Helper()
	c := begin(t, set)
	c.tick(machine.Command{Do: machine.Attempt, Fresh: true, Number: 1})
	c.on(machine.Checked{Took: ms}, machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{}, machine.Command{})
	c.is(machine.Connected, machine.None)
	return c
}

// attempting is a script whose machine went down by misses of a kind and attempts to connect: as soon as an event says so, or else
// after its pause.
func attempting(t *testing.T, set machine.Settings, kind machine.Kind, event machine.Event) *script {
	t.Helper()
	c := connectedBy(t, set)
	c.wait(3*s, machine.Command{Do: machine.Probe})
	c.miss(kind, machine.Command{})
	c.wait(s, machine.Command{Do: machine.Check})
	c.miss(kind, machine.Command{})
	if event != nil {
		c.on(event, attempt(1, s, true))
	} else {
		c.wait(s, attempt(1, s, true))
	}
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
