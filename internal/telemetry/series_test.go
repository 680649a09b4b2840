package telemetry_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// The limits of the series of a server: of each further project, and of all where it has 200 of them.
const (
	maxSeriesOfProject = 25
	maxSeriesOf200     = 8000
)

// Every series costs memory in the server and in Prometheus, and time of each scrape. A histogram by project has 19.
func TestSeriesOfAProjectAreFew(t *testing.T) {
	t.Parallel()
	documented := metricsByProject(t)
	const many = 200
	one, all := seriesByMetric(scrape(t, server(t, 1))), seriesByMetric(scrape(t, server(t, many)))
	var table strings.Builder
	total, ofProject := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		further := (all[name] - one[name]) / (many - 1)
		if further > 0 {
			fmt.Fprintf(&table, "%4d %s\n", further, name)
			require.Zero(t, (all[name]-one[name])%(many-1), name)
			delete(documented, name)
		}
		total += all[name]
		ofProject += further
	}
	t.Logf("series of one project: %d, with %d projects: %d; of each further project: %d\n%s", sum(one), many, total,
		ofProject, table.String())
	require.LessOrEqual(t, ofProject, maxSeriesOfProject, table.String())
	require.Less(t, total, maxSeriesOf200)
	require.Empty(t, documented, "metrics with the label project that this test does not measure")
}

func BenchmarkScrape(b *testing.B) {
	for _, projects := range []int{1, 200} {
		b.Run(fmt.Sprintf("projects=%d", projects), func(b *testing.B) {
			handler := server(b, projects).Handler()
			request := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil)
			for b.Loop() {
				handler.ServeHTTP(httptest.NewRecorder(), request)
			}
		})
	}
}

// metricsByProject returns the metrics on the reference page that have the label project.
func metricsByProject(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	found := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		const name, labels, columns = 0, 3, 6
		if cells := strings.Split(line, " | "); len(cells) >= columns && strings.Contains(cells[labels], "`project`") {
			found[strings.Trim(cells[name], "| `")] = true
		}
	}
	require.NotEmpty(t, found)
	return found
}

// seriesByMetric counts the series of a scrape by metric; a histogram is one metric.
func seriesByMetric(page string) map[string]int {
	counts := map[string]int{}
	suffix := regexp.MustCompile(`_seconds_(bucket|sum|count)$`)
	for line := range strings.Lines(page) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "#" && name != "" {
			name, _, _ = strings.Cut(name, "{")
			counts[suffix.ReplaceAllString(name, "_seconds")]++
		}
	}
	return counts
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// server returns the metrics of a server with both roles, in which everything that has a project was measured for each
// of its projects.
func server(t testing.TB, projects int) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(),
		telemetry.Options{ServiceName: "signalbox", Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tel.Stop(context.WithoutCancel(t.Context()))) })
	names := make([]string, projects)
	for i := range names {
		names[i] = fmt.Sprintf("project-%03d", i)
	}
	observeServer(t, tel)
	observeProjects(t, tel, names)
	for _, project := range names {
		measureProject(t.Context(), tel, project)
		measureWorker(tel, project)
	}
	return tel
}

// observeServer registers the gauges of the process and of the whole platform.
func observeServer(t testing.TB, tel *telemetry.Telemetry) {
	t.Helper()
	require.NoError(t, tel.ObserveListener(func(context.Context) (renewal, expiry time.Time) {
		return time.Now(), time.Now()
	}))
	states := telemetry.HealthStates{Dependencies: []string{"up", "impaired", "down"},
		Roles: []string{"ready", "degraded", "unavailable"}}
	require.NoError(t, tel.ObserveHealth(states, func(context.Context) telemetry.Health {
		return telemetry.Health{
			Dependencies: map[string]string{"store": "up", "leases": "up", "temporal": "up", "certificate": "up"},
			Roles:        map[string]string{"api": "ready", "worker": "ready"}}
	}))
	require.NoError(t, tel.ObservePools(func() map[string]sql.DBStats { return map[string]sql.DBStats{"all": {}} }))
	require.NoError(t, tel.ObserveClockSkew(func(context.Context) (time.Duration, error) { return 0, nil }))
	require.NoError(t, tel.ObserveProcessor(func() processor.Totals {
		return processor.Totals{Group: &processor.Group{Limit: 1}, Waited: new(time.Duration)}
	}))
	require.NoError(t, tel.ObserveUnpublished(func(context.Context) (event.Unpublished, error) {
		return event.Unpublished{}, nil
	}))
	require.NoError(t, tel.ObserveDiagnosis(func() telemetry.Diagnosis { return telemetry.Diagnosis{} },
		func() (int64, bool) { return 0, true }))
	operations := make([]string, 30)
	for i := range operations {
		operations[i] = fmt.Sprintf("operation-%d", i)
	}
	_, err := tel.Store("postgresql", operations...)
	require.NoError(t, err)
	_, err = tel.Connections("127.0.0.1:7233", "default")
	require.NoError(t, err)
}

