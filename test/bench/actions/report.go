package actions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	line("Billable actions of Temporal Cloud and bytes of history for each completed run, with its children, read from " +
		"histories; and what the metric `signalbox_temporal_actions_total` counted meanwhile, with the heartbeats and " +
		"signals of the dispatcher. By hand: the same with the SDK alone, without rows, events and API.")
	line("")
	line("| run | actions | bytes | by hand: actions | bytes | counted by the server |")
	line("|---|---|---|---|---|---|")
	for _, one := range r.rows {
		line("| %s | %.1f | %d | %.1f | %d | %.1f |", one.what, one.mean(one.here.actions), one.here.bytes/one.runs,
			one.mean(one.byHand.actions), one.byHand.bytes/one.runs, one.mean(one.counted))
	}
	line("")
	line("| a project without events | actions per minute | in 30 days |")
	line("|---|---|---|")
	for _, one := range r.idles {
		var sum float64
		parts := []string{}
		for _, kind := range slices.Sorted(maps.Keys(one.perMinute)) {
			sum += one.perMinute[kind]
			parts = append(parts, fmt.Sprintf("%s %.1f", kind, one.perMinute[kind]))
		}
		if len(parts) == 0 {
			parts = []string{"none"}
		}
		line("| %s | %s | %.0f |", one.what, strings.Join(parts, ", "), sum*month)
	}
}

func (r row) mean(n int64) float64 { return float64(n) / float64(r.runs) }
