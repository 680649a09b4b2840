package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
)

// BenchmarkListeners matches one event at a time, for which one of 10,000 waiting runs waits, and records its delivery.
func BenchmarkListeners(b *testing.B) {
	const runs = 10_000
	benchmark := newRouterBench(b, sqlite(b))
	for i := range runs {
		_, err := benchmark.store.Events().Listen(b.Context(), event.Listener{
			ID: fmt.Sprint("l", i), Project: benchmark.name.Project, RunID: fmt.Sprint("r", i), Spec: event.Spec{
				Mode: event.One, Filters: []event.Filter{{
					With:      map[string]event.Value{"type": {Literal: json.RawMessage(`"paid"`)}},
					Correlate: map[string]event.Key{"order": {From: ".data.order", Expect: json.RawMessage(fmt.Sprint(i))}},
				}},
			},
		})
		require.NoError(b, err)
	}
	owner := benchmark.owns(b)
	before, n := processorTime(b), 0
	for b.Loop() {
		n++
		benchmark.gives(b, given(fmt.Sprint("e", n), "paid", fmt.Sprintf(`{"order":%d}`, n%runs)))
		require.Len(b, benchmark.works(b, owner), 1)
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(n), "cpu-ms/event")
}

// processorTime returns the time that the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
