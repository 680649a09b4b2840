package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// limitSteps limits the steps of a new run.
func (w *driver) limitSteps(steps int64) {
	w.limits.Steps = steps
	w.m = interp.New(w.doc, interp.Start{RunID: "r", Input: map[string]any{}, At: epoch}, w.limits)
}

func TestRunFailsAtItsStepLimit(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{
		"jumps without an effect": `do: [{a: {set: {x: 1}, then: b}}, {b: {set: {x: 2}, then: a}}]`,
		"nested loops":            `do: [{f: {for: {in: '[range(1000)]'}, do: [{g: {for: {each: j, in: '[range(1000)]'}, do: [{s: {set: {x: 1}}}]}}]}}]`,
		"a fork":                  `do: [{a: {do: [{f: {fork: {branches: [{b: {set: {x: 1}}}, {c: {set: {x: 1}}}]}}}], then: a}}]`,
		"a try that catches all": `
do:
  - a:
      try: [{b: {set: {x: 1}}}, {c: {try: [{d: {raise: {error: {type: 'http://x/y', status: 500}}}}], catch: {do: [{e: {set: {x: 1}}}]}}}]
      catch: {retry: {delay: {seconds: 0}, limit: {attempt: {count: 1000000}}}, do: [{h: {set: {x: 1}}}]}
      then: a`,
		"a retry without end": `
do: [{a: {try: [{d: {raise: {error: {type: 'http://x/y', status: 500}}}}], catch: {retry: {delay: {seconds: 0}, limit: {attempt: {count: 1000000}}}}}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(rest), `{}`)
			w.limitSteps(100)
			w.run()
			outcome, done := w.m.Done()
			require.True(t, done)
			require.Equal(t, interp.StatusFailed, outcome.Status)
			require.Equal(t, dsl.ErrorTypeRuntime, outcome.Error.Type)
			require.Equal(t, 500, outcome.Error.Status)
			require.Equal(t, "Too many steps", outcome.Error.Title)
			require.Contains(t, outcome.Error.Detail, "100 steps")
			require.Contains(t, outcome.Error.Detail, "runs.max_steps")
			require.NotEmpty(t, outcome.Error.Instance)
			require.Len(t, w.steps, 100)
			last := w.runs[len(w.runs)-1]
			require.Equal(t, interp.StatusFailed, last.Status)
			require.Equal(t, outcome.Error, last.Error)
			require.Equal(t, int64(100), last.StepsTotal)
			require.Equal(t, int64(100), last.StepsDone)
		})
	}
}

func TestRunMayEnterAsManyStepsAsItsLimit(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{l: {for: {each: x, in: '[range(9)]'}, do: [{s: {set: {n: '${ $x }'}}}]}}]`), `{}`)
	w.limitSteps(10)
	w.completes(`{"n": 8}`)
}

func TestStepLimitCountsAllExecutions(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{a: {wait: {seconds: 1}, then: b}}, {b: {set: {x: 1}, then: a}}]`), `{}`)
	w.limitSteps(40)
	moves := 0
	w.between = func(w *driver) {
		if w.m.InFlight() == 0 {
			w.restore()
			moves++
		}
	}
	w.run()
	outcome, done := w.m.Done()
	require.True(t, done)
	require.NotNil(t, outcome.Error)
	require.Contains(t, outcome.Error.Detail, "40 steps")
	require.Len(t, w.steps, 40)
	require.Greater(t, moves, 5)
}
