package flow_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
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
      try: [{compute: {set: '${ [range(300000)] | length }'}}]
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
	b.completes(`300000`)
}

// TestComputeIsMeasuredByTheProcessor has an expression wait for a processor for longer than it may compute: others
// occupy them all.
func TestComputeIsMeasuredByTheProcessor(t *testing.T) {
	t.Parallel()
	const source = `
do:
  - compute: {set: '${ [range(300000)] | length }'}`
	used := processTime(t)
	newTestRun(t, source, ``).completes(`300000`)
	alone := processTime(t) - used
	var stop atomic.Bool
	var others sync.WaitGroup
	defer others.Wait()
	defer stop.Store(true)
	for range 20 * runtime.GOMAXPROCS(0) {
		others.Go(func() {
			for !stop.Load() {
			}
		})
	}
	began := time.Now()
	b := newTestRun(t, source, ``)
	b.longest = 3 * alone
	b.completes(`300000`)
	t.Logf("%v by the clock, of which it may use %v of a processor, and uses about %v", time.Since(began), b.longest,
		alone)
}

func processTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
