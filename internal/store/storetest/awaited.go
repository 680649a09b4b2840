package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
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
		r.Parent = run.Parent{RunID: map[bool]string{true: "p1", false: "p2"}[i < 2], Path: "/do/0/x", Depth: 1,
			Key: "key of " + id, Awaited: id != "d"}
		insert(t, s, r)
	}
	due := func() []child.Link {
		list, err := awaited.Due(ctx, "", 10)
		require.NoError(t, err)
		return list
	}
	require.Empty(t, due())
	key, canceled, there, err := awaited.Key(ctx, "a")
	require.NoError(t, err)
	require.True(t, there)
	require.Equal(t, "key of a", key)
	require.False(t, canceled)
	_, _, there, err = awaited.Key(ctx, "d")
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
	require.Equal(t, []child.Link{
		ended, {RunID: "c", Project: here, Parent: "p2", Ended: true, ParentEnded: true, CancelRequested: true}}, due())
	require.NoError(t, awaited.MarkNotified(ctx, "b"))
	require.NoError(t, awaited.MarkNotified(ctx, "b"))
	require.NoError(t, awaited.MarkNotified(ctx, "c"))
	require.Empty(t, due())

	_, err = s.RemoveUnstarted(ctx, "a", entry(audit.RunStartRefused, here, "a"))
	require.NoError(t, err)
	_, _, there, err = awaited.Key(ctx, "a")
	require.NoError(t, err)
	require.False(t, there)
}

// testCanceledAncestors starts children of runs that are being canceled, and of runs below those.
func testCanceledAncestors(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	number := 0
	tryChild := func(id, parent string, awaited bool) error {
		number++
		r := newRun(id, number)
		r.Parent = run.Parent{RunID: parent, Path: "/do/0/x", Depth: 1, Key: "key of " + id, Awaited: awaited}
		_, _, err := s.InsertRun(ctx, r, entry(audit.RunStart, here, id))
		return err
	}
	finish := func(id string, status run.Status) {
		ended, err := s.FinishMissing(ctx, id, status, nil, at(99), entry(audit.RunCancel, here, id))
		require.NoError(t, err)
		require.True(t, ended)
	}
	refused := func(parent string) {
		t.Helper()
		for _, awaited := range []bool{true, false} {
			require.ErrorIs(t, tryChild("refused", parent, awaited), run.ErrAncestorCanceled, parent)
			_, err := s.GetRun(ctx, here, "refused")
			require.True(t, apperror.Is(err, apperror.RunNotFound), "nothing is left of it")
		}
		queued := newRun("refused", 1)
		queued.QueuedReason, queued.ExpiresAt = run.QueuedEngine, at(999)
		queued.Parent = run.Parent{RunID: parent, Path: "/do/0/x", Depth: 1, Key: "k"}
		_, _, err := s.EnqueueRun(ctx, queued, 10, entry(audit.RunStart, here, "refused"))
		require.ErrorIs(t, err, run.ErrAncestorCanceled)
	}
	canceled := func(id string) bool {
		_, canceled, awaited, err := s.Awaited().Key(ctx, id)
		require.NoError(t, err)
		require.True(t, awaited)
		return canceled
	}
	insert(t, s, newRun("root", 1))
	require.NoError(t, tryChild("a", "root", true))
	require.NoError(t, tryChild("a1", "a", true))
	require.NoError(t, tryChild("a11", "a1", true))
	require.NoError(t, tryChild("free", "a", false))
	require.NoError(t, tryChild("free1", "free", true))
	require.False(t, canceled("a11"))

	_, err := s.MarkCancelRequested(ctx, here, "root", "why", entry(audit.RunCancel, here, "root"))
	require.NoError(t, err)
	for _, parent := range []string{"root", "a", "a1", "a11"} {
		refused(parent)
	}
	require.NoError(t, tryChild("a1", "a", true), "a repeated request returns the run that it made")
	require.True(t, canceled("a11"))
	require.False(t, canceled("free1"))
	require.NoError(t, tryChild("free2", "free", true), "the run that nothing awaits continues")
	due, err := s.Awaited().Due(ctx, "", 10)
	require.NoError(t, err)
	link := child.Link{RunID: "a", Project: here, Parent: "root", ParentCanceled: true}
	require.Equal(t, []child.Link{link}, due, "it is canceled next")

	insert(t, s, newRun("failed", 1))
	require.NoError(t, tryChild("b", "failed", true))
	finish("failed", run.Failed)
	refused("b")
	insert(t, s, newRun("terminated", 1))
	finish("terminated", run.Terminated)
	refused("terminated")
}