// observeProjects registers the gauges that have projects, each with all of its values.
func observeProjects(t testing.TB, tel *telemetry.Telemetry, projects []string) {
	t.Helper()
	var workers []conntype.WorkerStatus
	var problems []problem.Gauge
	var webhooks []webhook.Backlog
	var quotas []quota.Held
	var backlogs []event.Backlog
	var dispatchers []dispatchtype.Dispatcher
	for _, project := range projects {
		workers = append(workers, conntype.WorkerStatus{Name: project, TaskQueues: []string{project}, Running: true,
			Polling: true, LastPoll: time.Now()})
		for _, kind := range problem.Kinds() {
			for _, state := range problem.States() {
				problems = append(problems, problem.Gauge{Project: project, Kind: kind, State: state})
			}
		}
		webhooks = append(webhooks, webhook.Backlog{Project: project})
		quotas = append(quotas, quota.Held{Project: project})
		backlogs = append(backlogs, event.Backlog{Project: project})
		dispatchers = append(dispatchers, dispatchtype.Dispatcher{Name: inbox.Name{Project: project},
			Status: dispatchtype.Routing})
	}
	require.NoError(t, tel.Observe(telemetry.Observed{
		Connection: func() conntype.Status {
			return conntype.Status{State: conntype.Connected, Address: "127.0.0.1:7233", Namespace: "default",
				Workers: workers}
		},
		QueuedRuns: func(context.Context) (int64, error) { return 0, nil }, QueueLimit: 1,
		StuckRuns:       func() (map[string]int64, bool) { return map[string]int64{"NO_POLLER": 0}, true },
		Mismatch:        func() bool { return false },
		Maintenance:     func() (bool, bool) { return false, true },
		Memory:          func() (int64, int64, bool) { return 1, 1, true },
		CertificateEnds: func() (time.Time, bool) { return time.Now(), true },
	}))
	require.NoError(t, tel.ObserveProblems(func(context.Context) ([]problem.Gauge, error) { return problems, nil }))
	require.NoError(t, tel.ObserveWebhooks(func(context.Context) ([]webhook.Backlog, error) { return webhooks, nil }))
	require.NoError(t, tel.ObserveQuotas(func(context.Context) ([]quota.Held, error) { return quotas, nil }))
	require.NoError(t, tel.ObserveDispatch(telemetry.Dispatching{
		Backlogs:    func(context.Context) ([]event.Backlog, error) { return backlogs, nil },
		Dispatchers: func(context.Context) ([]dispatchtype.Dispatcher, error) { return dispatchers, nil },
		Begin:       func(project string) { dispatched(tel, project) },
		Usable:      func() bool { return true },
	}))
}

// dispatched has the calls of package dispatch, each with all values of its label.
func dispatched(tel *telemetry.Telemetry, project string) {
	all := tel.Dispatch()
	of := all.WithTags(map[string]string{"project": project})
	for name, values := range map[string]map[string][]string{
		"dispatcher_takeovers_total": {"outcome": {"cold_start", "joined", "handover", "takeover", "lost", "error"}},
		"dispatcher_terminations_total": {"reason": {"legacy", "crashed", "unanswered", "silent", "interrupted",
			"owner_gone", "no_progress", "orphaned", "older_scheme"}},
		"dispatcher_deliveries_total":       {"outcome": {"done", "retry", "dead"}},
		"dispatcher_terminate_errors_total": {"": {""}}, "dispatcher_cleanup_errors_total": {"": {""}},
		"dispatcher_stale_cleanups_total": {"": {""}}, "dispatcher_worker_evictions_total": {"": {""}},
	} {
		for label, list := range values {
			for _, value := range list {
				of.WithTags(map[string]string{label: value}).Counter(name).Inc(0)
			}
		}
	}
	for _, name := range []string{"dispatcher_takeover_seconds", "dispatcher_cleanup_seconds"} {
		of.Timer(name).Record(time.Second)
	}
	for _, result := range []string{"ok", "error", "postponed"} {
		all.WithTags(map[string]string{"result": result}).Counter("dispatcher_supervisor_cycles_total").Inc(0)
	}
	all.Timer("dispatcher_supervisor_cycle_seconds").Record(time.Second)
}

