package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TestDiagnosisYieldsToStartsWhileTemporalIsSlow has as many callers that diagnose runs as callers that start some.
// While Temporal is slow, the requests for diagnosis are a small share of all, and the starts go on.
func TestDiagnosisYieldsToStartsWhileTemporalIsSlow(t *testing.T) {
	t.Parallel()
	f, err := conntest.New(conntest.Options{Namespaces: []string{"ns"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	e, _, m := reach(t, f.Addr(), nil)
	b := e.Budget()
	require.NoError(t, f.Await(t.Context(), func() bool { _, err := m.Client(); return err == nil }))

	// The first request of the SDK's client loads what the server is capable of; concurrent ones would all do so, without
	// a lock.
	_, err = e.Start(t.Context(), run.Run{ID: "first", Project: "default"})
	require.NoError(t, err)

	const callers = 10
	var callersEnded sync.WaitGroup
	var stopped atomic.Bool
	for i := range callers {
		callersEnded.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				_, err := e.Start(t.Context(), run.Run{ID: fmt.Sprintf("r-%d-%d", i, n), Project: "default"})
				if err != nil {
					t.Errorf("start: %v", err)
					return
				}
			}
		})
		callersEnded.Go(func() {
			for !stopped.Load() {
				if _, err := e.Inspect(t.Context(), run.Run{ID: fmt.Sprint("r-", i)}); err == nil {
					t.Error("the frontend has no descriptions")
				}
			}
		})
	}
	defer func() {
		stopped.Store(true)
		callersEnded.Wait()
	}()
	calls := func() (starts, diagnoses int) {
		return f.Calls("StartWorkflowExecution"), f.Calls("DescribeWorkflowExecution")
	}
	f.Slow(600 * time.Millisecond)
	require.NoError(t, f.Await(t.Context(), func() bool { return b.Limit() == engine.MinBudget }))
	awaitStarts := func(more int) {
		before, _ := calls()
		require.NoError(t, f.Await(t.Context(), func() bool { now, _ := calls(); return now >= before+more }))
	}
	awaitStarts(2 * callers) // requests that waited for a larger budget are sent
	starts, diagnoses := calls()
	awaitStarts(4 * callers)
	startsThen, diagnosesThen := calls()
	share := float64(diagnosesThen-diagnoses) / float64(startsThen-starts+diagnosesThen-diagnoses)
	require.Less(t, share, 0.25, "%d starts, %d requests for diagnosis", startsThen-starts, diagnosesThen-diagnoses)

	f.Slow(0)
	require.NoError(t, f.Await(t.Context(), func() bool { return b.Limit() > 5*engine.MinBudget }), "it recovers")
}
