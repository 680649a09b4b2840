package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryMetricHasAMeaning(t *testing.T) {
	t.Parallel()
	metrics, err := instruments(t.Context())
	require.NoError(t, err)
	for _, m := range metrics {
		require.Regexp(t, `^[A-Z].*[.]$`, m.Meaning, m.Name)
	}
}

// A rule or a panel that names a metric of ours which does not exist would never show anything.
func TestUsedMetricsExist(t *testing.T) {
	t.Parallel()
	unknown, err := unknownMetrics(t, repository)
	require.NoError(t, err)
	require.Empty(t, unknown)

	made := t.TempDir()
	write(t, made, "deploy/prometheus/rules.yaml", `groups:
  - name: a
    rules:
      - {record: "project:lag", expr: "max by (signalbox_label) (signalbox_runs_stuk{signalbox_code='x'})"}
      - {alert: Late, expr: "project:lag > 1 and rate(signalbox_runs_total[5m]) > on (dispatcher_x) 0"}
      - {alert: Slow, expr: "histogram_quantile(0.9, rate(signalbox_run_start_seconds_bucket[5m])) > 1"}
`)
	write(t, made, "docs/runbooks/Late.md", "# Late")
	write(t, made, "deploy/grafana/dashboards/runs.json",
		`{"title": "Runs", "panels": [{"title": "A row", "panels": [{"title": "Lag", "targets": [{"expr": "signalbox_lagg"}]}]}]}`)
	unknown, err = unknownMetrics(t, made)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"signalbox_runs_stuk", "signalbox_lagg"}, unknown)
	used, err := usages(made)
	require.NoError(t, err)
	require.Equal(t, []usage{{"rule `project:lag`", ""}, {"alert Late", "runbooks/Late.md"}}, used["signalbox_runs_stuk"])
	require.Equal(t, []usage{{"alert Slow", ""}}, used["signalbox_run_start_seconds"])
	require.Equal(t, []usage{{"panel Runs / Lag", ""}}, used["signalbox_lagg"])
}

// A metric without a use need not be measured: each one of ours is in a rule or on a panel, or is listed here with the
// reason.
func TestEveryMetricIsUsed(t *testing.T) {
	t.Parallel()
	unused := map[string]string{
		"signalbox_batch_runs_ended_total": "the page of a batch has what became of its runs; the counter is for alerts " +
			"of one's own",
		"signalbox_diagnosis_requests_total": "the panel of the budget shows when requests are refused; the counter is for " +
			"the search of the cause",
		"signalbox_migration_failures_total": "the dashboards are for platforms in operation; the page of the migration " +
			"names it",
		"signalbox_program_duration_seconds_total": "the page of runners names it; few platforms have runners",
		"signalbox_program_ended_total":            "the page of runners names it; few platforms have runners",
		"signalbox_store_clock_skew_seconds":       "`signalbox system status` warns of it; the gauge is for alerts of one's own",
		"signalbox_migration_runs_total": "the dashboards are for platforms in operation; the page of the migration " +
			"names it",
	}
	metrics, err := instruments(t.Context())
	require.NoError(t, err)
	used, err := usages(repository)
	require.NoError(t, err)
	for _, m := range metrics {
		require.Equal(t, unused[m.Name] == "", len(used[m.Name]) > 0, "%s is used in %v, and listed here: %q", m.Name,
			used[m.Name], unused[m.Name])
		delete(unused, m.Name)
	}
	require.Empty(t, unused, "metrics that do not exist")
}

func unknownMetrics(t *testing.T, folder string) (unknown []string, err error) {
	t.Helper()
	metrics, err := instruments(t.Context())
	require.NoError(t, err)
	used, err := usages(folder)
	known := map[string]bool{}
	for _, m := range metrics {
		known[m.Name] = true
	}
	for name := range used {
		if !known[name] && hasPrefix(name, "dispatcher_", "signalbox_", "rpc_", "db_client_") {
			unknown = append(unknown, name)
		}
	}
	return unknown, err
}

func write(t *testing.T, folder, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, path), []byte(content), 0o600))
}
