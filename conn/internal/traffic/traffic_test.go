package traffic_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/conn/internal/traffic"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	type counts = traffic.Counts
	tests := map[string]struct {
		recent, lately counts
		before, want   traffic.Verdict
	}{
		"no requests":                      {counts{}, counts{}, traffic.Served, traffic.Served},
		"all served":                       {counts{Served: 9}, counts{Served: 50}, traffic.Served, traffic.Served},
		"two failed":                       {counts{Failed: 2}, counts{Failed: 2}, traffic.Served, traffic.Served},
		"three failed":                     {counts{Failed: 3}, counts{Failed: 3}, traffic.Served, traffic.Failing},
		"three failed over thirty seconds": {counts{}, counts{Failed: 3, Served: 2}, traffic.Served, traffic.Failing},
		"half failed": {
			counts{Failed: 5, Served: 5}, counts{Failed: 5, Served: 5}, traffic.Served, traffic.Served},
		"most failed of late, few before": {
			counts{Failed: 6, Served: 5}, counts{Failed: 6, Served: 500}, traffic.Served, traffic.Failing},
		"most are late": {
			counts{Late: 3, Served: 2}, counts{Late: 3, Served: 2}, traffic.Served, traffic.Late},
		"late, one failed": {
			counts{Late: 3, Failed: 1}, counts{Late: 3, Failed: 1}, traffic.Served, traffic.Failing},
		"still failing": {
			counts{Failed: 2, Served: 6}, counts{Failed: 9, Served: 6}, traffic.Failing, traffic.Failing},
		"late by now": {
			counts{Late: 2, Served: 1}, counts{Failed: 9, Late: 2, Served: 1}, traffic.Failing, traffic.Late},
		"four out of five served": {
			counts{Failed: 2, Served: 8}, counts{Failed: 90, Served: 8}, traffic.Failing, traffic.Served},
		"one served, none in trouble": {
			counts{Served: 1}, counts{Failed: 90, Served: 1}, traffic.Failing, traffic.Served},
		"no request since it failed":            {counts{}, counts{Failed: 1}, traffic.Failing, traffic.Failing},
		"no request since it was late":          {counts{}, counts{Late: 1}, traffic.Late, traffic.Late},
		"no request in trouble for long enough": {counts{}, counts{}, traffic.Failing, traffic.Served},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, traffic.NextVerdict(traffic.Periods{Recent: tt.recent, Lately: tt.lately}, tt.before))
		})
	}
}

// clock is a clock that the test controls.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func tracker() (*traffic.Tracker, *clock) {
	c := &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	return traffic.New(time.Second, func() time.Time { return c.now }), c
}

const (
	start = "/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution"
	poll  = "/temporal.api.workflowservice.v1.WorkflowService/PollWorkflowTaskQueue"
)

func exhausted(cause enums.ResourceExhaustedCause) error {
	return serviceerror.ToStatus(serviceerror.NewResourceExhausted(cause, "too many requests")).Err()
}

// TestRequestsInTrouble has five requests of each kind. The verdict shows what one of them counts as.
func TestRequestsInTrouble(t *testing.T) {
	t.Parallel()
	limit := exhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT)
	deadline := status.FromContextError(context.DeadlineExceeded).Err()
	tests := map[string]struct {
		method   string
		err      error
		answered bool
		took     time.Duration
		want     traffic.Verdict
	}{
		"served":                 {start, nil, true, time.Millisecond, traffic.Served},
		"over the limits":        {start, limit, true, time.Millisecond, traffic.Failing},
		"a poll over the limits": {poll, limit, true, time.Millisecond, traffic.Failing},
		"busy workflow": {
			start, exhausted(enums.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW), true, 0, traffic.Served},
		"message too large for this side": {
			start, status.Error(codes.ResourceExhausted, "trying to send message larger than max"), false, 0, traffic.Served},
		"answer too large for this side": {
			start, status.Error(codes.ResourceExhausted, "grpc: received message larger than max"), true, 0, traffic.Served},
		"unavailable, by the server": {
			start, status.Error(codes.Unavailable, "persistence"), true, time.Millisecond, traffic.Failing},
		"unavailable, by the connection": {
			start, status.Error(codes.Unavailable, "EOF"), false, time.Millisecond, traffic.Served},
		"out of time":        {start, deadline, false, 3 * time.Second, traffic.Failing},
		"out of little time": {start, deadline, false, 100 * time.Millisecond, traffic.Served},
		"a poll out of time": {poll, deadline, false, time.Minute, traffic.Served},
		"late":               {start, nil, true, 1100 * time.Millisecond, traffic.Late},
		"late, and refused for its own faults": {
			start, status.Error(codes.NotFound, "no such run"), true, 2 * time.Second, traffic.Late},
		"a long poll":   {poll, nil, true, time.Minute, traffic.Served},
		"canceled late": {start, status.Error(codes.Canceled, "canceled"), false, time.Minute, traffic.Served},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, c := tracker()
			var ended []func(error, bool)
			for range 5 {
				ended = append(ended, tr.Begin(tt.method))
			}
			c.pass(tt.took)
			for _, end := range ended {
				end(tt.err, tt.answered)
			}
			verdict, why := tr.Verdict()
			require.Equal(t, tt.want, verdict)
			require.Equal(t, tt.want == traffic.Served, why == nil)
		})
	}
}

