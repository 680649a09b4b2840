package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTelemetry(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(),
		telemetry.Options{ServiceName: "signalbox", Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, tel.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, tel.Stop(context.WithoutCancel(t.Context()))) })
	return tel
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	response := httptest.NewRecorder()
	tel.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, response.Code)
	return response.Body.String()
}

func TestPlatformMetricsHaveTheirFixedNames(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	tel.Runs.Count(t.Context(), "default", "completed")
	tel.Runs.Count(t.Context(), "default", "completed")
	tel.Runs.Started(t.Context(), 3*time.Millisecond)
	tel.Runs.Projected(t.Context(), 20*time.Millisecond)
	page := scrape(t, tel)
	for _, line := range []string{
		`signalbox_runs_total{project="default",status="completed"} 2`,
		`signalbox_run_start_seconds_bucket{le="0.0025"} 0`,
		`signalbox_run_start_seconds_bucket{le="0.005"} 1`,
		`signalbox_projection_lag_seconds_bucket{le="0.025"} 1`,
		`target_info{service_name="signalbox",service_version="1.2.3"`,
		`go_goroutines `,
		`process_cpu_seconds_total `,
	} {
		require.Contains(t, page, line)
	}
}

func TestPlatformsHaveSeparateMetrics(t *testing.T) {
	t.Parallel()
	one, two := newTelemetry(t), newTelemetry(t)
	one.Runs.Count(t.Context(), "default", "failed")
	require.Contains(t, scrape(t, one), "signalbox_runs_total")
	require.NotContains(t, scrape(t, two), "signalbox_runs_total")
}

func TestTemporalMetricsAreSecondsAndMonotonic(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	handler := tel.Temporal().WithTags(map[string]string{"namespace": "default"})
	handler.Counter("temporal_request").Inc(2)
	handler.Timer("temporal_request_latency").Record(20 * time.Millisecond)
	page := scrape(t, tel)
	require.Contains(t, page, `temporal_request_total{namespace="default"} 2`)
	require.Contains(t, page, `temporal_request_latency_seconds_bucket{namespace="default",le="0.025"} 1`)
	require.Contains(t, page, `temporal_request_latency_seconds_bucket{namespace="default",le="0.01"} 0`)
}

// Each worker has a task queue; the sticky cache is one for all.
func TestTemporalMetricsAreOfAllTaskQueues(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	worker := func(queue string) client.MetricsHandler {
		return tel.Temporal().WithTags(map[string]string{"namespace": "default", "task_queue": queue})
	}
	for _, queue := range []string{"signalbox-shop", "signalbox-bank"} {
		of := worker(queue)
		of.Counter("temporal_worker_start").Inc(1)
		of.Timer("temporal_activity_execution_latency").Record(time.Second)
		of.WithTags(map[string]string{"poller_type": "activity_task"}).Gauge("temporal_num_pollers").Update(5)
		of.Gauge("temporal_sticky_cache_size").Update(7)
	}
	pollers := func(queue string, value float64) {
		worker(queue).WithTags(map[string]string{"poller_type": "activity_task"}).Gauge("temporal_num_pollers").Update(value)
	}
	shown := func() []string {
		return lines(scrape(t, tel), "temporal_worker_start", "temporal_activity_execution_latency_seconds_count",
			"temporal_num_pollers", "temporal_sticky_cache_size")
	}
	want := []string{
		`temporal_activity_execution_latency_seconds_count{namespace="default"} 2`,
		`temporal_num_pollers{namespace="default",poller_type="activity_task"} 10`,
		`temporal_sticky_cache_size{namespace="default"} 7`,
		`temporal_worker_start_total{namespace="default"} 2`,
	}
	require.Equal(t, want, shown())
	pollers("signalbox-shop", 0)
	pollers("signalbox-bank", 3)
	want[1] = `temporal_num_pollers{namespace="default",poller_type="activity_task"} 3`
	require.Equal(t, want, shown())
}

// OpenTelemetry's own limit would put the series of further projects into one without labels.
func TestSeriesHaveNoLimit(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	const projects = 2100
	for i := range projects {
		tel.Runs.Count(t.Context(), fmt.Sprintf("p%d", i), "completed")
	}
	require.Len(t, lines(scrape(t, tel), `signalbox_runs_total{project="p`), projects)
}

