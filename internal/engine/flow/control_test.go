package flow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// control sends a control a given time after the start of the execution.
func (b *testRun) control(after time.Duration, op string) {
	b.env.RegisterDelayedCallback(func() {
		b.env.SignalWorkflow(contract.ControlSignal, flow.Control{Op: op, Reason: "a test"})
	}, after)
}

// states returns the states of the run as operators see them.
func (l *recorder) states() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, r := range l.runs {
		line := fmt.Sprintf("%s %s %s", r.Status, r.WaitKind, r.Since.Sub(begin))
		if len(out) == 0 || out[len(out)-1] != line {
			out = append(out, line)
		}
	}
	return out
}

func TestPauseAndUnpause(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{w: {wait: {minutes: 1}}}, {s: {set: {x: 1}}}]`, `{}`)
	b.began = func() {
		b.control(time.Second, "unknown")
		b.control(2*time.Second, flow.OpUnpause)
		b.control(10*time.Second, flow.OpPause)
		b.control(20*time.Second, flow.OpPause)
		b.control(90*time.Second, flow.OpUnpause)
		b.control(91*time.Second, flow.OpUnpause)
	}
	b.completes(`{"x": 1}`)
	require.Equal(t, []string{"waiting timer 0s", "waiting paused 10s", "completed  1m30s"}, b.recorder.states())
}

func TestPausedRunIsCanceled(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{w: {wait: {minutes: 1}}}, {s: {set: {x: 1}}}]`, `{}`)
	b.began = func() {
		b.control(10*time.Second, flow.OpPause)
		b.env.RegisterDelayedCallback(b.env.CancelWorkflow, 2*time.Minute)
	}
	_, err := b.run()
	var canceled *temporal.CanceledError
	require.ErrorAs(t, err, &canceled)
	require.Equal(t, []string{"waiting timer 0s", "waiting paused 10s", "canceled  2m0s"}, b.recorder.states())
	require.Len(t, b.recorder.steps, 1)
}

func TestPauseSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `
do:
  - c: {call: http, with: {method: post, endpoint: 'http://x'}}
  - d: {call: http, with: {method: post, endpoint: 'http://x'}}`, `{}`)
	b.limits.SoftEvents, b.limits.HardEvents = 8, 40
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
		b.env.SignalWorkflow(contract.ControlSignal, flow.Control{Op: flow.OpPause})
		return answer("called")
	}
	executions := 0
	b.began = func() {
		if executions++; executions == 2 {
			require.Len(t, b.requests, 1)
			b.control(time.Hour, flow.OpUnpause)
		}
	}
	b.completes(`"called"`)
	require.GreaterOrEqual(t, executions, 2)
	require.Len(t, b.requests, 2)
	require.Contains(t, b.recorder.states(), "waiting paused 0s")
}

func TestStepQuota(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{f: {for: {in: '[range(5)]'}, do: [{s: {set: {x: '${ $index }'}}}]}}]`, `{}`)
	b.input.StepQuota = true
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b.quota = func(_ context.Context, r flow.QuotaRequest) (flow.QuotaGrant, error) {
		require.Equal(t, "p", r.Project)
		require.Equal(t, "run-1", r.RunID)
		switch len(b.quotas) {
		case 1: // like a short outage of the database
			return flow.QuotaGrant{}, errors.New("try again")
		case 2:
			return flow.QuotaGrant{Steps: 3, ResetAt: begin.Add(time.Hour), Used: 3, Limit: 3}, nil
		case 3:
			require.Equal(t, int64(3), r.Granted)
			require.Equal(t, int64(3), r.Used)
			return flow.QuotaGrant{ResetAt: begin.Add(time.Hour), Used: 3, Limit: 3}, nil
		case 4:
			require.True(t, r.Force)
			return flow.QuotaGrant{ResetAt: begin.Add(time.Hour), Used: 3, Limit: 3}, nil
		}
		require.False(t, r.Force)
		return flow.QuotaGrant{Steps: 3, ResetAt: begin.Add(2 * time.Hour), Used: 3, Limit: 3}, nil
	}
	b.began = func() { b.control(10*time.Minute, flow.OpResumeQuota) }
	b.completes(`{"x": 4}`)
	require.Len(t, b.quotas, 5)
	states := b.recorder.states()
	require.Equal(t, interp.StatusCompleted, b.recorder.runs[len(b.recorder.runs)-1].Status)
	require.Contains(t, states[len(states)-1], "completed  1h0m0")
	for _, s := range b.recorder.steps {
		if s.Number > 3 {
			require.False(t, s.StartedAt.Before(begin.Add(time.Hour)))
		}
	}
}

func TestRejectedQuotaRequestFailsTheRun(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{s: {set: {x: 1}}}]`, `{}`)
	b.input.StepQuota = true
	b.quota = func(context.Context, flow.QuotaRequest) (flow.QuotaGrant, error) {
		return flow.QuotaGrant{}, temporal.NewNonRetryableApplicationError("no such project", "gone", nil)
	}
	_, err := b.run()
	status, runError := flow.Failed(err)
	require.Equal(t, interp.StatusFailed, status)
	require.Contains(t, runError.Detail, "no such project")
}
