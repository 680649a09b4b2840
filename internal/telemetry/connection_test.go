package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// lines returns the samples of a scrape with names that start with one of the prefixes.
func lines(page string, prefixes ...string) []string {
	var found []string
	for line := range strings.Lines(page) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	slices.Sort(found)
	return found
}

// value returns the value of the sample with this name and labels.
func value(t *testing.T, page, sample string) float64 {
	t.Helper()
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, sample+" "); ok {
			number, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			require.NoError(t, err)
			return number
		}
	}
	require.FailNow(t, "no sample", "%s in\n%s", sample, page)
	return 0
}

const place = `{host_port="127.0.0.1:7233",namespace="default"}`

func TestConnectionMetricsHaveTheirFixedNamesAndLabels(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	now := time.Now()
	connection := conntype.Status{
		State: conntype.Connected, Address: "127.0.0.1:7233", Namespace: "default", Attempts: 4, Generation: 2,
		Breaker:    conntype.Breaker{State: conntype.BreakerClosed},
		Statistics: conntype.Statistics{ConnectedSince: now.Add(-time.Hour)},
		Workers: []conntype.WorkerStatus{
			{Name: "default", TaskQueues: []string{"signalbox-default"}, Running: true, Polling: true,
				LastPoll: now.Add(-time.Minute)},
			{Name: "shop", TaskQueues: []string{"signalbox-shop"}, Running: false},
			{Name: "bank", TaskQueues: []string{"signalbox-bank"}, Running: true, Polling: true,
				LastPoll: now.Add(-time.Second)},
			{Name: "handed-over calls", TaskQueues: []string{"signalbox.calls-1"}, Polling: true},
		},
	}
	queued := int64(12)
	var away error
	require.NoError(t, tel.Observe(telemetry.Observed{
		Connection: func() conntype.Status { return connection }, SharedWorkers: []string{"handed-over calls"},
		QueuedRuns: func(context.Context) (int64, error) {
			return queued, away
		}, QueueLimit: 1000, Mismatch: func() bool { return away != nil },
		StuckRuns: func() (map[string]int64, bool) {
			return map[string]int64{"NO_POLLER": 3, "BACKLOG": 0}, away == nil
		},
		Maintenance:     func() (bool, bool) { return true, away == nil },
		Memory:          func() (int64, int64, bool) { return 50 << 20, 100 << 20, true },
		CertificateEnds: func() (time.Time, bool) { return time.Unix(1_800_000_000, 0), true },
	}))
	page := scrape(t, tel)
	require.Equal(t, []string{
		"signalbox_maintenance 1",
		"signalbox_memory_limit_bytes 1.048576e+08",
		"signalbox_memory_used_bytes 5.24288e+07",
		"signalbox_queue_mode_max_runs 1000",
		"signalbox_queue_mode_runs 12",
		`signalbox_queue_pollers{project="",serves="handed-over calls"} 1`,
		`signalbox_queue_pollers{project="bank",serves="project"} 1`,
		`signalbox_queue_pollers{project="default",serves="project"} 1`,
		`signalbox_queue_pollers{project="shop",serves="project"} 0`,
		`signalbox_runs_stuck{code="BACKLOG"} 0`,
		`signalbox_runs_stuck{code="NO_POLLER"} 3`,
		"temporal_circuit_breaker_state" + place + " 0",
		"temporal_connection_status" + place + " 1",
		"temporal_reconnection_attempts_total" + place + " 4",
		"temporal_workers_running" + place + " 2",
	}, lines(page, "signalbox_maintenance", "signalbox_memory", "signalbox_queue_mode", "signalbox_queue_pollers",
		"signalbox_runs_stuck", "temporal_circuit", "temporal_connection_status", "temporal_reconnection",
		"temporal_workers"))
	require.Zero(t, value(t, page, "signalbox_temporal_mismatch"))
	require.InDelta(t, 3600, value(t, page, "temporal_connection_uptime_seconds"+place), 30)
	require.InDelta(t, 60, value(t, page, `signalbox_queue_last_poll_age_seconds{serves="project"}`), 30)
	require.Len(t, lines(page, "signalbox_queue_last_poll_age_seconds"), 1, "queues that were never polled have no age")

	degraded := func(kind string) string {
		return `temporal_connection_degraded{host_port="127.0.0.1:7233",kind="` + kind + `",namespace="default"}`
	}
	require.Equal(t, []string{degraded("limited") + " 0", degraded("not_polling") + " 0", degraded("slow") + " 0"},
		lines(page, "temporal_connection_degraded"))
	connection.State, connection.Kind = conntype.Degraded, conntype.Limited
	page = scrape(t, tel)
	require.Equal(t, []string{degraded("limited") + " 1", degraded("not_polling") + " 0", degraded("slow") + " 0"},
		lines(page, "temporal_connection_degraded"))
	require.InDelta(t, 1, value(t, page, "temporal_connection_status"+place), 0)

	connection.State, connection.Kind, connection.Attempts = conntype.Down, "unreachable", 5
	connection.Statistics.ConnectedSince = time.Time{}
	connection.Breaker.State = conntype.BreakerOpen
	away = errors.New("the database is away")
	page = scrape(t, tel)
	require.Zero(t, value(t, page, "temporal_connection_status"+place))
	require.InDelta(t, 1, value(t, page, "signalbox_temporal_mismatch"), 0)
	require.Zero(t, value(t, page, "temporal_connection_uptime_seconds"+place))
	require.InDelta(t, 2, value(t, page, "temporal_circuit_breaker_state"+place), 0)
	require.InDelta(t, 5, value(t, page, "temporal_reconnection_attempts_total"+place), 0)
	require.Equal(t, []string{"signalbox_queue_mode_runs 12"},
		lines(page, "signalbox_queue_mode_runs", "signalbox_runs_stuck"), "what is not known is not zero")
	connection.Breaker.State = conntype.BreakerHalfOpen
	require.InDelta(t, 1, value(t, scrape(t, tel), "temporal_circuit_breaker_state"+place), 0)
}

