package storetest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
)

// testWaits reads what a run waits for: its open steps without values, its listeners, and the runs that it awaits.
func testWaits(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	waits := s.Waits()
	for i, id := range []string{"r", "other"} {
		insert(t, s, newRun(id, i))
	}
	for _, id := range []string{"awaited", "left", "of another"} {
		r := newRun(id, 2)
		r.Parent = run.Parent{RunID: map[bool]string{true: "other", false: "r"}[id == "of another"], Path: "/do/0/c",
			Depth: 1, Key: "key of " + id, Awaited: id != "left"}
		insert(t, s, r)
	}
	listen(t, s, listener("l1", "r", "t1"))
	listen(t, s, listener("l2", "other", "t1"))
	update := state("r", 1, run.Waiting)
	update.Steps = []run.Step{
		{Number: 1, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: "completed", StartedAt: at(1),
			EndedAt: at(2)},
		{Number: 2, Path: "/do/1/b", Pointer: "/do/1/b", Task: "b", Kind: "fork", Status: "running", StartedAt: at(2),
			Input: json.RawMessage(`{"large":1}`)},
		{
			Number: 3, Path: "/do/1/b/w", Pointer: "/do/1/b/w", Task: "w", Kind: "wait", Status: "waiting",
			WaitingKind: run.WaitingTimer,
			WaitUntil:   at(60), StartedAt: at(3), Attempts: []run.Attempt{{Number: 1, StartedAt: at(3)}},
			Wait: &run.StepWait{Deadline: at(90), DeadlineBy: "/timeout",
				Taken: []run.TakenEvent{{Filter: 1, At: at(4)}, {Filter: 0}}},
		},
	}
	apply(t, s, update)
	keys := map[string]string{"/do/1/b": "key of awaited", "/do/1/b/w": "l1"}
	page := func(limit int) explain.Page {
		return explain.Page{Limit: limit, Key: func(path string) string { return keys[path] }}
	}

	got, err := waits.Pending(ctx, here, "r", page(10))
	require.NoError(t, err)
	want := []run.Step{update.Steps[1], update.Steps[2]}
	want[0].Input = nil
	require.Equal(t, want, got.Steps)
	require.False(t, got.More)
	require.Len(t, got.Listeners, 1)
	require.Equal(t, []string{"l1", "t1"}, []string{got.Listeners[0].ID, got.Listeners[0].Spec.Types()[0]})
	require.Equal(t, []explain.Child{{
		Key: "key of awaited", RunID: "awaited", Workflow: hello, Version: "1.0.0", Status: run.Queued,
		QueuedReason: run.QueuedStarting,
	}}, got.Children)

	got, err = waits.Pending(ctx, here, "r", page(1))
	require.NoError(t, err)
	require.Equal(t, want[:1], got.Steps)
	require.True(t, got.More)
	require.Empty(t, got.Listeners, "the step that waits for it is on the next page")
	require.Len(t, got.Children, 1)
	next := page(1)
	next.After = 2
	got, err = waits.Pending(ctx, here, "r", next)
	require.NoError(t, err)
	require.Equal(t, want[1:], got.Steps)
	require.Equal(t, want[:1], got.Around)
	require.False(t, got.More)
	require.Len(t, got.Listeners, 1)
	require.Empty(t, got.Children)

	got, err = waits.Pending(ctx, "elsewhere", "none", page(10))
	require.NoError(t, err)
	require.Empty(t, got)

	// Parts that have ended are no longer pending.
	ended := state("r", 2, run.Canceled)
	ended.State.EndsSteps = true
	apply(t, s, ended)
	require.NoError(t, s.Awaited().MarkNotified(ctx, "awaited"))
	got, err = waits.Pending(ctx, here, "r", page(10))
	require.NoError(t, err)
	require.Empty(t, got)
}

// testMissed reads which listeners and events of a type may concern each other.
func testMissed(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	waits := s.Waits()
	before := newEvent("before the run")
	give(t, s, before)
	insert(t, s, newRun("r", 1))
	insert(t, s, newRun("woken", 2))
	give(t, s, newEvent("after"))
	listen(t, s, listener("l1", "r", before.Type))
	give(t, s, newEvent("last"))
	listen(t, s, listener("l2", "woken"))
	listen(t, s, listener("l3", "woken", "another"))
	found, err := waits.Listening(ctx, here, before.Type, 10)
	require.NoError(t, err)
	const start = 1
	require.Len(t, found, 2)
	require.Equal(t, explain.Listening{
		Listener: event.Listener{ID: "l1", Project: here, RunID: "r", Since: 2, Spec: wants(before.Type)}, Workflow: hello,
		Version: "1.0.0", Start: start,
	}, found[1])
	require.Equal(t, "l2", found[0].ID, "it takes every event, and began to wait last")
	found, err = waits.Listening(ctx, here, event.RunFailed, 10)
	require.NoError(t, err)
	require.Empty(t, found, "only a listener that names the type takes an event that reports a failure")
	found, err = waits.Listening(ctx, here, before.Type, 1)
	require.NoError(t, err)
	require.Len(t, found, 1)

	o := fence(t, s, "host-1")
	routings := []event.Routing{routing(1, event.Unmatched), routing(2, event.Unmatched), routing(3, event.Routed)}
	routings[2].Deliveries = []event.Delivery{{
		ID: "d", Project: here, Position: 3, Kind: event.Wake, RunID: "woken", Listener: "l2", Positions: []int64{3},
		Status: event.DeliveryPending,
	}}
	route(t, s, o, routings...)
	positions := func(runID string, types ...string) (list []int64) {
		events, from, err := waits.NotTaken(ctx, here, runID, types, 10)
		require.NoError(t, err)
		require.EqualValues(t, start, from)
		for _, e := range events {
			list = append(list, e.Position)
		}
		return list
	}
	require.Equal(t, []int64{3, 2}, positions("r", before.Type))
	require.Equal(t, []int64{3, 2}, positions("r"))
	require.Equal(t, []int64{2}, positions("woken", "another", before.Type))
	require.Empty(t, positions("r", "another"))
}
