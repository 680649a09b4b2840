package fsm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

// Where no new client can be made, the current one is kept as soon as it is answered. A pending replacement is retried
// with its own back-off.
func TestCurrentClientIsKeptWithoutNewOne(t *testing.T) {
	t.Parallel()
	build := fsm.Command{Op: fsm.Build, Fresh: true}
	refused := fsm.Checked{Kind: conntype.AuthFailed, Err: errRefused, CurrentAnswered: true}
	long := settings()
	long.RebuildAfter = time.Minute
	for name, tt := range map[string]struct {
		settings fsm.Settings
		kind     conntype.Kind
		event    fsm.Event
		build    fsm.Event // the result of the build that follows the attempt, if one does
		wanted   bool
	}{
		"no replacement pending": {long, conntype.Unreachable, nil, nil, false},
		"identity changed":       {long, conntype.Unreachable, fsm.Changed{}, nil, true},
		"polls were refused":     {long, conntype.AuthFailed, nil, nil, true},
		"outage too long":        {settings(), conntype.Unreachable, nil, nil, true},
		"identity changed, build hangs": {
			long, conntype.Unreachable, fsm.Changed{}, fsm.Built{Kind: conntype.Hung, Err: errRefused, CurrentAnswered: true},
			true},
		"too long, new workers fail": {
			settings(), conntype.Unreachable, nil, fsm.Built{Err: errRefused, CurrentAnswered: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := attempting(t, tt.settings, tt.kind, tt.event)
			if tt.build != nil {
				c.on(fsm.Checked{Took: ms, CurrentAnswered: true}, fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
				c.is(conntype.Down, tt.kind)
				c.on(tt.build, fsm.Command{})
			} else {
				c.on(refused, fsm.Command{})
			}
			c.is(conntype.Connected, conntype.None)
			c.breaker(conntype.BreakerClosed, 0)
			require.Equal(t, errRefused, c.m.View(c.now).LastErr)
			if !tt.wanted {
				c.wait(3*s, fsm.Command{Op: fsm.Probe})
				return
			}
			c.wait(s, build)
			c.on(fsm.Built{Err: errRefused}, fsm.Command{})
			c.wait(2*s, build)
			c.on(fsm.Built{}, fsm.Command{Op: fsm.Probe})
			c.answer(fsm.Command{})
			c.wait(3*s, fsm.Command{Op: fsm.Probe})
			require.EqualValues(t, 1, c.m.View(c.now).Statistics.Outages)
		})
	}
}

// A change of identity during the failing attempt is delayed only by the minimum interval.
func TestChangeDuringAttemptThatTheCurrentClientAnswers(t *testing.T) {
	t.Parallel()
	c := down(t, conntype.Unreachable)
	c.on(fsm.Changed{}, attempt(1, s, true))
	c.on(fsm.Changed{}, fsm.Command{})
	c.on(fsm.Checked{Kind: conntype.TLSError, Err: errRefused, CurrentAnswered: true}, fsm.Command{})
	c.is(conntype.Connected, conntype.None)
	c.wait(500*ms, fsm.Command{Op: fsm.Build, Fresh: true})
}

// A build that fails while the current client is not answered either is a failed attempt.
func TestFailedBuildWithoutCurrentClientIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	c := down(t, conntype.Unreachable)
	c.on(fsm.Changed{}, attempt(1, s, true))
	c.on(fsm.Checked{Took: ms, CurrentAnswered: true}, fsm.Command{Op: fsm.Build, Fresh: true, Number: 1})
	c.on(fsm.Built{Kind: conntype.Unreachable, Err: errRefused}, fsm.Command{})
	c.is(conntype.Down, conntype.Unreachable)
	c.breaker(conntype.BreakerClosed, 1)
}
