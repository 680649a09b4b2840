package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func testWorkers(t *testing.T, open Opener) {
	a, b, ctx := open(t), open(t), t.Context()
	list := func(within time.Duration, limit int) []worker.Worker {
		t.Helper()
		found, err := b.ListWorkers(ctx, within, limit)
		require.NoError(t, err)
		return found
	}
	ids := func(list []worker.Worker) (ids []string) {
		for _, w := range list {
			ids = append(ids, w.ServerID)
		}
		return ids
	}
	require.Empty(t, list(time.Hour, 10))
	one := worker.Worker{
		ServerID: "host-1", Projects: []string{"shop", "default"}, StartedAt: at(1),
		Fingerprint: worker.Fingerprint{Contract: "abc", Address: "10.0.0.1:7233", Namespace: "default", NamespaceID: "n1"},
	}
	require.NoError(t, a.BeatWorker(ctx, one, time.Hour))
	got := list(time.Hour, 10)
	require.Len(t, got, 1)
	require.WithinRange(t, got[0].BeatAt, time.Now().Add(-time.Minute), time.Now().Add(time.Minute))
	first := got[0].BeatAt
	got[0].BeatAt = time.Time{}
	require.Equal(t, one, got[0])
	require.Empty(t, list(-time.Minute, 10), "no worker has a heartbeat a minute from now")

	// Its next heartbeat contains its changes.
	one.Fingerprint.NamespaceID, one.Projects = "n2", nil
	one.Busy = []worker.Busy{{Project: "shop", WorkflowTasks: at(3)}}
	limit, none := 0.25, 0.0
	one.Processor = processor.State{Limit: &limit, Throttled: &none}
	require.Eventually(t, func() bool {
		require.NoError(t, a.BeatWorker(ctx, one, time.Hour))
		return list(time.Hour, 10)[0].BeatAt.After(first)
	}, 10*time.Second, time.Millisecond)
	got = list(time.Hour, 10)
	require.Equal(t, []any{"n2", 0}, []any{got[0].Fingerprint.NamespaceID, len(got[0].Projects)})
	require.Equal(t, one.Busy, got[0].Busy)
	require.Equal(t, one.Processor, got[0].Processor, "unknown values stay unknown")
	one.Busy = nil

	two := one
	two.ServerID = "host-0"
	require.NoError(t, b.BeatWorker(ctx, two, time.Hour))
	require.Equal(t, []string{"host-0", "host-1"}, ids(list(time.Hour, 10)))
	require.Equal(t, []string{"host-0"}, ids(list(time.Hour, 1)))

	require.NoError(t, a.LeaveWorker(ctx, "host-1"))
	require.NoError(t, a.LeaveWorker(ctx, "host-1"))
	require.Equal(t, []string{"host-0"}, ids(list(time.Hour, 10)))
	// A worker with a last heartbeat that is too old is removed at the next heartbeat of any worker.
	require.NoError(t, a.BeatWorker(ctx, one, -time.Minute))
	require.Equal(t, []string{"host-1"}, ids(list(time.Hour, 10)))
}
