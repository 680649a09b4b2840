package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// An expression that takes longer than its price allows fails the workflow task. Neither the run nor a handler in it
// observes that.
func TestComputeOverTheTimeLimitFailsTheWorkflowTask(t *testing.T) {
	t.Parallel()
	const source = `
do:
  - attempt:
      try: [{compute: {set: '${ [range(20000)] | length }'}}]
      catch: {do: [{note: {set: {v: caught}}}]}`
	b := newTestRun(t, source, ``)
	b.longest = time.Nanosecond
	_, err := b.run()
	var panicked *temporal.PanicError
	require.ErrorAs(t, err, &panicked)
	require.ErrorContains(t, err, contract.ComputesTooLong)
	require.Zero(t, b.turns.held.Load(), "others may compute")
	for _, r := range b.recorder.runs {
		require.Nil(t, r.Error, "no record of the failed task is published")
	}

	b = newTestRun(t, source, ``)
	b.longest = time.Hour
	b.completes(`20000`)
}
