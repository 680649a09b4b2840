package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// Where no new client is to be had, the current one goes on as soon as it is answered. What it needs is wanted still, at a pace
// of its own.
func TestTheCurrentClientGoesOnWithoutANewOne(t *testing.T) {
	t.Parallel()
	build := machine.Command{Do: machine.Build, Fresh: true}
	refused := machine.Checked{Kind: machine.AuthFailed, Err: errRefused, Current: true}
	long := settings()
	long.RebuildAfter = time.Minute
	for name, tt := range map[string]struct {
		settings machine.Settings
		kind     machine.Kind
		event    machine.Event
		build    machine.Event // the end of the build that follows the attempt, if one does
		wanted   bool
	}{
		"nothing is wanted":              {long, machine.Unreachable, nil, nil, false},
		"another identity":               {long, machine.Unreachable, machine.Changed{}, nil, true},
		"polls were refused":             {long, machine.AuthFailed, nil, nil, true},
		"too long an outage":             {settings(), machine.Unreachable, nil, nil, true},
		"another identity fails to run":  {long, machine.Unreachable, machine.Changed{}, machine.Built{Kind: machine.Hung, Err: errRefused, Current: true}, true},
		"too long, and new workers fail": {settings(), machine.Unreachable, nil, machine.Built{Err: errRefused, Current: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := attempting(t, tt.settings, tt.kind, tt.event)
			if tt.build != nil {
				c.on(machine.Checked{Took: ms, Current: true}, machine.Command{Do: machine.Build, Fresh: true, Number: 1})
				c.is(machine.Down, tt.kind)
				c.on(tt.build, machine.Command{})
			} else {
				c.on(refused, machine.Command{})
			}
			c.is(machine.Connected, machine.None)
			c.breaker(machine.BreakerClosed, 0)
			require.Equal(t, errRefused, c.m.View(c.now).LastErr)
			if !tt.wanted {
				c.wait(3*s, machine.Command{Do: machine.Probe})
				return
			}
			c.wait(s, build)
			c.on(machine.Built{Err: errRefused}, machine.Command{})
			c.wait(2*s, build)
			c.on(machine.Built{}, machine.Command{Do: machine.Probe})
			c.answer(machine.Command{})
			c.wait(3*s, machine.Command{Do: machine.Probe})
			require.EqualValues(t, 1, c.m.View(c.now).Statistics.Outages)
		})
	}
}

// A change that comes while the attempt fails is not put off any further than changes are.
func TestAChangeDuringAnAttemptThatTheCurrentClientAnswers(t *testing.T) {
	t.Parallel()
	c := down(t, machine.Unreachable)
	c.on(machine.Changed{}, attempt(1, s, true))
	c.on(machine.Changed{}, machine.Command{})
	c.on(machine.Checked{Kind: machine.TLSError, Err: errRefused, Current: true}, machine.Command{})
	c.is(machine.Connected, machine.None)
	c.wait(500*ms, machine.Command{Do: machine.Build, Fresh: true})
}

// A build that fails while nobody is answered is a failed attempt.
func TestABuildThatFailsWithTheCurrentClientGone(t *testing.T) {
	t.Parallel()
	c := down(t, machine.Unreachable)
	c.on(machine.Changed{}, attempt(1, s, true))
	c.on(machine.Checked{Took: ms, Current: true}, machine.Command{Do: machine.Build, Fresh: true, Number: 1})
	c.on(machine.Built{Kind: machine.Unreachable, Err: errRefused}, machine.Command{})
	c.is(machine.Down, machine.Unreachable)
	c.breaker(machine.BreakerClosed, 1)
}
