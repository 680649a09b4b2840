package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// deleteAll deletes all pages of a kind and returns the number of deleted rows.
func deleteAll(t testing.TB, s Store, kind retention.Kind, cut retention.Cut, limit int) map[string]int64 {
	t.Helper()
	if cut.Project == "" {
		cut.Project = here
	}
	deleted := map[string]int64{}
	for after := ""; ; {
		page, err := s.DeletePage(t.Context(), kind, cut, after, limit)
		require.NoError(t, err)
		for what, n := range page.Deleted {
			if n > 0 {
				deleted[what] += n
			}
		}
		if page.Next == "" {
			return deleted
		}
		after = page.Next
	}
}

// finished creates a run with one step that ended at the n-th time.
func finished(t testing.TB, s Store, r run.Run, n int) {
	t.Helper()
	insert(t, s, r)
	u := state(r.ID, int64(n), run.Completed)
	u.Steps = []run.Step{{Number: 1, Path: "/do/0", Pointer: "/do/0", Task: "t", Kind: "set", Status: "completed",
		Position: 1}}
	apply(t, s, u)
}

// kept returns the IDs of all runs, the oldest first.
func kept(t testing.TB, s Store) (ids []string) {
	t.Helper()
	list, err := s.ListRuns(t.Context(), run.Filter{Project: here, OldestFirst: true, Limit: wholePage})
	require.NoError(t, err)
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

func testDeleteRuns(t *testing.T, open Opener) {
	s := open(t)
	createProject(t, s, "other")
	related := func(id string, n int, change func(*run.Run)) run.Run {
		r := newRun(id, n)
		change(&r)
		return r
	}
	for n := range 7 {
		finished(t, s, newRun(fmt.Sprint("old-", n), n), 10+n)
	}
	apply(t, s, run.Update{RunID: "old-0", Position: 99, Summary: &run.StepSummary{
		From: 3, To: 5, Position: 99, Tasks: []run.TaskSummary{{Pointer: "/do/0/a", Task: "a", Kind: "set", Count: 3}},
	}})
	apply(t, s, run.Update{RunID: "old-1", Position: 99, Logs: []run.AttemptLog{{Step: 1, Attempt: 1}}})
	finished(t, s, newRun("new", 8), 500)
	insert(t, s, newRun("open", 1))
	finished(t, s, related("foreign", 1, func(r *run.Run) { r.Project = "other" }), 10)
	finished(t, s, related("replay", 9, func(r *run.Run) { r.ReplayOf = "old-0" }), 500)
	finished(t, s, related("child", 2, func(r *run.Run) {
		r.Parent = run.Parent{RunID: "open", Path: "/do/0", Depth: 1}
	}), 11)
	finished(t, s, newRun("parent", 3), 12)
	insert(t, s, related("open child", 4, func(r *run.Run) {
		r.Parent = run.Parent{RunID: "parent", Path: "/do/0", Depth: 1}
	}))
	finished(t, s, newRun("wanted", 5), 12)
	startBatch(t, s, newBatch("b1", 1), wholePage, "wanted")
	o := fence(t, s, "host-1")
	finished(t, s, newRun("delivered", 6), 12)
	give(t, s, newEvent("a"))
	route(t, s, o, routing(1, event.Routed, wakeOf(1, "delivered")))

	cut := retention.Cut{Before: at(400), EndedBefore: at(450)}
	deleted := deleteAll(t, s, retention.Runs, cut, 3)
	require.Equal(t, map[string]int64{"runs": 7, "run_terms": 21, "steps": 7, "attempt_logs": 1, "step_summaries": 1,
		"task_summaries": 1},
		deleted)
	require.Equal(t, []string{"child", "open", "parent", "open child", "wanted", "delivered", "new", "replay"},
		sortedAs(kept(t, s), []string{"child", "open", "parent", "open child", "wanted", "delivered", "new", "replay"}),
		"open ones, their relatives, and those that something is still to be done to")
	require.Empty(t, steps(t, s, "child")[1:])
	_, err := s.GetRun(t.Context(), here, "old-0")
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, "old-0")
	require.Equal(t, "old-0", get(t, s, "replay").ReplayOf, "the link stays as it was")
	require.Empty(t, apply(t, s, state("old-0", 99, run.Failed)), "a late update finds no row")
	require.Empty(t, deleteAll(t, s, retention.Runs, cut, 3))
	_, err = s.GetRun(t.Context(), "other", "foreign")
	require.NoError(t, err)

	// A run that has ended is deleted with the last run that needed it.
	apply(t, s, state("open", 20, run.Completed), state("open child", 21, run.Completed))
	writeResults(t, s, o, outcome(deliveryIDs(due(t, s, o, 1))[0], inbox.Done, 0))
	held := claim(t, s, 0, 1)
	held[0].Status = batch.Refused
	writeItemResults(t, s, 30, held...)
	require.EqualValues(t, 6, deleteAll(t, s, retention.Runs, cut, wholePage)["runs"])
	require.Equal(t, []string{"new", "replay"}, kept(t, s))
}

