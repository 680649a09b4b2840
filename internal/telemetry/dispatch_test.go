package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

func TestDispatcherMetricsHaveTheirFixedNames(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	begun := 0
	known := errors.New("the database is away")
	require.NoError(t, tel.ObserveDispatch(telemetry.Dispatching{
		Backlogs: func(context.Context) ([]event.Backlog, error) {
			return []event.Backlog{{Project: "shop", Pending: 500, Oldest: 4500 * time.Millisecond}}, known
		},
		Dispatchers: func(context.Context) ([]dispatchtype.Dispatcher, error) {
			older := make([]dispatchtype.Execution, 4)
			return []dispatchtype.Dispatcher{
				{Name: inbox.Name{Project: "shop"}, Status: dispatchtype.Foreign, Others: older, Stale: 2}}, known
		},
		Begin: func(string) { begun++ }, Usable: func() bool { return true },
	}))
	require.Empty(t, lines(scrape(t, tel), "dispatcher_"))
	known = nil
	shop := tel.Dispatch().WithTags(map[string]string{"project": "shop"})
	tagged := func(name, value string) map[string]string { return map[string]string{name: value} }
	shop.Gauge("dispatcher_active").Update(1)
	for _, name := range []string{
		"dispatcher_stale", "dispatcher_duplicates", "dispatcher_foreign", "dispatcher_inbox_lag_seconds"} {
		shop.Gauge(name).Update(17) // of the last cycle of this process
	}
	tel.Dispatch().Gauge("dispatcher_supervisor_last_cycle_timestamp_seconds").Update(1.75e9)
	shop.WithTags(tagged("reason", "stale")).Counter("dispatcher_terminations_total").Inc(5)
	shop.WithTags(tagged("outcome", "takeover")).Counter("dispatcher_takeovers_total").Inc(6)
	shop.WithTags(tagged("outcome", "done")).Counter("dispatcher_deliveries_total").Inc(7)
	shop.Counter("dispatcher_cleanup_errors_total").Inc(8)
	shop.Counter("dispatcher_stale_cleanups_total").Inc(9)
	shop.Counter("dispatcher_worker_evictions_total").Inc(10)
	shop.Counter("dispatcher_terminate_errors_total").Inc(11)
	tel.Dispatch().WithTags(tagged("result", "ok")).Counter("dispatcher_supervisor_cycles_total").Inc(12)
	for _, name := range []string{"dispatcher_takeover_seconds", "dispatcher_cleanup_seconds"} {
		shop.Timer(name).Record(90 * time.Second)
	}
	tel.Dispatch().Timer("dispatcher_supervisor_cycle_seconds").Record(20 * time.Millisecond)
	page := scrape(t, tel)
	require.Equal(t, []string{
		`dispatcher_active{project="shop"} 1`,
		`dispatcher_cleanup_errors_total 8`,
		`dispatcher_deliveries_total{outcome="done",project="shop"} 7`,
		`dispatcher_duplicates{project="shop"} 3`,
		`dispatcher_foreign{project="shop"} 1`,
		`dispatcher_inbox_lag_seconds{project="shop"} 4.5`,
		`dispatcher_inbox_pending{project="shop"} 500`,
		`dispatcher_stale_cleanups_total 9`,
		`dispatcher_stale{project="shop"} 2`,
		`dispatcher_supervisor_cycles_total{result="ok"} 12`,
		`dispatcher_supervisor_last_cycle_timestamp_seconds 1.75e+09`,
		`dispatcher_takeovers_total{outcome="takeover"} 6`,
		`dispatcher_terminate_errors_total{project="shop"} 11`,
		`dispatcher_terminations_total{reason="stale"} 5`,
		`dispatcher_worker_evictions_total{project="shop"} 10`,
	}, lines(page, "dispatcher_active", "dispatcher_cleanup_e", "dispatcher_de", "dispatcher_du", "dispatcher_f",
		"dispatcher_i", "dispatcher_stale", "dispatcher_supervisor_cycles",
		"dispatcher_supervisor_last", "dispatcher_takeovers", "dispatcher_te", "dispatcher_w"))
	for _, sample := range []string{
		`dispatcher_takeover_seconds_bucket{le="60"} 0`,
		`dispatcher_takeover_seconds_bucket{le="120"} 1`,
		`dispatcher_takeover_seconds_sum 90`,
		`dispatcher_cleanup_seconds_bucket{le="120"} 1`,
		`dispatcher_supervisor_cycle_seconds_bucket{le="0.01"} 0`,
		`dispatcher_supervisor_cycle_seconds_bucket{le="0.025"} 1`,
	} {
		require.Contains(t, page, sample+"\n")
	}
	for _, name := range regexp.MustCompile(`(?m)^# HELP (dispatcher_\w+) *$`).FindAllString(page, -1) {
		require.Fail(t, "no description", name)
	}
	for _, name := range regexp.MustCompile(`(?m)^# HELP dispatcher_\w+ `).FindAllString(page, -1) {
		require.NotContains(t, name, "_ratio")
	}
	require.Len(t, regexp.MustCompile(`(?m)^# HELP dispatcher_\w+ `).FindAllString(page, -1), 18, "the whole family")
	require.Equal(t, 1, begun)
}

