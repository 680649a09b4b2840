package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func testLabels(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	labels := map[string]string{"order": "4711", "shop.example/region": "eu", "text": "a = b, ü € '<script>'"}
	r := newRun("r1", 1)
	r.Labels, r.MissingLabels = labels, map[string]string{"customer": "has no value"}
	stored := insert(t, s, r)
	require.Equal(t, labels, stored.Labels)
	require.Nil(t, stored.MissingLabels)
	require.Equal(t, labels, get(t, s, "r1").Labels)
	insert(t, s, newRun("r2", 2))
	require.Nil(t, get(t, s, "r2").Labels)

	again := newRun("r3", 3)
	again.RequestID, again.Labels = r.RequestID, map[string]string{"order": "4712"}
	_, made, err := s.InsertRun(ctx, again, entry(audit.RunStart, here, "r3"))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, labels, get(t, s, "r1").Labels, "a repeated request changes no labels")
	require.Empty(t, labelled(t, s, "4712"))

	queued := queuedRun("r4", 4)
	queued.Labels = map[string]string{"order": "4711"}
	_, made, err = s.EnqueueRun(ctx, queued, 10, entry(audit.RunStart, here, "r4"))
	require.NoError(t, err)
	require.True(t, made)
	require.Equal(t, []string{"r4", "r1"}, labelled(t, s, "4711"))
	taken, err := s.TakeQueued(ctx, "r4", at(5))
	require.NoError(t, err)
	require.True(t, taken)
	require.Equal(t, queued.Labels, get(t, s, "r4").Labels)

	removed, err := s.RemoveUnstarted(ctx, "r1", entry(audit.RunStartRefused, here, "r1"))
	require.NoError(t, err)
	require.True(t, removed)
	require.Equal(t, []string{"r4"}, labelled(t, s, "4711"))
	insert(t, s, newRun("r1", 6))
	require.Nil(t, get(t, s, "r1").Labels, "labels are removed with their run")

	ended := newRun("r5", 1)
	ended.Labels = map[string]string{"order": "4713"}
	insert(t, s, ended)
	apply(t, s, state("r5", 1, run.Completed))
	require.EqualValues(t, 1,
		deleteAll(t, s, retention.Runs, retention.Cut{Before: at(1000), EndedBefore: at(1000)}, 10)["run_labels"])
	require.Empty(t, labelled(t, s, "4713"))
}

// labelled returns the IDs of the runs with a value of the label "order".
func labelled(t *testing.T, s Store, value string) (ids []string) {
	t.Helper()
	list, err := s.ListRuns(t.Context(), run.Filter{Project: here, Labels: map[string]string{"order": value}, Limit: 10})
	require.NoError(t, err)
	for _, r := range list {
		require.Equal(t, value, r.Labels["order"])
		ids = append(ids, r.ID)
	}
	return ids
}
