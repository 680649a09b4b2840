package interp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// The tests below bound the work of long loops. The bounds are wide: they fail on quadratic work, not on a slow
// machine.

const items = 100_000

func TestLongLoop(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	w := newDriver(t, document(`
do:
  - l:
      for: {each: x, in: '[range(100000)]'}
      do: [{a: {set: {last: '${ $x }', n: '${ (.n // 0) + 1 }'}}}]`), `{}`)
	w.completes(`{"last": 99999, "n": 100000}`)
	require.Positive(t, w.yields)
	limits := interp.DefaultRecordLimits()
	require.Len(t, w.steps, int(limits.First+limits.Last))
	require.Equal(t, items+1-limits.First-limits.Last, w.summarized())
	require.Empty(t, w.effects)
	require.Less(t, time.Since(begun), 3*time.Minute)
	t.Logf("%d iterations in %v, %d units of fuel, %d yields", items, time.Since(begun), w.m.Spent(), w.yields)
}

// Data of a run that an iteration does not use must not add cost to the iteration.
func TestLongLoopOverLargeInput(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	w := newDriver(t, document(`
do:
  - l:
      for: {each: x, in: '.list'}
      while: $x != null
      do: [{a: {if: $x >= 0, set: {last: '${ $x + ($workflow.input.list | length) }'}}}]`), `{}`)
	list := make([]any, items)
	for i := range list {
		list[i] = i
	}
	w.m = interp.New(w.doc, interp.Start{RunID: "r", Input: map[string]any{"list": list}, At: epoch}, w.limits)
	w.completes(`{"last": 199999}`)
	require.Positive(t, w.steps[1].InputSize)
	require.Less(t, time.Since(begun), 3*time.Minute)
	t.Logf("%d iterations in %v, %d units of fuel", items, time.Since(begun), w.m.Spent())
}

func TestLongLoopOfCallsReachesSnapshots(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - l:
      for: {each: x, in: '[range(20000)]'}
      do: [{c: {call: http, with: {method: get, endpoint: 'http://x'}}}]`), `{}`)
	w.origin = func(interp.Call) answer { return ok(len(w.calls)) }
	moves, largest := 0, 0
	w.between = func(w *driver) {
		if len(w.calls)%4000 == 3999 && w.m.InFlight() == 0 {
			snapshot, err := w.m.Snapshot()
			require.NoError(t, err)
			largest = max(largest, len(snapshot))
			w.restore()
			moves++
		}
	}
	w.completes(`20000`)
	require.Equal(t, 5, moves)
	require.Less(t, largest, 200_000)
	t.Logf("the largest snapshot has %d bytes", largest)
}
