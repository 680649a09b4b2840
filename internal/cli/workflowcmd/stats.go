package workflowcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// unknown stands for a value that the server does not report.
const unknown = "unknown"

// window is the flag --window of commands with statistics.
type window struct{ text string }

func (w *window) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.text, "window", "",
		"statistics of the runs created in the last `time` (\"90m\", \"7d\"); 24 hours when empty")
}

func (w *window) length() (*durationpb.Duration, error) {
	if w.text == "" {
		return nil, nil
	}
	length, err := invocation.Span("window", w.text)
	return durationpb.New(length), err
}

// statusNames are the statuses in the order of a run's life.
func statusNames() []string {
	return []string{"queued", "running", "waiting", "completed", "failed", "canceled", "terminated", "timed_out"}
}

// runs writes the numbers of runs by status: "3 running, 10000+ completed".
func runs(stats *signalboxv1.WorkflowStats) string {
	if stats == nil {
		return unknown
	}
	var parts []string
	for _, status := range statusNames() {
		if n := stats.GetStatuses()[status]; n > 0 {
			parts = append(parts, count(stats, status, n)+" "+status)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// count writes a number of the statistics; one that is a limit has a plus.
func count(stats *signalboxv1.WorkflowStats, name string, n int64) string {
	if stats == nil {
		return unknown
	}
	if slices.Contains(stats.GetMore(), name) {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}

// successRate is a percentage. Only a rate without a failure is 100 %, and only one without a success is 0 %.
func successRate(stats *signalboxv1.WorkflowStats) string {
	const least, most = 0.001, 0.999
	rate := stats.GetSuccessRate()
	switch {
	case stats == nil:
		return unknown
	case stats.SuccessRate == nil:
		return "no run has ended"
	case rate > most && rate < 1:
		return "over 99.9%"
	case rate > 0 && rate < least:
		return "under 0.1%"
	}
	return fmt.Sprintf("%.1f%%", 100*rate)
}

// percentile is a length of runs; empty if no run has ended.
func percentile(stats *signalboxv1.WorkflowStats, d *durationpb.Duration) string {
	switch {
	case stats == nil:
		return unknown
	case d == nil:
		return ""
	}
	return output.Took(d.AsDuration())
}

// statsFields show the statistics of a workflow.
func statsFields(stats *signalboxv1.WorkflowStats) []output.Field {
	if stats == nil {
		return nil
	}
	rate, lengths := successRate(stats), ""
	if stats.SuccessRate != nil {
		rate += " of the newest " + output.Count(stats.GetSample(), "ended run")
	}
	if stats.GetP50() != nil && stats.GetP95() != nil {
		lengths = fmt.Sprintf("p50 %s, p95 %s", percentile(stats, stats.GetP50()), percentile(stats, stats.GetP95()))
	}
	last := make([]string, len(stats.GetLastRuns()))
	for i, r := range stats.GetLastRuns() {
		last[i] = r.GetStatus()
	}
	return []output.Field{
		{Name: "runs", Value: fmt.Sprintf("%s (in the last %s)", runs(stats),
			output.Span(stats.GetUntil().AsTime().Sub(stats.GetSince().AsTime())))},
		{Name: "open", Value: count(stats, "open", stats.GetOpen())},
		{Name: "stuck", Value: count(stats, "stuck", stats.GetStuck())},
		{Name: "success rate", Value: rate},
		{Name: "duration", Value: lengths},
		{Name: "last runs", Value: strings.Join(last, " ")},
	}
}
