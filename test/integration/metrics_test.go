package integration_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// A fresh server exports each metric of the reference page with exactly its labels, and no others. Metrics whose
// meaning says when they are absent may be.
func TestMetricsMatchReference(t *testing.T) {
	t.Parallel()
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t),
		Roles: []string{platform.API, platform.Worker, platform.Runner},
		Env:   []string{"SIGNALBOX_MEMORY_LIMIT=1GiB", "SIGNALBOX_RUNS_QUEUE_WHEN_UNAVAILABLE_ENABLED=true"},
	})
	limitRuns(t, s, "10")
	documented, temporals := metricsPage(t)
	// The page says when these are absent: not here.
	here := []string{"rpc_server_call_duration_seconds", "signalbox_memory_limit_bytes", "signalbox_queue_mode_max_runs",
		"signalbox_quota_queued_runs"}
	found := map[string]string{}
	platform.Eventually(t, soon, func() string {
		_, page, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		found = exportedLabels(page)
		for name, m := range documented {
			if _, ok := found[name]; !ok && (!m.mayBeAbsent || slices.Contains(here, name)) {
				return name + " is not exported"
			}
		}
		return ""
	})
	for name, labels := range found {
		m, ok := documented[name]
		require.True(t, ok, "%s{%s} is not on the page", name, labels)
		require.Equal(t, m.labels, labels, name)
	}

	// The SDK's metrics that rules and dashboards use exist after the first run.
	run := s.Start(t, s.Publish(t, platform.Document("hello", hello)), "")
	s.Await(t, run.GetId(), soon, "completed")
	platform.Eventually(t, soon, func() string {
		_, page, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		for _, name := range temporals {
			if !strings.Contains(page, "\n# TYPE "+name+" ") {
				return name + ", which a rule or a dashboard uses, is not exported"
			}
		}
		if want := `signalbox_steps_total{status="completed"} 1`; !strings.Contains(page, want+"\n") {
			return "no line " + want
		}
		return ""
	})
}

type documentedMetric struct {
	labels      string
	mayBeAbsent bool
}

// metricsPage reads the reference page: our metrics, and the names of those of Temporal's SDK.
func metricsPage(t *testing.T) (ours map[string]documentedMetric, temporals []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	ours = map[string]documentedMetric{}
	conditional := regexp.MustCompile(`Absent|absent|Only a process|appears with`)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		name := strings.Trim(cells[0], "| `")
		switch {
		case !strings.HasPrefix(line, "| `"):
		case len(cells) >= 5: //nolint:mnd // metric, type, unit, labels, meaning
			ours[name] = documentedMetric{strings.ReplaceAll(cells[3], "`", ""), conditional.MatchString(cells[4])}
		case strings.HasPrefix(name, "temporal_"):
			temporals = append(temporals, name)
		}
	}
	require.Greater(t, len(ours), 50)
	return ours, temporals
}

// exportedLabels returns the labels of our metrics in a scrape, by metric. The SDK's metrics are those with its label
// client_name or of its pollers.
func exportedLabels(page string) map[string]string {
	found := map[string]string{}
	series := regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? [^ ]+$`)
	label := regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
	suffix := regexp.MustCompile(`_seconds_(bucket|sum|count)$`)
	for _, sample := range series.FindAllStringSubmatch(page, -1) {
		name, labels := suffix.ReplaceAllString(sample[1], "_seconds"), map[string]bool{}
		for _, l := range label.FindAllStringSubmatch(sample[2], -1) {
			labels[l[1]] = l[1] != "le"
		}
		maps.DeleteFunc(labels, func(_ string, keep bool) bool { return !keep })
		library := regexp.MustCompile(`^(go_|process_|promhttp_|target_info)`).MatchString(name)
		if library || strings.HasPrefix(name, "temporal_") && (labels["client_name"] || labels["operation"]) {
			continue
		}
		found[name] = strings.Join(slices.Sorted(maps.Keys(labels)), ", ")
	}
	return found
}
