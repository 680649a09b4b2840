package conn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// request sends a request of the program and ignores its result.
func (r *rig) request(t *testing.T, limit time.Duration) {
	t.Helper()
	c, err := r.Client()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, _ = c.WorkflowService().StartWorkflowExecution(ctx,
		&workflowservice.StartWorkflowExecutionRequest{Namespace: "default"})
}

// TestRequestsThatAreNotServedDegradeTheConnection refuses or delays all requests except checks. Client and workers are
// not replaced.
func TestRequestsThatAreNotServedDegradeTheConnection(t *testing.T) {
	t.Parallel()
	start := "StartWorkflowExecution"
	for name, tt := range map[string]struct {
		refusal error // nil: there is no answer
		text    string
	}{
		"rate limit": {
			serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded"),
			"namespace rate limit exceeded; check the rate limits",
		},
		"persistence": {serviceerror.NewUnavailable("shard status unknown"),
			"Unavailable: shard status unknown; check the latency"},
		"no answer": {nil, "check the latency of Temporal's persistence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, conntest.Options{}, func(o *conn.Options) {
				o.SlowAfter, o.CheckTimeout = time.Second, 3*time.Second
			})
			require.NoError(t, r.Register("orders", idle("orders")))
			r.connect(t)
			was := r.until(t, polling)
			if tt.refusal == nil {
				r.frontend.Stall(start)
			} else {
				r.frontend.Fail(start, tt.refusal)
			}
			for range 3 {
				r.request(t, 1500*time.Millisecond)
			}
			s := r.until(t, is(conn.Degraded, conn.Limited))
			require.Contains(t, s.LastError, tt.text)
			require.Contains(t, s.LastError, "answers health checks")
			_, err := r.Client()
			require.NoError(t, err, "requests may be sent")

			r.frontend.Clear()
			r.frontend.Unstall()
			r.until(t, func(s conn.Status) bool {
				r.request(t, patience)
				return is(conn.Connected, conn.None)(s)
			})
			s = r.Status()
			require.Equal(t, was.Generation, s.Generation)
			require.Equal(t, was.Workers[0].Since, s.Workers[0].Since)
			require.Zero(t, s.Statistics.Outages)
			r.until(t, func(conn.Status) bool { // the log follows the status
				return r.log.count("Temporal connection degraded") == r.log.count("Temporal connection no longer degraded")
			})
			require.Contains(t, r.log.String(), "kind=limited error=")
		})
	}
}