// sortedAs returns the list in the order of another one, if both have the same elements.
func sortedAs(list, like []string) []string {
	have := map[string]bool{}
	for _, v := range list {
		have[v] = true
	}
	var out []string
	for _, v := range like {
		if have[v] {
			out = append(out, v)
			delete(have, v)
		}
	}
	for v := range have {
		out = append(out, v)
	}
	return out
}

func testDeleteRunsByCount(t *testing.T, open Opener) {
	s := open(t)
	for n := range 10 {
		finished(t, s, newRun(fmt.Sprint("r", n), n), 10+n)
	}
	insert(t, s, newRun("open", 2))
	cut := retention.Cut{Keep: 4, EndedBefore: at(13)}
	require.EqualValues(t, 3, deleteAll(t, s, retention.Runs, cut, 2)["runs"], "the others have ended only just")
	cut.EndedBefore = at(400)
	require.EqualValues(t, 3, deleteAll(t, s, retention.Runs, cut, 2)["runs"])
	require.Equal(t, []string{"open", "r6", "r7", "r8", "r9"}, kept(t, s), "the newest, and the open one")
	require.Empty(t, deleteAll(t, s, retention.Runs, cut, 2))
	cut.Before = at(18)
	require.EqualValues(t, 2, deleteAll(t, s, retention.Runs, cut, 2)["runs"])
	require.Equal(t, []string{"open", "r8", "r9"}, kept(t, s))
	require.Empty(t, deleteAll(t, s, retention.Runs, retention.Cut{EndedBefore: at(400)}, 2))
}

func testDeleteEvents(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	future := retention.Cut{Before: time.Now().Add(time.Hour)}
	require.Empty(t, deleteAll(t, s, retention.Events, future, 10))
	o := fence(t, s, "host-1")
	publish(t, s, triggered("a/all", "1",
		`{"mode":"all","filters":[{"with":{"type":{"literal":"one"}}},{"with":{"type":{"literal":"two"}}}]}`))
	insert(t, s, newRun("open", 1))
	finished(t, s, newRun("ended", 1), 10)
	give(t, s, newEvents("e", 10)...)
	several := startOf(8, "a/several")
	several.Positions = []int64{5, 8}
	partial := routing(4, event.Routed)
	partial.Partials = []event.Partial{{Project: here, Workflow: "a/all", Key: "k", Positions: []int64{4, 0}}}
	route(t, s, o, routing(1, event.Unmatched), routing(2, event.Routed, wakeOf(2, "open")),
		routing(3, event.Routed, wakeOf(3, "ended")), partial,
		routing(5, event.Unmatched), routing(6, event.Unmatched), routing(7, event.Routed, startOf(7, "a/pending")),
		routing(8, event.Routed, several))
	for _, d := range due(t, s, o, 10) {
		if d.ID == startOf(7, "a/pending").ID || d.ID == several.ID {
			continue
		}
		writeResults(t, s, o, outcome(d.ID, inbox.Done, 0))
	}
	there := func() (positions []int64) {
		list, err := s.Events().ListEvents(ctx, event.ListFilter{Project: here, Limit: wholePage})
		require.NoError(t, err)
		for _, e := range list {
			positions = append(positions, e.Position)
		}
		return positions
	}
	require.Empty(t, deleteAll(t, s, retention.Events, retention.Cut{Before: time.Now().Add(-time.Hour)}, 10))
	require.Equal(t, map[string]int64{"events": 1, "routings": 1},
		deleteAll(t, s, retention.Events, retention.Cut{Keep: 8}, 10), "the newest eight stay")
	deleted := deleteAll(t, s, retention.Events, future, 2)
	require.EqualValues(t, 2, deleted["events"])
	require.EqualValues(t, 1, deleted["deliveries"])
	require.Equal(t, []int64{10, 9, 8, 7, 5, 4, 2}, there(),
		"those that are not routed, and those with a set that is open, a delivery that is, or one to a run that is")
	require.Equal(t, event.Routed, getEvent(t, s, 4).Status)
	require.Equal(t, event.Unmatched, getEvent(t, s, 5).Status, "the outcome of the remaining events is known")
	_, err := s.Events().ListDeliveries(ctx, here, 3)
	requireError(t, err, apperror.NotFound, apperror.EventNotFound, "3")

	apply(t, s, state("open", 20, run.Completed))
	writeResults(t, s, o, outcome(several.ID, inbox.Done, 0), outcome(startOf(7, "a/pending").ID, inbox.Dead, 0))
	require.EqualValues(t, 4, deleteAll(t, s, retention.Events, future, 100)["events"], "dead deliveries are deleted, too")
	require.Equal(t, []int64{10, 9, 4}, there())
	require.Equal(t, int64(11), give(t, s, newEvent("e0")), "positions continue, and IDs are available again")
	route(t, s, o, routing(9, event.Unmatched), routing(10, event.Unmatched))
	require.EqualValues(t, 2, deleteAll(t, s, retention.Events, future, 100)["events"])
	require.Equal(t, []int64{11, 4}, there())
}

