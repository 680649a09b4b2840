package start_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

func TestMaintenanceRefusesNewRunsOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.Workflow, req.RequestID = "hello", "before"
	before, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	s := b.process(t, b.store, func(o *start.Options) {
		o.Queue = start.QueueOptions{Enabled: true, MaxRuns: 10}
		o.Maintenance = func(context.Context) error {
			return apperror.New(apperror.Unavailable, apperror.Maintenance, "upgrade").WithRetry(start.RetryAfter)
		}
	})
	again, created, err := s.Start(b.ctx, req)
	require.NoError(t, err, "a repeated request is answered")
	require.Equal(t, []any{before.ID, false}, []any{again.ID, created})

	req.RequestID = "new"
	for _, trigger := range []string{run.TriggerAPI, run.TriggerEvent, run.TriggerSchedule} {
		req.Trigger = trigger
		_, _, err = s.Start(b.ctx, req)
		require.True(t, apperror.Is(err, apperror.Maintenance), "%s: %v", trigger, err)
	}
	req.DryRun, req.Trigger = true, run.TriggerAPI
	_, _, err = s.Start(b.ctx, req)
	require.True(t, apperror.Is(err, apperror.Maintenance))
	require.True(t, apperror.Is(s.Ready(b.ctx, here), apperror.Maintenance))
	found, err := b.store.ListRuns(b.ctx, run.Filter{Project: here, Limit: 10})
	require.NoError(t, err)
	require.Len(t, found, 1, "nothing is stored, also in queue mode")

	req.DryRun, req.Trigger, req.Parent = false, run.TriggerParent,
		run.Parent{RunID: before.ID, Path: "/do/0/r", Depth: 1, Key: "k", Awaited: true}
	_, created, err = s.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created, "open runs start other runs")
}
