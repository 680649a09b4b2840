package examples_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// The test follows the example's README: start before Temporal, Temporal killed in the
// middle of an order and restarted, and a stop.
func TestConnExampleSurvivesOutage(t *testing.T) {
	t.Parallel()
	temporal := platform.ReserveTemporal(t)
	s := startOrders(t, temporal.Address)

	began := time.Now()
	status, header, body := s.post(t, "early", 0)
	require.Less(t, time.Since(began), promise.Limit(time.Second), "it is refused at once")
	s.requireRefused(t, status, header, body)
	require.Contains(t, []conn.State{conn.Connecting, conn.Down}, s.health(t).State)

	temporal = temporal.Restart(t)
	s.order(t, "first", 0)
	s.completes(t, temporal, "first")
	before := s.health(t)
	require.Equal(t, conn.Connected, before.State)

	// The order is being packed when Temporal is killed.
	s.order(t, "interrupted", 3)
	temporal.Kill()
	platform.Eventually(t, limit, func() string {
		if now := s.health(t); now.State != conn.Down || now.Kind != conn.Unreachable {
			return fmt.Sprintf("is %s %s", now.State, now.Kind)
		}
		return ""
	})
	status, header, body = s.post(t, "late", 0)
	s.requireRefused(t, status, header, body)

	temporal = temporal.Restart(t)
	s.order(t, "second", 0)
	s.completes(t, temporal, "second")
	s.completes(t, temporal, "interrupted")
	require.Positive(t, s.health(t).Statistics.Outages)

	s.Terminate()
	code, ended := s.WaitFor(limit)
	require.True(t, ended, "it stops by itself")
	require.Zero(t, code, s.Output())
}

// ordersService is the example as a process.
type ordersService struct {
	*platform.Process

	url string
}

func startOrders(t *testing.T, temporal string) *ordersService {
	t.Helper()
	binary := platform.BuildExample(t, "conn")
	address := platform.Address(platform.FreePort(t))
	s := &ordersService{
		Process: platform.StartProcess(t, "orders", binary, nil, []string{"-listen", address, "-temporal", temporal}),
		url:     "http://" + address,
	}
	platform.Eventually(t, limit, func() string {
		res, err := http.Get(s.url + "/healthz")
		if err != nil {
			return err.Error()
		}
		require.NoError(t, res.Body.Close())
		return ""
	})
	return s
}

// health reads the connection status that the service serves.
func (s *ordersService) health(t *testing.T) (status conn.Status) {
	t.Helper()
	res, err := http.Get(s.url + "/healthz")
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }() // read to the end below
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, json.NewDecoder(res.Body).Decode(&status))
	return status
}

func (s *ordersService) post(t *testing.T, id string, packSeconds int) (int, http.Header, string) {
	t.Helper()
	order := fmt.Sprintf(`{"id": %q, "packSeconds": %d}`, id, packSeconds)
	res, err := http.Post(s.url+"/orders", "application/json", strings.NewReader(order))
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }() // read to the end below
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header, string(body)
}

func (*ordersService) requireRefused(t *testing.T, status int, header http.Header, body string) {
	t.Helper()
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, seconds)
	require.Contains(t, body, "temporal at ")
}

// order sends an order until it is accepted, as a caller does.
func (s *ordersService) order(t *testing.T, id string, packSeconds int) {
	t.Helper()
	platform.Eventually(t, limit, func() string {
		if status, _, body := s.post(t, id, packSeconds); status != http.StatusAccepted {
			return fmt.Sprintf("%d: %s", status, body)
		}
		return ""
	})
}

// completes waits until the workflow of an order has completed, and requires its payment.
func (*ordersService) completes(t *testing.T, temporal *platform.Temporal, id string) {
	t.Helper()
	c := platform.DialTemporal(t, temporal.Address)
	platform.Eventually(t, limit, func() string {
		x, err := c.DescribeWorkflowExecution(t.Context(), "order-"+id, "")
		if err != nil {
			return err.Error()
		}
		if status := x.GetWorkflowExecutionInfo().GetStatus(); status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return "order " + id + " is " + status.String()
		}
		return ""
	})
	var payment string
	require.NoError(t, c.GetWorkflow(t.Context(), "order-"+id, "").Get(t.Context(), &payment))
	require.Equal(t, "payment-"+id, payment)
}