func TestEndedConnectionsAndOutagesAreHistograms(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	ended, err := tel.Connections("127.0.0.1:7233", "default")
	require.NoError(t, err)
	ended.Connection(t.Context(), "127.0.0.1:7233", "default", 2*time.Hour)
	ended.Connection(t.Context(), "127.0.0.1:7233", "default", 5*time.Second)
	ended.Outage(t.Context(), "127.0.0.1:7233", "default", 68*time.Second)
	page := scrape(t, tel)
	bucket := func(name, le string) string {
		return name + `_bucket{host_port="127.0.0.1:7233",namespace="default",le="` + le + `"}`
	}
	for sample, want := range map[string]float64{
		"temporal_connection_duration_seconds_count" + place:    2,
		"temporal_connection_duration_seconds_sum" + place:      7205,
		bucket("temporal_connection_duration_seconds", "10"):    1,
		bucket("temporal_connection_duration_seconds", "3600"):  1,
		bucket("temporal_connection_duration_seconds", "14400"): 2,
		"temporal_outage_duration_seconds_count" + place:        1,
		"temporal_outage_duration_seconds_sum" + place:          68,
		bucket("temporal_outage_duration_seconds", "60"):        0,
		bucket("temporal_outage_duration_seconds", "300"):       1,
	} {
		require.InDelta(t, want, value(t, page, sample), 0.001, sample)
	}
}

// The number of series depends only on the projects, whatever happens to the connection.
func TestSeriesDoNotGrowWithTime(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	connection := conntype.Status{Address: "127.0.0.1:7233", Namespace: "default"}
	require.NoError(t, tel.Observe(telemetry.Observed{
		Connection: func() conntype.Status { return connection },
		QueuedRuns: func(context.Context) (int64, error) { return 0, nil }, Mismatch: func() bool { return false },
		StuckRuns:       func() (map[string]int64, bool) { return nil, false },
		Maintenance:     func() (bool, bool) { return false, true },
		Memory:          func() (int64, int64, bool) { return 0, 0, false },
		CertificateEnds: func() (time.Time, bool) { return time.Time{}, false },
	}))
	count := 0
	for i := range 20 {
		connection.State, connection.Kind = []conntype.State{conntype.Connected, conntype.Down}[i%2],
			[]conntype.Kind{conntype.None, conntype.Hung}[i%2]
		connection.Generation, connection.Attempts, connection.NamespaceID, connection.LastError = i, int64(i), fmt.Sprint(i),
			fmt.Sprint(i)
		connection.Workers = []conntype.WorkerStatus{
			{Name: "default", Running: true, Generation: i, LastPoll: time.Now(), Error: fmt.Sprint(i)}}
		tel.Runs.Corrected(t.Context(), "finished")
		found := lines(scrape(t, tel), "temporal_", "signalbox_")
		if i == 0 {
			count = len(found)
		}
		require.Len(t, found, count)
	}
	page := scrape(t, tel)
	require.Contains(t, page, `signalbox_reconcile_corrections_total{kind="finished"} 20`)
	require.Empty(t, lines(page, "signalbox_queue_mode_max_runs"), "queue mode is off")
}
