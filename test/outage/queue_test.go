package outage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// queueModeFlags returns the flags of queue mode.
func queueModeFlags(most int, ttl string) []string {
	return []string{
		"--runs-queue-when-unavailable-enabled=true", fmt.Sprintf("--runs-queue-when-unavailable-max-runs=%d", most),
		"--runs-queue-when-unavailable-ttl=" + ttl,
	}
}

// stopTemporal stops Temporal and waits until the server reports it as down.
func (x *environment) stopTemporal(t *testing.T) {
	t.Helper()
	x.temporal.Kill()
	x.waitForState(t, soon, "down", "unreachable")
}

// Runs created while Temporal was down are started once it is back, in order, each once.
func TestQueuedRunsAreHandedOverInOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store, queueModeFlags(1000, "1h")...)
		x.stopTemporal(t)
		l := load.New(x.Server, x.workflow)
		count := promise.Trials(200, 500)
		for n := range count {
			r := l.Send(t.Context(), n)
			require.Equal(t, load.Accepted, r.Outcome, "%v", r.Err)
			require.Equal(t, "queued", r.Status)
		}
		waiting := x.Run(t, l.Requests()[count-1].Run)
		require.Equal(t, "engine", waiting.GetQueuedReason())
		require.EqualValues(t, count, waiting.GetQueuePosition())
		require.NotNil(t, waiting.GetQueueExpireTime())

		x.temporal = x.temporal.Restart(t)
		back := time.Now()
		x.verify(t, l)
		took := time.Since(back)
		x.requireOrder(t, l)
		promise.Record(t, promise.Figure{Promise: "C8", What: fmt.Sprintf("queue mode: %d runs created while Temporal was "+
			"away, from its return to all completed, each once and in order", count),
			Trials: count, Figure: promise.Round(took).String()})
	})
}

// requireOrder requires that Temporal received the runs in the order of their requests.
func (x *environment) requireOrder(t *testing.T, l *load.Load) {
	t.Helper()
	c := platform.DialTemporal(t, x.temporal.Address)
	var started []time.Time
	for _, r := range l.Of(load.Accepted) {
		described, err := c.DescribeWorkflowExecution(t.Context(), r.Run, "")
		require.NoError(t, err)
		started = append(started, described.GetWorkflowExecutionInfo().GetStartTime().AsTime())
	}
	require.True(t, slices.IsSortedFunc(started, time.Time.Compare), "the runs were started in another order: %v", started)
}

func TestQueueIsBounded(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store, queueModeFlags(5, "3s")...)
		x.stopTemporal(t)
		l := load.New(x.Server, x.workflow)
		for n := range 5 {
			require.Equal(t, load.Accepted, l.Send(t.Context(), n).Outcome)
		}
		over := l.Send(t.Context(), 5)
		require.Equal(t, load.Refused, over.Outcome)
		require.Equal(t, connect.CodeResourceExhausted, over.Code)
		require.Equal(t, "QUEUE_FULL", over.Reason)
		require.Equal(t, 5, x.count(t, x.workflow))
		for _, r := range l.Of(load.Accepted) {
			run := x.Await(t, r.Run, 2*soon, "failed")
			require.Contains(t, run.GetError().String(), "queue_expired")
		}
		x.temporal = x.temporal.Restart(t)
		x.waitForReady(t)
		x.completeRun(t)
		c := platform.DialTemporal(t, x.temporal.Address)
		for _, r := range l.Of(load.Accepted) {
			_, err := c.DescribeWorkflowExecution(t.Context(), r.Run, "")
			require.Error(t, err, "a run that had expired was started")
		}
	})
}

// A crash between the acceptance of a run and its start neither loses nor doubles it.
func TestQueuedRunsSurviveCrashes(t *testing.T) {
	eachStore(t, func(t *testing.T, store platform.Store) {
		x := build(t, store, queueModeFlags(1000, "1h")...)
		x.stopTemporal(t)
		l := load.New(x.Server, x.workflow)
		count := promise.Trials(100, 500)
		for n := range count {
			require.Equal(t, load.Accepted, l.Send(t.Context(), n).Outcome)
		}
		x.Kill()
		x.Server = platform.LaunchServer(t, x.options)
		x.AwaitAPI(t)
		require.Equal(t, count, x.count(t, x.workflow))
		x.temporal = x.temporal.Restart(t)
		// Crash again while the queued runs are started.
		for range promise.Trials(2, 5) {
			waitFor(t, 700*time.Millisecond)
			x.Kill()
			x.Server = platform.LaunchServer(t, x.options)
		}
		x.waitForReady(t)
		x.verify(t, l)
	})
}