func TestRequestsUnderWayAreLate(t *testing.T) {
	t.Parallel()
	tr, c := tracker()
	var ended []func(error, bool)
	for range 3 {
		ended = append(ended, tr.Begin(start))
		tr.Begin(poll)
	}
	c.pass(time.Second)
	verdict, _ := tr.Verdict()
	require.Equal(t, traffic.Served, verdict)
	c.pass(time.Millisecond)
	verdict, why := tr.Verdict()
	require.Equal(t, traffic.Late, verdict)
	require.EqualError(t, why,
		"Temporal answers health checks, but of 3 requests in the last 5s 0 failed and 3 took longer than 1s; "+
			"check the latency of Temporal's persistence")
	for _, end := range ended {
		end(nil, true)
	}
	c.pass(4 * time.Second)
	verdict, _ = tr.Verdict()
	require.Equal(t, traffic.Late, verdict, "requests that ended late do not count as served")
}

func TestTroubleBeginsAndEnds(t *testing.T) {
	t.Parallel()
	tr, c := tracker()
	requests := func(n int, err error) {
		for range n {
			tr.Begin(start)(err, true)
		}
	}
	requests(100, nil)
	c.pass(10 * time.Second)
	requests(3, exhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT))
	verdict, why := tr.Verdict()
	require.Equal(t, traffic.Failing, verdict)
	require.EqualError(t, why,
		"Temporal answers health checks, but of 3 requests in the last 5s 3 failed and 0 took longer than 1s, the last one "+
			"StartWorkflowExecution with ResourceExhausted: too many requests; check the rate limits of the namespace and of "+
			"Temporal's persistence")
	c.pass(2 * time.Second)
	requests(11, nil)
	verdict, again := tr.Verdict()
	require.Equal(t, traffic.Failing, verdict, "three of fourteen")
	require.Equal(t, why, again)
	requests(1, nil)
	verdict, why = tr.Verdict()
	require.Equal(t, traffic.Served, verdict)
	require.NoError(t, why)
	requests(1, exhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT))
	verdict, _ = tr.Verdict()
	require.Equal(t, traffic.Served, verdict, "requests from before the end of the trouble do not count again")

	requests(9, exhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT))
	verdict, _ = tr.Verdict()
	require.Equal(t, traffic.Failing, verdict)
	c.pass(29 * time.Second)
	verdict, _ = tr.Verdict()
	require.Equal(t, traffic.Failing, verdict)
	c.pass(time.Second)
	verdict, _ = tr.Verdict()
	require.Equal(t, traffic.Served, verdict)
}

func TestResetForgetsRequestsUnderWay(t *testing.T) {
	t.Parallel()
	tr, c := tracker()
	var ended []func(error, bool)
	for range 3 {
		ended = append(ended, tr.Begin(start))
	}
	c.pass(5 * time.Second)
	tr.Reset()
	for _, end := range ended {
		end(status.Error(codes.DeadlineExceeded, "no answer"), false)
	}
	verdict, _ := tr.Verdict()
	require.Equal(t, traffic.Served, verdict)
}
