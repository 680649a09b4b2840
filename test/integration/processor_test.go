package integration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// A server whose control group throttles it shows so, in its log, its status, the registry of workers and its metrics,
// and a higher limit ends it.
func TestThrottledServerKnowsIt(t *testing.T) {
	t.Parallel()
	program, change, reason := platform.InProcessorGroup(t, platform.ServerBinary(t), 0.15)
	if reason != "" {
		t.Skipf("no control group limits the server: %s", reason)
	}
	s := platform.StartServer(t,
		platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t), Binary: program})
	require.Contains(t, s.Stderr.String(), "allows the process less processor time than it requires")
	// It computes for minutes, and yields after each item.
	compute := s.Start(t, s.Publish(t,
		platform.Document("computes", "  - each:\n      for:\n        each: n\n        in: ${ [range(10000)] }\n      do:\n"+
			"        - add:\n            set: {sum: '${ [range(20000)] | add }'}\n")), "{}").GetId()
	status := func(parts ...string) {
		t.Helper()
		platform.Eventually(t, 2*time.Minute, func() string {
			out := s.CLI(t, "system", "status").Stdout
			for _, part := range parts {
				if !strings.Contains(out, part) {
					return part + " is not in " + out
				}
			}
			return ""
		})
	}
	status("limit 0.15", "allows 0.15 processors, and it requires 0.25",
		"this server is short of processor time: it gets 1", "of 0.15, too little")
	for _, name := range []string{
		"signalbox_processor_limit", "signalbox_processor_periods_total", "signalbox_processor_throttled_periods_total"} {
		value, series, err := counter.Metric(t.Context(), s, name)
		require.NoError(t, err)
		require.Equal(t, 1, series, name)
		require.Positive(t, value, name)
	}

	require.Zero(t, s.CLI(t, "run", "terminate", compute, "--reason", "seen").Code)
	change(2)
	status("limit 2.00")
	platform.Eventually(t, 2*time.Minute, func() string {
		if out := s.CLI(t, "system", "status").Stdout; strings.Contains(out, "too slow") {
			return out
		}
		return ""
	})
}
