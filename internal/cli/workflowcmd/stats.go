package workflowcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

// unknown is the cell of a value that is not known.
const unknown = "-"

// window is the flag --window of commands with statistics.
type window struct{ text string }

func (w *window) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.text, "window", "", "statistics of the runs created in the last `time` (\"90m\", \"7d\"); 24 hours when empty")
}

func (w *window) length() (*durationpb.Duration, error) {
	if w.text == "" {
		return nil, nil
	}
	length, err := session.Span("window", w.text)
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

func successRate(stats *signalboxv1.WorkflowStats) string {
	if stats == nil || stats.SuccessRate == nil {
		return unknown
	}
	return fmt.Sprintf("%.1f%%", 100*stats.GetSuccessRate())
}

func duration(d *durationpb.Duration) string {
	if d == nil {
		return unknown
	}
	return output.Took(d.AsDuration())
}

// statsFields show the statistics of a workflow.
func statsFields(stats *signalboxv1.WorkflowStats) []output.Field {
	if stats == nil {
		return nil
	}
	last := make([]string, len(stats.GetLastRuns()))
	for i, r := range stats.GetLastRuns() {
		last[i] = r.GetStatus()
	}
	return []output.Field{
		{Name: "runs", Value: fmt.Sprintf("%s (in the last %s)", runs(stats), output.Span(stats.GetUntil().AsTime().Sub(stats.GetSince().AsTime())))},
		{Name: "open", Value: count(stats, "open", stats.GetOpen())},
		{Name: "stuck", Value: count(stats, "stuck", stats.GetStuck())},
		{Name: "success rate", Value: fmt.Sprintf("%s of the newest %s", successRate(stats), output.Count(stats.GetSample(), "ended run"))},
		{Name: "duration", Value: fmt.Sprintf("p50 %s, p95 %s", duration(stats.GetP50()), duration(stats.GetP95()))},
		{Name: "last runs", Value: strings.Join(last, " ")},
	}
}
