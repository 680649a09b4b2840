package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// TestAnyEventInAnyState tells a machine whatever comes to mind, also ends of what was never begun.
func TestAnyEventInAnyState(t *testing.T) {
	t.Parallel()
	kinds := rapid.SampledFrom([]machine.Kind{machine.None, machine.None, machine.None, machine.Unreachable, machine.Hung,
		machine.NamespaceMissing, machine.AuthFailed, machine.TLSError, machine.Slow, "what"})
	took := rapid.SampledFrom([]time.Duration{0, ms, 2 * s, -s})
	failure := rapid.SampledFrom([]error{nil, nil, errors.New("no")})
	events := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) machine.Event {
			return machine.Checked{Kind: kinds.Draw(t, "kind"), Took: took.Draw(t, "took"), Err: failure.Draw(t, "err"), Current: rapid.Bool().Draw(t, "current")}
		}),
		rapid.Custom(func(t *rapid.T) machine.Event {
			return machine.Built{Kind: kinds.Draw(t, "kind"), Err: failure.Draw(t, "err"), Current: rapid.Bool().Draw(t, "current")}
		}),
		rapid.SampledFrom([]machine.Event{machine.Ready{}, machine.Lost{}, machine.Suspected{}, machine.Changed{}, machine.Reset{},
			machine.Polling{}, machine.Polling{OK: true}, machine.Requests{}, machine.Requests{Late: true}, machine.Requests{Failing: true}}),
		rapid.SampledFrom([]machine.Event{machine.Ready{}, machine.Lost{}, machine.Checked{}, machine.Built{}, nil}),
	)
	steps := rapid.SampledFrom([]time.Duration{0, 0, ms, 300 * ms, s, 3 * s, 40 * s, 10 * time.Minute})
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		start, m, running := now, machine.New(settings(), now), machine.Nothing
		end := rapid.IntRange(1, 300).Draw(t, "end")
		for i := range end {
			now = now.Add(steps.Draw(t, "step"))
			var c machine.Command
			if e := events.Draw(t, "event"); e == nil {
				c = m.Tick(now)
			} else {
				c = m.On(now, e)
				_, built := e.(machine.Built)
				_, checked := e.(machine.Checked)
				if built && running == machine.Build || checked && running != machine.Build {
					running = machine.Nothing
				}
			}
			if c.Do != machine.Nothing {
				require.Equal(t, machine.Nothing, running, "two at a time")
				running = c.Do
			}
			if running == machine.Nothing {
				require.True(t, m.Deadline().After(now))
			} else {
				require.Zero(t, m.Deadline())
			}
			v := m.View(now)
			require.Equal(t, now.Sub(start), v.Statistics.Uptime+v.Statistics.Downtime)
			if i == end-1 {
				m.On(now, machine.Close{})
				require.Equal(t, machine.Closed, m.View(now).State)
				require.Zero(t, m.Deadline())
			}
		}
	})
}
