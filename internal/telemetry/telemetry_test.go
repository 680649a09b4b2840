package telemetry_test

import (
	"context"
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
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
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
	tel.Runs.Started(t.Context(), "default", 3*time.Millisecond)
	tel.Runs.Projected(t.Context(), 20*time.Millisecond)
	page := scrape(t, tel)
	for _, line := range []string{
		`signalbox_runs_total{project="default",status="completed"} 2`,
		`signalbox_run_start_seconds_bucket{project="default",le="0.0025"} 0`,
		`signalbox_run_start_seconds_bucket{project="default",le="0.005"} 1`,
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
		Begin:       func(context.Context, string) { create() },
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
