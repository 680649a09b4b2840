package fsm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var errRefused = errors.New("connection refused")

// settings are the defaults of package conn, but RebuildAfter is 2 s and there is no jitter.
func settings() fsm.Settings {
	return fsm.Settings{
		CheckEvery: 15 * s, ProbeEvery: 3 * s, ConfirmAfter: s, SlowAfter: s, FreshAfter: 2 * s, RebuildAfter: 2 * s,
		BackoffFirst: s, BackoffMax: 30 * s, BreakerAfter: 10, BreakerEvery: 5 * time.Minute,
		Random: func() float64 { return 0 },
	}
}

// script drives a machine step by step, with a clock that the test controls.
type script struct {
	*testing.T

	m     *fsm.Machine
	start time.Time
	now   time.Time
}

func begin(t *testing.T, set fsm.Settings) *script {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &script{t, fsm.New(set, start), start, start}
}

// connected returns a script with a machine that has connected at its start.
func connected(t *testing.T) *script {
	t.Helper()
	return connectedBy(t, settings())
}

// connectedBy is connected with the given settings.
func connectedBy(t *testing.T, set fsm.Settings) *script {
	t.Helper()
	c := begin(t, set)
	c.tick(fsm.Command{Op: fsm.Attempt, Fresh: true, Number: 1})
	c.on(fsm.Checked{Took: ms}, fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.on(fsm.Built{}, fsm.Command{})
	c.is(conntype.Connected, conntype.None)
	return c
}

// attempting returns a script with a machine that went down with a kind and runs an attempt: caused by the event or,
// without one, after the back-off.
func attempting(t *testing.T, set fsm.Settings, kind conntype.Kind, event fsm.Event) *script {
	t.Helper()
	c := connectedBy(t, set)
	c.wait(3*s, fsm.Command{Op: fsm.Probe})
	c.miss(kind, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.miss(kind, fsm.Command{})
	if event != nil {
		c.on(event, attempt(1, s, true))
	} else {
		c.wait(s, attempt(1, s, true))
	}
	return c
}

// down returns a script with a machine that has just gone down, by an outage that began a second ago.
func down(t *testing.T, kind conntype.Kind) *script {
	t.Helper()
	c := connected(t)
	c.on(fsm.Suspected{}, fsm.Command{Op: fsm.Check})
	c.miss(kind, fsm.Command{})
	c.wait(s, fsm.Command{Op: fsm.Check})
	c.miss(kind, fsm.Command{})
	c.is(conntype.Down, kind)
	return c
}

func (c *script) on(e fsm.Event, want fsm.Command) {
	c.Helper()
	require.Equal(c, want, c.m.Handle(c.now, e))
}

func (c *script) tick(want fsm.Command) {
	c.Helper()
	require.Equal(c, want, c.m.Tick(c.now))
}

func (c *script) miss(kind conntype.Kind, want fsm.Command) {
	c.Helper()
	c.on(fsm.Checked{Kind: kind, Err: errRefused}, want)
}

func (c *script) answer(want fsm.Command) {
	c.Helper()
	c.on(fsm.Checked{Took: ms}, want)
}

// pass advances the clock while an operation is under way.
func (c *script) pass(d time.Duration) { c.now = c.now.Add(d) }

// wait expects that nothing is due for exactly d, and then the command.
func (c *script) wait(d time.Duration, want fsm.Command) {
	c.Helper()
	require.Equal(c, d, c.m.Deadline().Sub(c.now), "the deadline")
	require.Equal(c, fsm.Command{}, c.m.Tick(c.now.Add(d-1)), "Tick returns a command too early")
	c.pass(d)
	c.tick(want)
	require.Zero(c, c.m.Deadline(), "an operation is under way")
}

func (c *script) is(state conntype.State, kind conntype.Kind) {
	c.Helper()
	v := c.m.View(c.now)
	require.Equal(c, state, v.State)
	require.Equal(c, kind, v.Kind)
}

func (c *script) breaker(state conntype.BreakerState, failures int) {
	c.Helper()
	b := c.m.View(c.now).Breaker
	require.Equal(c, state, b.State)
	require.Equal(c, failures, b.Failures)
}

func attempt(number int64, pause time.Duration, fresh bool) fsm.Command {
	return fsm.Command{Op: fsm.Attempt, Fresh: fresh, Number: number, Backoff: pause}
}

func TestConnecting(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.is(conntype.Connecting, conntype.None)
	require.Equal(t, c.start, c.m.Deadline())
	c.tick(attempt(1, 0, true))
	c.pass(40 * ms)
	c.miss(conntype.TLSError, fsm.Command{})
	c.is(conntype.Down, conntype.TLSError)
	v := c.m.View(c.now)
	require.Equal(t, c.now, v.Since)
	require.Equal(t, errRefused, v.LastErr)
	require.Equal(t, c.now, v.LastErrAt)
	require.Equal(t, c.now.Add(s), v.NextAttempt)
	require.EqualValues(t, 1, v.Attempts)
	require.Zero(t, v.Statistics.Outages, "the first connecting is no outage")
	c.wait(s, attempt(2, s, true))
	require.Zero(t, c.m.View(c.now).NextAttempt, "an attempt is under way")
	c.pass(60 * ms)
	c.on(fsm.Checked{Took: 60 * ms}, fsm.Command{Op: fsm.Build, Fresh: true, Number: 2})
	c.is(conntype.Down, conntype.TLSError)
	c.pass(100 * ms)
	c.on(fsm.Built{}, fsm.Command{})
	c.is(conntype.Connected, conntype.None)
	v = c.m.View(c.now.Add(s))
	require.Equal(t, 60*ms, v.Latency)
	require.Zero(t, v.NextAttempt)
	require.Equal(t, conntype.Statistics{
		Uptime: s, Downtime: 1200 * ms, Connections: 1, ConnectedSince: c.now,
	}, v.Statistics)
}

func TestFirstBuildFailsWithoutConnectionError(t *testing.T) {
	t.Parallel()
	c := begin(t, settings())
	c.tick(attempt(1, 0, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.on(fsm.Built{Err: errRefused}, fsm.Command{})
	c.is(conntype.Connecting, conntype.None)
	c.breaker(conntype.BreakerClosed, 1)
	c.wait(s, attempt(2, s, true))
	c.answer(fsm.Command{Op: fsm.Build, Fresh: true, Number: 2})
	c.on(fsm.Built{Err: errRefused, Kind: conntype.Hung}, fsm.Command{})
	c.is(conntype.Down, conntype.Hung)
	c.wait(2*s, attempt(3, 2*s, true))
}

func TestClose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*script{
		"up": connected(t), "down": down(t, conntype.Hung), "new": begin(t, settings())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &script{t, c.m, c.start, c.now.Add(10 * s)}
			before := c.m.View(c.now).Statistics
			c.on(fsm.Close{}, fsm.Command{})
			c.is(conntype.Closed, conntype.None)
			for _, e := range []fsm.Event{fsm.Checked{}, fsm.Built{}, fsm.Ready{}, fsm.Lost{}, fsm.Suspected{},
				fsm.Changed{}, fsm.Polling{}, fsm.Reset{}, fsm.Close{}} {
				c.pass(time.Minute)
				c.on(e, fsm.Command{})
				c.tick(fsm.Command{})
				require.Zero(t, c.m.Deadline())
			}
			c.is(conntype.Closed, conntype.None)
			after := c.m.View(c.now).Statistics
			require.Equal(t, before.Uptime+before.Downtime, after.Uptime+after.Downtime)
			require.Zero(t, after.ConnectedSince)
		})
	}
}
