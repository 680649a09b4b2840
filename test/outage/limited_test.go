package outage_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// buildBehind is build with a frontend between server and Temporal that can refuse requests.
func buildBehind(t *testing.T) (*environment, *conntest.Frontend) {
	t.Helper()
	temporal := platform.StartTemporal(t)
	frontend := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
	x := &environment{temporal: temporal, options: options(t, frontend.Addr(), platform.SQLite(t))}
	x.Server = platform.StartServer(t, x.options)
	x.workflow = x.Publish(t, platform.Document("limited", hello))
	x.completeRun(t)
	return x, frontend
}

// degraded returns the metric of a connection that is degraded because its requests are refused.
func (x *environment) degraded(t *testing.T) float64 {
	t.Helper()
	value, series, err := counter.Metric(t.Context(), x.Server, `temporal_connection_degraded`, `kind="limited"`)
	require.NoError(t, err)
	require.Equal(t, 1, series)
	return value
}

// The frontend refuses every request but the checks. Starts are refused definitely, with a time to retry, and leave
// no row; the connection is degraded until Temporal serves requests again.
func TestStartsWhileTemporalIsOverItsLimits(t *testing.T) {
	t.Parallel()
	x, frontend := buildBehind(t)
	before, err := x.status(t)
	require.NoError(t, err)
	require.Zero(t, x.degraded(t))
	rows := x.count(t, x.workflow)

	frontend.Fail("", serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
		"namespace rate limit exceeded"))
	for _, check := range []string{"DescribeNamespace", "GetSystemInfo", "/grpc.health.v1.Health/Check"} {
		frontend.Fail(check, nil)
	}
	code, header, body := x.post(t, "/v1/projects/default/runs", `{"workflow":"`+x.workflow+`"}`)
	require.Equal(t, http.StatusTooManyRequests, code, body)
	requireReason(t, body, "ENGINE_REFUSED")
	require.Equal(t, "5", header.Get("Retry-After"))
	require.Equal(t, rows, x.count(t, x.workflow), "a refused start left a row")

	x.waitForState(t, soon, "degraded", "limited")
	code, body, err = x.Get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"degraded"`)
	require.Contains(t, body, "check the rate limits of the namespace")
	require.InDelta(t, 1, x.degraded(t), 0)
	text := x.CLI(t, "system", "status")
	require.Contains(t, text.Stdout, "degraded")
	require.Contains(t, text.Stdout, "(limited)")
	require.Contains(t, text.Stdout, "namespace rate limit exceeded")

	frontend.Clear()
	x.completeRun(t)
	x.waitForState(t, soon, "connected", "")
	after, err := x.status(t)
	require.NoError(t, err)
	require.Equal(t, before.Generation, after.Generation, "the client was replaced")
	require.EqualValues(t, 1, after.Statistics.Connections)
	require.NotContains(t, x.Output(), "Stopping old workers")
	begun := 0
	for line := range strings.Lines(x.Output()) {
		if strings.Contains(line, "Temporal connection degraded") && strings.Contains(line, "limited") {
			begun++
		}
	}
	require.Equal(t, 1, begun, x.Output())
}

// Starts get no answer from Temporal. Their callers receive an error with the outcome, where it is certain, and a time
// to retry.
func TestStartsWhileTemporalsPersistenceHangs(t *testing.T) {
	t.Parallel()
	x, frontend := buildBehind(t)
	frontend.Stall("StartWorkflowExecution")
	var ids []string
	for range 3 {
		code, header, body := x.post(t, "/v1/projects/default/runs", `{"workflow":"`+x.workflow+`"}`)
		require.Equal(t, http.StatusOK, code, body)
		require.Equal(t, "5", header.Get("Retry-After"))
		var out struct {
			Run struct{ ID, QueuedReason string } `json:"run"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &out))
		require.Equal(t, "starting", out.Run.QueuedReason)
		ids = append(ids, out.Run.ID)
	}
	x.waitForState(t, soon, "degraded", "limited")
	frontend.Unstall()
	for _, id := range ids {
		x.Await(t, id, soon, "completed")
	}
	platform.Eventually(t, soon, func() string {
		x.completeRun(t)
		now, err := x.status(t)
		if err != nil {
			return err.Error()
		}
		if now.State != "connected" {
			return now.State + " " + now.Kind
		}
		return ""
	})
}
