package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
	"github.com/signalbox-dev/signalbox/test/succession"
)

// A server without a worker reports the backlog, and serves the counters of dispatchers before the first count.
func TestBacklogWithoutWorkers(t *testing.T) {
	t.Parallel()
	x := prepare(t)
	x.open(t)
	f := x.startTraffic(t)
	platform.Eventually(t, soon, func() string {
		if n := len(f.Accepted()); n < 10 {
			return fmt.Sprintf("%d events are accepted", n)
		}
		return ""
	})
	f.Stop(t)
	accepted := float64(len(f.Accepted()))
	read := func(metric string, labels ...string) float64 {
		sum, series, err := counter.Metric(t.Context(), x.Server, metric, labels...)
		require.NoError(t, err)
		require.Positive(t, series, "%s is missing", metric)
		return sum
	}
	const project = `project="default"`
	platform.Eventually(t, soon, func() string { // the first reading of the database has ended
		sum, series, err := counter.Metric(t.Context(), x.Server, "dispatcher_inbox_pending", project)
		if err != nil || series == 0 || sum < accepted {
			return fmt.Sprintf("%v of %v events are pending in %d series: %v", sum, accepted, series, err)
		}
		return ""
	})
	require.Positive(t, read("dispatcher_inbox_lag_seconds", project))
	for _, metric := range []string{
		"dispatcher_active", "dispatcher_stale", "dispatcher_foreign", "dispatcher_duplicates",
		"dispatcher_terminate_errors_total", "dispatcher_deliveries_total", "dispatcher_worker_evictions_total",
	} {
		require.Zero(t, read(metric, project), metric)
	}
	for _, metric := range []string{
		"dispatcher_takeovers_total", "dispatcher_terminations_total", "dispatcher_cleanup_errors_total",
	} {
		require.Zero(t, read(metric), metric)
	}
	x.join(t, 1)
	platform.Eventually(t, soon, func() string {
		if pending := read("dispatcher_inbox_pending", project); pending > 0 {
			return fmt.Sprintf("%v are pending", pending)
		}
		return ""
	})
	require.Zero(t, read("dispatcher_inbox_lag_seconds", project))
}

// A dispatcher that an operator terminates under load is restarted soon, before its owner's next periodic check.
func TestTerminatedDispatcherIsRestarted(t *testing.T) {
	t.Parallel()
	x := build(t, 2)
	f := x.startTraffic(t)
	var gaps promise.Times
	for range promise.Trials(2, 20) {
		waitFor(t, 2*time.Second) // of load
		open := succession.Open(succession.Read(t, x.client, dispatcherID))
		require.Len(t, open, 1)
		require.NoError(t, x.client.TerminateWorkflow(t.Context(), dispatcherID, open[0].RunID, "by hand"))
		platform.Eventually(t, soon, func() string {
			line := succession.Read(t, x.client, dispatcherID)
			last := line[len(line)-1]
			if !last.Open() || last.RunID == open[0].RunID {
				return "no dispatcher yet"
			}
			for _, e := range line {
				if e.RunID == open[0].RunID {
					gaps = append(gaps, last.Start.Sub(e.Close))
				}
			}
			return ""
		})
	}
	f.verify(t, x)
	promise.Within(t, "restart", gaps.At(.5), 10*time.Second) // its owner checks every 30 s
	promise.Record(t, promise.Figure{Promise: "P-D5", What: "dispatcher terminated by hand under load: until the next " +
		"one was started", Aim: "2 s", Trials: len(gaps), Figure: gaps.String()})
}