// A process that serves no project exports the backlog and orphans, which are in the database.
func TestBacklogNeedsNoLocalDispatcher(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	usable := true
	var away error
	var begun []string
	require.NoError(t, tel.ObserveDispatch(telemetry.Dispatching{
		Backlogs: func(context.Context) ([]event.Backlog, error) {
			return []event.Backlog{{Project: "idle"}, {Project: "shop", Pending: 500, Oldest: 75 * time.Second, Orphan: true}},
				nil
		},
		Dispatchers: func(context.Context) ([]dispatchtype.Dispatcher, error) {
			return []dispatchtype.Dispatcher{
				{Name: inbox.Name{Project: "idle"}}, {Name: inbox.Name{Project: "shop"}, Status: dispatchtype.Foreign},
			}, away
		},
		Begin: func(project string) {
			begun = append(begun, project)
			tel.Dispatch().WithTags(map[string]string{"project": project}).Counter("dispatcher_terminate_errors_total").Inc(0)
		},
		Usable: func() bool { return usable },
	}))
	shown := []string{
		`dispatcher_active{project="idle"} 0`, `dispatcher_active{project="shop"} 0`,
		`dispatcher_duplicates{project="idle"} 0`, `dispatcher_duplicates{project="shop"} 0`,
		`dispatcher_foreign{project="idle"} 0`, `dispatcher_foreign{project="shop"} 1`,
		`dispatcher_inbox_lag_seconds{project="idle"} 0`, `dispatcher_inbox_lag_seconds{project="shop"} 75`,
		`dispatcher_inbox_pending{project="idle"} 0`, `dispatcher_inbox_pending{project="shop"} 500`,
		`dispatcher_stale{project="idle"} 0`, `dispatcher_stale{project="shop"} 1`,
		`dispatcher_terminate_errors_total{project="idle"} 0`, `dispatcher_terminate_errors_total{project="shop"} 0`,
	}
	require.Equal(t, shown, lines(scrape(t, tel), "dispatcher_"))
	require.Equal(t, []string{"idle", "shop"}, begun)
	tel.Dispatch().WithTags(map[string]string{"project": "shop"}).Gauge("dispatcher_active").Update(1)
	require.Contains(t, lines(scrape(t, tel), "dispatcher_active"), `dispatcher_active{project="shop"} 1`)
	usable = false
	require.Equal(t, shown, lines(scrape(t, tel), "dispatcher_"), "without Temporal, no dispatcher counts as active")
	away = errors.New("Temporal does not answer")
	require.Equal(t, shown, lines(scrape(t, tel), "dispatcher_"), "unknown values stay as they were")
}

// The SDK tags the handler of a workflow with the workflow's names, and workflow code may add tags: none of them
// becomes a label.
func TestDispatcherSeriesDoNotGrowWithRestarts(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	for i := range 20 {
		handler := tel.Dispatch().
			WithTags(map[string]string{"project": "old", "server_id": fmt.Sprint(i), "workflow_id": fmt.Sprint(i)})
		handler.WithTags(map[string]string{"project": "shop", "run_id": fmt.Sprint(i)}).
			Counter("dispatcher_worker_evictions_total").Inc(1)
	}
	require.Equal(t, []string{`dispatcher_worker_evictions_total{project="shop"} 20`},
		lines(scrape(t, tel), "dispatcher_"))
}
