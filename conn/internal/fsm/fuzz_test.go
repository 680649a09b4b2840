package fsm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

// TestAnyEventInAnyState passes random events to a machine, including results of operations that do not run.

func TestAnyEventInAnyState(t *testing.T) {
	t.Parallel()
	kinds := rapid.SampledFrom(
		[]conntype.Kind{conntype.None, conntype.None, conntype.None, conntype.Unreachable, conntype.Hung,
			conntype.NamespaceMissing, conntype.AuthFailed, conntype.TLSError, conntype.Slow, "what"})
	took := rapid.SampledFrom([]time.Duration{0, ms, 2 * s, -s})
	failure := rapid.SampledFrom([]error{nil, nil, errors.New("no")})
	events := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) fsm.Event {
			return fsm.Checked{Kind: kinds.Draw(t, "kind"), Took: took.Draw(t, "took"), Err: failure.Draw(t, "err"),
				CurrentAnswered: rapid.Bool().Draw(t, "current")}
		}),
		rapid.Custom(func(t *rapid.T) fsm.Event {
			return fsm.Built{Kind: kinds.Draw(t, "kind"), Err: failure.Draw(t, "err"),
				CurrentAnswered: rapid.Bool().Draw(t, "current")}
		}),
		rapid.SampledFrom([]fsm.Event{fsm.Ready{}, fsm.Lost{}, fsm.Suspected{}, fsm.Changed{}, fsm.Reset{},
			fsm.Polling{}, fsm.Polling{OK: true}, fsm.Requests{}, fsm.Requests{Late: true}, fsm.Requests{Failing: true}}),
		rapid.SampledFrom([]fsm.Event{fsm.Ready{}, fsm.Lost{}, fsm.Checked{}, fsm.Built{}, nil}),
	)
	steps := rapid.SampledFrom([]time.Duration{0, 0, ms, 300 * ms, s, 3 * s, 40 * s, 10 * time.Minute})
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		start, m, running := now, fsm.New(settings(), now), fsm.Nothing
		end := rapid.IntRange(1, 300).Draw(t, "end")
		for i := range end {
			now = now.Add(steps.Draw(t, "step"))
			var c fsm.Command
			if e := events.Draw(t, "event"); e == nil {
				c = m.Tick(now)
			} else {
				c = m.Handle(now, e)
				_, built := e.(fsm.Built)
				_, checked := e.(fsm.Checked)
				if built && running == fsm.Build || checked && running != fsm.Build {
					running = fsm.Nothing
				}
			}
			if c.Op != fsm.Nothing {
				require.Equal(t, fsm.Nothing, running, "two operations at a time")
				running = c.Op
			}
			if running == fsm.Nothing {
				require.True(t, m.Deadline().After(now))
			} else {
				require.Zero(t, m.Deadline())
			}
			v := m.View(now)
			require.Equal(t, now.Sub(start), v.Statistics.Uptime+v.Statistics.Downtime)
			if i == end-1 {
				m.Handle(now, fsm.Close{})
				require.Equal(t, conntype.Closed, m.View(now).State)
				require.Zero(t, m.Deadline())
			}
		}
	})
}
