package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

// testAwaited follows awaited runs from their acceptance to the notification of their ends.
func testAwaited(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	awaited := s.Awaited()
	insert(t, s, newRun("p1", 1))
	insert(t, s, newRun("p2", 1))
	for i, id := range []string{"a", "b", "c", "d"} {
		r := newRun(id, i+2)
		r.Parent = run.Parent{RunID: map[bool]string{true: "p1", false: "p2"}[i < 2], Path: "/do/0/x", Depth: 1, Key: "key of " + id, Awaited: id != "d"}
		insert(t, s, r)
	}
	due := func() []child.Link {
		list, err := awaited.Due(ctx, "", 10)
		require.NoError(t, err)
		return list
	}
	require.Empty(t, due())
	key, there, err := awaited.Key(ctx, "a")
	require.NoError(t, err)
	require.True(t, there)
	require.Equal(t, "key of a", key)
	_, there, err = awaited.Key(ctx, "d")
	require.NoError(t, err)
	require.False(t, there, "no run awaits it")

	finish := func(id string, status run.Status) {
		ended, err := s.FinishMissing(ctx, id, status, nil, at(9), entry(audit.RunCancel, here, id))
		require.NoError(t, err)
		require.True(t, ended)
	}
	finish("b", run.Failed)
	finish("d", run.Failed)
	ended := child.Link{RunID: "b", Project: here, Parent: "p1", Ended: true}
	require.Equal(t, []child.Link{ended}, due())
	finish("p2", run.TimedOut)
	orphan := child.Link{RunID: "c", Project: here, Parent: "p2", ParentEnded: true}
	require.Equal(t, []child.Link{ended, orphan}, due())
	list, err := awaited.Due(ctx, "b", 10)
	require.NoError(t, err)
	require.Equal(t, []child.Link{orphan}, list)
	list, err = awaited.Due(ctx, "", 1)
	require.NoError(t, err)
	require.Equal(t, []child.Link{ended}, list)
	list, err = awaited.DueFor(ctx, []string{"b", "p2", "a", "none"})
	require.NoError(t, err)
	require.Equal(t, []child.Link{ended, orphan}, list)
	list, err = awaited.DueFor(ctx, []string{"a", "p1"})
	require.NoError(t, err)
	require.Equal(t, []child.Link{ended}, list)

	_, err = s.MarkCancelRequested(ctx, here, "c", "its parent ended", entry(audit.RunCancel, here, "c"))
	require.NoError(t, err)
	require.Equal(t, []child.Link{ended}, due(), "it was asked to end")
	finish("c", run.Canceled)
	require.Equal(t, []child.Link{ended, {RunID: "c", Project: here, Parent: "p2", Ended: true, ParentEnded: true, CancelRequested: true}}, due())
	require.NoError(t, awaited.MarkNotified(ctx, "b"))
	require.NoError(t, awaited.MarkNotified(ctx, "b"))
	require.NoError(t, awaited.MarkNotified(ctx, "c"))
	require.Empty(t, due())

	_, err = s.RemoveUnstarted(ctx, "a", entry(audit.RunStartRefused, here, "a"))
	require.NoError(t, err)
	_, there, err = awaited.Key(ctx, "a")
	require.NoError(t, err)
	require.False(t, there)
}