// The project is known from the oldest open problem and the failing webhooks; the numbers are of all projects.
func TestProblemsAndWebhooksAreCountedOverProjects(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	var away error
	require.NoError(t, tel.ObserveProblems(func(context.Context) ([]problem.Gauge, error) {
		return []problem.Gauge{
			{Project: "bank", Kind: problem.Stuck, State: problem.Open, Count: 2, Oldest: time.Minute},
			{Project: "shop", Kind: problem.Stuck, State: problem.Open, Count: 3},
			{Project: "shop", Kind: problem.Stuck, State: problem.Resolved},
		}, away
	}))
	require.NoError(t, tel.ObserveWebhooks(func(context.Context) ([]webhook.Backlog, error) {
		return []webhook.Backlog{
			{Project: "bank", Pending: 4, Oldest: time.Minute, Failing: 1, Paused: 1},
			{Project: "shop", Pending: 5, Oldest: time.Second},
		}, away
	}))
	away = errors.New("the database is away")
	require.Empty(t, lines(scrape(t, tel), "signalbox_problem", "signalbox_webhook"))
	away = nil
	require.Equal(t, []string{
		`signalbox_problem_oldest_open_seconds{kind="stuck",project="bank"} 60`,
		`signalbox_problem_oldest_open_seconds{kind="stuck",project="shop"} 0`,
		`signalbox_problems{kind="stuck",state="open"} 5`,
		`signalbox_problems{kind="stuck",state="resolved"} 0`,
		`signalbox_webhook_oldest_pending_seconds 60`,
		`signalbox_webhook_pending_deliveries 9`,
		`signalbox_webhooks_failing{project="bank"} 2`,
		`signalbox_webhooks_failing{project="shop"} 0`,
	}, lines(scrape(t, tel), "signalbox_problem", "signalbox_webhook"))
}

func TestAPICallsAreMeasuredByMethodAndCode(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	const good, bad, stream = "/signalbox.v1.RunService/GetRun", "/signalbox.v1.RunService/StartRun",
		"/signalbox.v1.RunService/WatchRun"
	mux := http.NewServeMux()
	mux.Handle(good, connect.NewUnaryHandler(good,
		func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
			return connect.NewResponse(&emptypb.Empty{}), nil
		}, connect.WithInterceptors(tel.API)))
	mux.Handle(bad, connect.NewUnaryHandler(bad,
		func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
			return nil, connect.NewError(connect.CodeResourceExhausted, nil)
		}, connect.WithInterceptors(tel.API)))
	mux.Handle(stream, connect.NewServerStreamHandler(stream,
		func(_ context.Context, _ *connect.Request[emptypb.Empty], s *connect.ServerStream[emptypb.Empty]) error {
			return s.Send(&emptypb.Empty{})
		}, connect.WithInterceptors(tel.API)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	call := func(procedure string) error {
		client := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+procedure)
		_, err := client.CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{}))
		return err
	}
	require.NoError(t, call(good))
	require.Error(t, call(bad))
	watch, err := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(),
		server.URL+stream).CallServerStream(t.Context(), connect.NewRequest(&emptypb.Empty{}))
	require.NoError(t, err)
	for watch.Receive() {
	}
	require.NoError(t, watch.Close())

	page := scrape(t, tel)
	for procedure, code := range map[string]string{good: "OK", bad: "RESOURCE_EXHAUSTED", stream: "OK"} {
		require.Regexp(t, regexp.QuoteMeta(`rpc_server_call_duration_seconds_count{rpc_method="`+procedure[1:]+
			`",rpc_response_status_code="`+code+`",rpc_system_name="connectrpc"} 1`), page)
	}
}

func TestSecondStopFailsAndInstrumentsStayUsable(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.New(t.Context(), telemetry.Options{ServiceName: "s", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, tel.Stop(t.Context()))
	require.ErrorContains(t, tel.Stop(t.Context()), "stop telemetry")
	tel.Runs.Count(t.Context(), "default", "completed")
}

// A read of a scrape may create an instrument, for example by its first request of a kind to Temporal, and scrapes may
// overlap.
func TestScrapesCreateInstruments(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	var created atomic.Int64
	create := func() {
		tel.Temporal().Counter(fmt.Sprintf("temporal_request_%d", created.Add(1))).Inc(1)
	}
	require.NoError(t, tel.ObserveProblems(func(context.Context) ([]problem.Gauge, error) {
		create()
		return []problem.Gauge{{Project: "shop", Kind: problem.Failure, State: problem.Open, Count: 3,
			Oldest: 6 * time.Minute}}, nil
	}))
	require.NoError(t, tel.ObserveQuotas(func(context.Context) ([]quota.Held, error) {
		create()
		return nil, nil
	}))
	require.NoError(t, tel.ObserveDispatch(telemetry.Dispatching{
		Backlogs: func(context.Context) ([]event.Backlog, error) {
			return []event.Backlog{{Project: fmt.Sprintf("p%d", created.Load())}}, nil
		},
		Dispatchers: func(context.Context) ([]dispatchtype.Dispatcher, error) { return nil, nil },
		Begin:       func(string) { create() },
		Usable:      func() bool { return true },
	}))
	var scrapes errgroup.Group
	for range 50 {
		scrapes.Go(func() error {
			if found := lines(scrape(t, tel), "signalbox_problems{"); len(found) != 1 {
				return fmt.Errorf("%d series of problems", len(found))
			}
			return nil
		})
	}
	require.NoError(t, scrapes.Wait())
	require.Equal(t, []string{`signalbox_problem_oldest_open_seconds{kind="failure",project="shop"} 360`},
		lines(scrape(t, tel), "signalbox_problem_oldest"))
}
