package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

func drawWindow(t *rapid.T) engine.BudgetWindow {
	number := rapid.IntRange(0, 1000)
	return engine.BudgetWindow{
		Served: number.Draw(t, "served"), Slow: rapid.SampledFrom([]int{0, 0, 1, 100}).Draw(t, "slow"),
		Refused: rapid.SampledFrom([]int{0, 0, 0, 1, 9}).Draw(t, "refused"),
	}
}

// The budget stays within its limits, never grows while Temporal refuses requests or most are slow, reaches its minimum
// within seconds of it, and its maximum within half a minute after it.
func TestNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(engine.MinBudget, engine.MaxBudget).Draw(t, "limit")
		for _, w := range rapid.SliceOf(rapid.Custom(drawWindow)).Draw(t, "windows") {
			next := engine.NextBudget(limit, w)
			require.GreaterOrEqual(t, next, float64(engine.MinBudget))
			require.LessOrEqual(t, next, float64(engine.MaxBudget))
			if w.Refused > 0 || w.Slow > w.Served {
				require.LessOrEqual(t, next, max(limit/2, engine.MinBudget))
			}
			if w.Refused+w.Slow == 0 && w.Served > 0 {
				require.True(t, next > limit || next == engine.MaxBudget)
			}
			worse := w
			worse.Slow++
			require.LessOrEqual(t, engine.NextBudget(limit, worse), next, "a slower Temporal never gives more")
			if w == (engine.BudgetWindow{}) {
				require.InDelta(t, limit, next, 0, "nothing was measured")
			}
			limit = next
		}
		for range 7 {
			limit = engine.NextBudget(limit, engine.BudgetWindow{Served: 10, Slow: 10})
		}
		require.InDelta(t, engine.MinBudget, limit, 0)
		for range 20 {
			limit = engine.NextBudget(limit, engine.BudgetWindow{Served: 1})
		}
		require.InDelta(t, engine.MaxBudget, limit, 0)
	})
}

// slowTemporal answers requests with an error after a time.
type slowTemporal struct {
	now   time.Time
	takes time.Duration
	err   error
}

func (c *slowTemporal) invoke(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	c.now = c.now.Add(c.takes)
	return c.err
}

func (c *slowTemporal) send(b *engine.Budget, method string) {
	_ = b.Intercept(context.Background(), "/temporal.api.workflowservice.v1.WorkflowService/"+method, nil, nil, nil,
		c.invoke)
}

func TestBudgetFollowsTemporal(t *testing.T) {
	t.Parallel()
	c := &slowTemporal{now: time.Unix(1767225600, 0)}
	b := engine.NewBudget(engine.BudgetOptions{Now: func() time.Time { return c.now }})
	for name, step := range map[string]slowTemporal{
		"slow":        {takes: time.Second},
		"refused":     {takes: time.Second / 3, err: status.Error(codes.ResourceExhausted, "limits")},
		"unavailable": {takes: time.Second / 3, err: status.Error(codes.Unavailable, "away")},
	} {
		c.takes, c.err = step.takes, step.err
		for range 60 {
			c.send(b, "StartWorkflowExecution")
		}
		require.InDelta(t, engine.MinBudget, b.Limit(), 0, name)
		c.takes, c.err = time.Second/3, nil
		for range 90 {
			c.send(b, "StartWorkflowExecution")
		}
		require.InDelta(t, engine.MaxBudget, b.Limit(), 0, name)
	}
	c.takes = time.Minute
	for _, method := range []string{
		"PollWorkflowTaskQueue", "QueryWorkflow", "GetWorkflowExecutionHistory", "ListWorkflowExecutions"} {
		c.send(b, method)
	}
	c.takes = time.Second / 3
	c.send(b, "StartWorkflowExecution")
	require.InDelta(t, engine.MaxBudget, b.Limit(), 0, "requests that wait are not slow")
}

// A Temporal that does not answer is slow before the requests to it end.
func TestRequestsUnderWayAreSlow(t *testing.T) {
	t.Parallel()
	c := &slowTemporal{now: time.Unix(1767225600, 0)}
	b := engine.NewBudget(engine.BudgetOptions{Now: func() time.Time { return c.now }})
	_ = b.Intercept(t.Context(), "/S/StartWorkflowExecution", nil, nil, nil,
		func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			for range 10 {
				c.now = c.now.Add(time.Second)
				require.NoError(t, b.Take(ctx))
			}
			return nil
		})
	require.InDelta(t, engine.MinBudget, b.Limit(), 0)
}

func TestTake(t *testing.T) {
	t.Parallel()
	c := &slowTemporal{now: time.Now(), takes: time.Second}
	b := engine.NewBudget(engine.BudgetOptions{Now: func() time.Time { return c.now }})
	for range 20 {
		c.send(b, "StartWorkflowExecution")
	}
	require.InDelta(t, engine.MinBudget, b.Limit(), 0)
	short, cancel := context.WithDeadline(t.Context(), c.now.Add(time.Second))
	defer cancel()
	var err error
	for range 100 {
		if err = b.Take(short); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, diagnose.ErrLimited)
	require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
	require.ErrorContains(t, err, "is not known")
	counts := b.Counts()
	require.Equal(t, int64(1), counts.Refused)
	require.Zero(t, counts.Delayed)
	require.NoError(t, b.Take(t.Context()), "a request with more time waits")
	require.Equal(t, int64(1), b.Counts().Delayed)

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Take(canceled), context.Canceled)
	var none *engine.Budget
	require.NoError(t, none.Take(t.Context()))
}