func testDeleteHistory(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	write := func(project string, n int) {
		e := entry("any", project, "any")
		e.Time = at(n)
		require.NoError(t, s.WriteAudit(ctx, e))
	}
	for n := range 10 {
		write(here, n)
		write("", n)
	}
	entries := func(project string) int {
		list, err := s.ListAudit(ctx, audit.Filter{Action: "any", Limit: wholePage})
		require.NoError(t, err)
		n := 0
		for _, e := range list {
			if e.Project == project {
				n++
			}
		}
		return n
	}
	require.Equal(t, map[string]int64{"audit": 4}, deleteAll(t, s, retention.Audit, retention.Cut{Before: at(4)}, 3))
	require.Equal(t, map[string]int64{"audit": 1}, deleteAll(t, s, retention.Audit, retention.Cut{Keep: 5}, 3))
	for n := range 3 {
		told := entry(audit.RetentionDelete, here, here)
		told.Time = at(10 + n)
		require.NoError(t, s.WriteAudit(ctx, told))
	}
	require.Empty(t, deleteAll(t, s, retention.Audit, retention.Cut{Keep: 5}, 3),
		"entries of deletions do not count towards the limit")
	require.Equal(t, 5, entries(here))
	require.Equal(t, 10, entries(""))
	page, err := s.DeletePage(ctx, retention.Audit, retention.Cut{Before: at(400)}, "", 100)
	require.NoError(t, err)
	require.EqualValues(t, 10, page.Deleted["audit"])
	require.Equal(t, 5, entries(here))

	name := inbox.Name{Project: here, TaskQueue: "queue"}
	for epoch := int64(1); epoch <= 6; epoch++ {
		c := dispatchtype.OwnerChange{
			Name: name, To: inbox.Owner{Epoch: epoch, Holder: "h"}, Outcome: "takeover", RunID: fmt.Sprint(epoch),
			At: at(int(epoch))}
		require.NoError(t, s.Events().RecordOwner(ctx, c, newEvent(fmt.Sprint(epoch)),
			entry(audit.DispatcherChangeOwner, here, "d")))
	}
	owners := func() (epochs []int64) {
		list, err := s.Events().OwnerHistory(ctx, name, wholePage)
		require.NoError(t, err)
		for _, c := range list {
			epochs = append(epochs, c.To.Epoch)
		}
		return epochs
	}
	require.Equal(t, map[string]int64{"owner_changes": 2},
		deleteAll(t, s, retention.Owners, retention.Cut{Before: at(3)}, 10))
	require.Equal(t, map[string]int64{"owner_changes": 1}, deleteAll(t, s, retention.Owners, retention.Cut{Keep: 3}, 10))
	require.Equal(t, []int64{6, 5, 4}, owners())
	deleteAll(t, s, retention.Owners, retention.Cut{Before: at(400)}, 10)
	require.Equal(t, []int64{6}, owners(), "the last one stays")

	for n := range 5 {
		b := startBatch(t, s, newBatch(fmt.Sprint("b", n), n), wholePage, "r1", "r2", "r3")
		if n == 1 {
			continue // not finished yet
		}
		list, _, err := s.Batches().ClaimItems(ctx, b.ID, 0, 10)
		require.NoError(t, err)
		for i := range list {
			list[i].Status = batch.Succeeded
		}
		require.NoError(t, s.Batches().WriteItems(ctx, b.ID, list, at(n)))
	}
	require.Equal(t, map[string]int64{"batches": 1, "batch_items": 3},
		deleteAll(t, s, retention.Batches, retention.Cut{Before: at(2)}, 1))
	require.Equal(t, map[string]int64{"batches": 1, "batch_items": 3},
		deleteAll(t, s, retention.Batches, retention.Cut{Keep: 2}, 10))
	list, err := s.Batches().ListBatches(ctx, batch.ListFilter{Project: here, Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, "b1", list[2].ID)
	_, err = s.DeletePage(ctx, retention.Runs, retention.Cut{}, "odd", 1)
	require.Error(t, err)
}