// measureProject measures everything that happens in a project.
func measureProject(ctx context.Context, tel *telemetry.Telemetry, project string) {
	for _, status := range []string{"queued", "completed", "failed", "canceled", "terminated", "timed_out"} {
		tel.Runs.Count(ctx, project, status)
	}
	for _, status := range []string{"completed", "failed", "skipped", "canceled"} {
		tel.Runs.Stepped(ctx, status, 1)
	}
	tel.Runs.Started(ctx, time.Second)
	tel.Runs.Waited(ctx, time.Second)
	tel.Runs.Fired(ctx, time.Second)
	for _, outcome := range []string{"delivered", "retried", "dead"} {
		tel.Webhooks.Attempted(ctx, outcome)
	}
	for _, outcome := range []string{"completed", "failed_same_cause", "failed_other_cause", "canceled", "terminated",
		"unknown"} {
		tel.Batches.RunsEnded(ctx, outcome, 1)
	}
	tel.Problems.Acknowledged(ctx, "RUN_FAILED", time.Second)
}

// measureWorker has what Temporal's SDK measures in the worker of a project whose runs call services.
func measureWorker(tel *telemetry.Telemetry, project string) {
	type tags = map[string]string
	root := tel.Temporal().WithTags(tags{"namespace": "default", "client_name": "temporal_go", "worker_type": "none",
		"workflow_type": "none", "activity_type": "none", "task_queue": "none"})
	timers := func(of tags, names ...string) {
		for _, name := range names {
			root.WithTags(tags{"task_queue": "signalbox-" + project}).WithTags(of).Timer(name).Record(time.Second)
		}
	}
	counters := func(of tags, names ...string) {
		for _, name := range names {
			root.WithTags(tags{"task_queue": "signalbox-" + project}).WithTags(of).Counter(name).Inc(1)
		}
	}
	gauges := func(of tags, names ...string) {
		for _, name := range names {
			root.WithTags(tags{"task_queue": "signalbox-" + project}).WithTags(of).Gauge(name).Update(1)
		}
	}
	for workflow, activities := range map[string][]string{
		"signalbox.run": {"signalbox.http", "signalbox.emit"}, "signalbox.dispatcher": {"signalbox.dispatch.route"},
	} {
		of := tags{"workflow_type": workflow}
		timers(of, "temporal_workflow_task_execution_latency", "temporal_workflow_task_replay_latency",
			"temporal_workflow_task_schedule_to_start_latency", "temporal_workflow_endtoend_latency")
		counters(of, "temporal_workflow_task_queue_poll_succeed", "temporal_sticky_cache_hit", "temporal_workflow_completed")
		gauges(of, "temporal_sticky_cache_size")
		for _, activity := range activities {
			of := tags{"workflow_type": workflow, "activity_type": activity}
			timers(of, "temporal_activity_execution_latency", "temporal_activity_succeed_endtoend_latency",
				"temporal_local_activity_execution_latency")
			counters(of, "temporal_local_activity_total")
		}
		of = tags{"workflow_type": workflow, "operation": "StartWorkflowExecution"}
		timers(of, "temporal_request_latency", "temporal_request_latency_attempt")
		counters(of, "temporal_request", "temporal_request_attempt")
	}
	heartbeat := tags{"operation": "RecordActivityTaskHeartbeat"}
	timers(heartbeat, "temporal_request_latency", "temporal_request_latency_attempt")
	counters(heartbeat, "temporal_request", "temporal_request_attempt")
	for _, worker := range []string{"ActivityWorker", "LocalActivityWorker", "WorkflowWorker"} {
		of := tags{"worker_type": worker}
		counters(of, "temporal_worker_start", "temporal_poller_start")
		gauges(of, "temporal_worker_task_slots_available", "temporal_worker_task_slots_used")
	}
	for _, poller := range []string{"activity_task", "workflow_task", "workflow_sticky_task"} {
		gauges(tags{"poller_type": poller}, "temporal_num_pollers")
	}
	counters(nil, "temporal_sticky_cache_total_forced_eviction")
}
