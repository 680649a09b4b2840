package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/retention"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// working is the ID of the batch that is processed.
const working = "b1"

// wholePage is more than the number of runs that any test selects.
const wholePage = 1000

func newBatch(id string, n int) batch.Batch {
	return batch.Batch{
		ID: id, Project: here, Action: batch.Cancel, Status: batch.Running, Reason: "stale", Rate: 12.5,
		RequestID: "request-" + id,
		Actor:     auth.Actor{Kind: auth.KindToken, Name: "ada"}, Fingerprint: "f", CreatedAt: at(n),
	}
}

func startBatch(t testing.TB, s Store, b batch.Batch, page int, ids ...string) batch.Batch {
	t.Helper()
	stored, made, err := s.Batches().StartBatch(t.Context(), b, ids, page, entry(audit.BatchStart, b.Project, b.ID))
	require.NoError(t, err)
	require.True(t, made)
	return stored
}

func getBatch(t testing.TB, s Store, id string) batch.Batch {
	t.Helper()
	b, err := s.Batches().GetBatch(t.Context(), here, id)
	require.NoError(t, err)
	return b
}

func items(t testing.TB, s Store, status batch.ItemStatus) []batch.Item {
	t.Helper()
	list, err := s.Batches().ListBatchItems(t.Context(),
		batch.ItemFilter{Project: here, Batch: working, Status: status, Limit: wholePage})
	require.NoError(t, err)
	return list
}

func runsOf(list []batch.Item) (ids []string) {
	for _, i := range list {
		ids = append(ids, i.RunID)
	}
	return ids
}

func claim(t testing.TB, s Store, after int64, limit int) []batch.Item {
	t.Helper()
	list, active, err := s.Batches().ClaimItems(t.Context(), working, after, limit)
	require.NoError(t, err)
	require.True(t, active)
	return list
}

func writeItemResults(t testing.TB, s Store, n int, list ...batch.Item) {
	t.Helper()
	require.NoError(t, s.Batches().WriteItems(t.Context(), working, list, at(n)))
}

func testBatches(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	b := newBatch("b1", 1)
	stored := startBatch(t, s, b, wholePage, "r3", "r1", "r2", "r4")
	want := b
	want.Total = 4
	require.Equal(t, want, stored)
	require.Equal(t, want, getBatch(t, s, "b1"))
	require.EqualValues(t, 4, stored.Pending())
	require.Equal(t, []string{"r3", "r1", "r2", "r4"}, runsOf(items(t, s, "")), "in the order given")

	again, made, err := s.Batches().StartBatch(ctx, func() batch.Batch {
		b := newBatch("b2", 2)
		b.RequestID = "request-b1"
		return b
	}(), []string{"r9"}, wholePage,
		entry(audit.BatchStart, here, "b2"))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, want, again)
	require.Empty(t, audited(t, s, "b2"))
	require.Len(t, audited(t, s, "b1"), 1)

	first := claim(t, s, 0, 2)
	require.Equal(t, []batch.Item{
		{Number: 1, RunID: "r3", Status: batch.Pending}, {Number: 2, RunID: "r1", Status: batch.Pending}}, first)
	require.True(t, claim(t, s, 0, 1)[0].Begun, "the next claim shows that it was claimed before")
	require.Equal(t, "r2", claim(t, s, 2, 1)[0].RunID)
	first[0].Status = batch.Succeeded
	first[1].Status, first[1].Error = batch.Failed, "odd \x00 text"
	writeItemResults(t, s, 5, first...)
	writeItemResults(t, s, 6, first...)
	got := getBatch(t, s, "b1")
	require.Equal(t, []int64{4, 1, 0, 1, 2}, []int64{got.Total, got.Succeeded, got.Refused, got.Failed, got.Pending()},
		"each counts once")
	require.Equal(t, batch.Running, got.Status)
	require.Equal(t, []batch.Item{{Number: 1, RunID: "r3", Status: batch.Succeeded, EndedAt: at(5), Begun: true}},
		items(t, s, batch.Succeeded))
	require.Equal(t, "odd \uFFFD text", items(t, s, batch.Failed)[0].Error)

	kept, err := s.Batches().SetWaitReason(ctx, "b1", "", "temporal is away")
	require.NoError(t, err)
	require.Equal(t, "temporal is away", kept)
	require.Equal(t, "temporal is away", getBatch(t, s, "b1").Waiting)
	rest := claim(t, s, 0, 10)
	require.Equal(t, []string{"r2", "r4"}, runsOf(rest))
	rest[0].Status, rest[1].Status = batch.Refused, batch.Succeeded
	writeItemResults(t, s, 7, rest...)
	got = getBatch(t, s, "b1")
	require.Equal(t, batch.Completed, got.Status)
	require.Equal(t, at(7), got.EndedAt)
	require.Empty(t, got.Waiting)
	_, active, err := s.Batches().ClaimItems(ctx, "b1", 0, 10)
	require.NoError(t, err)
	require.False(t, active)
	_, err = s.Batches().PauseBatch(ctx, here, "b1", true, entry(audit.BatchPause, here, "b1"))
	requireError(t, err, apperror.Refused, apperror.BatchEnded, "b1")

	// Failed items are retried, and no others.
	got, err = s.Batches().RetryBatch(ctx, here, "b1", entry(audit.BatchRetry, here, "b1"))
	require.NoError(t, err)
	require.Equal(t, batch.Running, got.Status)
	require.Equal(t, []int64{4, 2, 1, 0, 1}, []int64{got.Total, got.Succeeded, got.Refused, got.Failed, got.Pending()})
	retried := claim(t, s, 0, 10)
	require.Equal(t, []batch.Item{{Number: 2, RunID: "r1", Status: batch.Pending, Begun: true}}, retried)
	retried[0].Status = batch.Succeeded
	writeItemResults(t, s, 8, retried...)
	require.Equal(t, at(8), getBatch(t, s, "b1").EndedAt)
	_, err = s.Batches().RetryBatch(ctx, here, "b1", entry(audit.BatchRetry, here, "b1"))
	requireError(t, err, apperror.Refused, apperror.BatchNothingFailed, "b1")
	require.Len(t, audited(t, s, "b1"), 2)
}

// testBatchRetryOfRemainingItems retries batches of which retention has deleted some items: the batch must not wait for
// those.
func testBatchRetryOfRemainingItems(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	const n = 12
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprint("r", i))
	}
	// Of the second batch, only items that succeeded will be left.
	for id, end := range map[string]struct{ ended, failed int }{working: {5, n}, "b2": {3, 10}} {
		startBatch(t, s, newBatch(id, 1), wholePage, ids...)
		list, _, err := s.Batches().ClaimItems(ctx, id, 0, n)
		require.NoError(t, err)
		for i := range list {
			list[i].Status = batch.Succeeded
			if i < end.failed {
				list[i].Status = batch.Failed
			}
		}
		require.NoError(t, s.Batches().WriteItems(ctx, id, list, at(end.ended)))
		page, err := s.DeletePage(ctx, retention.Batches, retention.Cut{Project: here, Before: at(end.ended + 1)}, "", 1)
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"batch_items": 10}, page.Deleted)
	}
	_, err := s.Batches().RetryBatch(ctx, here, "b2", entry(audit.BatchRetry, here, "b2"))
	requireError(t, err, apperror.Refused, apperror.BatchNothingFailed, "b2")
	require.Equal(t, batch.Completed, getBatch(t, s, "b2").Status)

	b, err := s.Batches().RetryBatch(ctx, here, working, entry(audit.BatchRetry, here, working))
	require.NoError(t, err)
	require.EqualValues(t, 2, b.Pending())
	left := claim(t, s, 0, n)
	require.Len(t, left, 2)
	for i := range left {
		left[i].Status = batch.Succeeded
	}
	writeItemResults(t, s, 8, left...)
	require.Equal(t, batch.Completed, getBatch(t, s, working).Status, "it ends")
}

func testBatchPause(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	pause := func(paused bool) batch.Batch {
		t.Helper()
		b, err := s.Batches().PauseBatch(ctx, here, "b1", paused, entry(audit.BatchPause, here, "b1"))
		require.NoError(t, err)
		return b
	}
	active := func() (ids []string) {
		t.Helper()
		list, err := s.Batches().ActiveBatches(ctx, 10)
		require.NoError(t, err)
		for _, b := range list {
			ids = append(ids, b.ID)
		}
		return ids
	}
	startBatch(t, s, newBatch("b1", 1), wholePage, "r1", "r2")
	startBatch(t, s, newBatch("b2", 2), wholePage, "r1")
	require.Equal(t, []string{"b1", "b2"}, active())
	held := claim(t, s, 0, 1)
	require.Equal(t, batch.Paused, pause(true).Status)
	require.Equal(t, batch.Paused, pause(true).Status)
	require.Len(t, audited(t, s, "b1"), 2, "the second pause changed nothing")
	require.Equal(t, []string{"b2"}, active())
	_, ok, err := s.Batches().ClaimItems(ctx, "b1", 0, 10)
	require.NoError(t, err)
	require.False(t, ok)
	held[0].Status = batch.Succeeded
	writeItemResults(t, s, 3, held...)
	require.EqualValues(t, 1, getBatch(t, s, "b1").Succeeded, "what was in flight counts")
	require.Equal(t, batch.Running, pause(false).Status)
	require.Equal(t, []string{"r2"}, runsOf(claim(t, s, 0, 10)))

	list, err := s.Batches().ListBatches(ctx, batch.ListFilter{Project: here, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, "b2", list[0].ID)
	list, err = s.Batches().ListBatches(ctx, batch.ListFilter{Project: here, Before: "b2", Limit: 5})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "b1", list[0].ID)
}

func testBatchSelection(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	createProject(t, s, "other")
	var all []string
	for n := range 25 {
		r := newRun(fmt.Sprintf("r%02d", n), n)
		insert(t, s, r)
		if n%5 == 0 {
			apply(t, s, state(r.ID, 1, run.Completed))
		} else {
			all = append(all, r.ID)
		}
	}
	foreign := newRun("x", 3)
	foreign.Project = "other"
	insert(t, s, foreign)
	filtered := func(id string, f run.Filter) batch.Batch {
		b := newBatch(id, 100)
		b.Filter = &f
		return b
	}
	queued := run.Filter{Statuses: []run.Status{run.Queued, run.Waiting}}
	states, err := s.Batches().RunStates(ctx, filtered("", queued), nil)
	require.NoError(t, err)
	require.Equal(t, []batch.StateCount{{
		State: control.State{Status: run.Queued, QueuedReason: run.QueuedStarting}, Count: 20, Sample: []string{"r01", "r24"},
	}}, states)
	states, err = s.Batches().RunStates(ctx, newBatch("", 1), []string{"r01", "r05", "x", "nothing"})
	require.NoError(t, err)
	require.ElementsMatch(t, []batch.StateCount{
		{State: control.State{Status: run.Queued, QueuedReason: run.QueuedStarting}, Count: 1, Sample: []string{"r01"}},
		{State: control.State{Status: run.Completed}, Count: 1, Sample: []string{"r05"}},
	}, states)
	for _, expected := range []int64{19, 21} {
		b := filtered("b0", queued)
		b.Expected = &expected
		_, _, err = s.Batches().StartBatch(ctx, b, nil, 8, entry(audit.BatchStart, here, "b0"))
		require.True(t, apperror.Is(err, apperror.BatchTotalChanged), "%v", err)
	}
	_, err = s.Batches().GetBatch(ctx, here, "b0")
	require.True(t, apperror.Is(err, apperror.BatchNotFound))

	// With pages, no item is processed before all are selected.
	exact := filtered("b1", queued)
	exact.Expected = new(int64(20))
	b := startBatch(t, s, exact, 8)
	require.Equal(t, batch.Selecting, b.Status)
	require.EqualValues(t, 8, b.Total)
	require.Equal(t, queued, *b.Filter)
	_, active, err := s.Batches().ClaimItems(ctx, "b1", 0, 10)
	require.NoError(t, err)
	require.False(t, active)
	insert(t, s, newRun("late", 101))
	for _, want := range []bool{true, false, false} {
		more, err := s.Batches().SelectMore(ctx, "b1", 8)
		require.NoError(t, err)
		require.Equal(t, want, more)
	}
	b = getBatch(t, s, "b1")
	require.Equal(t, batch.Running, b.Status)
	require.EqualValues(t, 20, b.Total)
	require.Equal(t, all, runsOf(items(t, s, "")), "the oldest first, and none that came later")

	require.EqualValues(t, 25, startBatch(t, s, filtered("b2", run.Filter{}), wholePage).Total)
	require.EqualValues(t, 4,
		startBatch(t, s, filtered("b3", run.Filter{Workflow: hello, Version: "1.0.0", Since: at(1), Until: at(5)}),
			wholePage).Total)
	require.EqualValues(t, 25, startBatch(t, s, filtered("b6", run.Filter{Trigger: run.TriggerAPI}), wholePage).Total)
	require.Zero(t, startBatch(t, s, filtered("b7", run.Filter{Stuck: []string{run.AnyCode}}), wholePage).Total,
		"none is stuck")
	none := startBatch(t, s, filtered("b4", run.Filter{Workflow: "no/such"}), wholePage)
	require.Equal(t, batch.Completed, none.Status)
	require.Zero(t, none.Total)

	// A full page may have been the last one.
	require.Equal(t, batch.Selecting, startBatch(t, s, filtered("b5", queued), 20).Status)
	more, err := s.Batches().SelectMore(ctx, "b5", 20)
	require.NoError(t, err)
	require.False(t, more)
	require.EqualValues(t, 20, getBatch(t, s, "b5").Total)
}

func testStopWorkflow(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	stop := func(b batch.Batch) (batch.Stopped, error) {
		pause := entry(audit.WorkflowPause, here, b.Filter.Workflow)
		return s.Batches().StopWorkflow(ctx, b, wholePage, pause, entry(audit.BatchStart, here, b.ID))
	}
	stopOf := func(id string) batch.Batch {
		b := newBatch(id, 10)
		b.Filter = &run.Filter{Workflow: hello, Statuses: []run.Status{run.Queued, run.Running, run.Waiting}}
		return b
	}
	_, err := stop(stopOf("b0"))
	require.True(t, apperror.Is(err, apperror.WorkflowNotFound), "%v", err)
	_, err = s.SaveDraft(ctx, draft(hello, "x", 0), entry(audit.WorkflowSaveDraft, here, hello))
	require.NoError(t, err)
	_, err = stop(stopOf("b0"))
	requireError(t, err, apperror.Refused, apperror.WorkflowNotPublished, hello)
	publish(t, s, version(hello, "1", "sha256:a", 1))

	insert(t, s, newRun("r1", 1))
	insert(t, s, newRun("r2", 2))
	insert(t, s, newRun("ended", 3))
	apply(t, s, state("ended", 1, run.Completed), state("r2", 1, run.Running))
	insert(t, s, newRun("late", 50)) // another server stored it after this call began, or its clock is ahead
	other := newRun("other", 4)
	other.Workflow = "examples/other"
	insert(t, s, other)

	few := stopOf("b0")
	few.Expected = new(int64(2))
	_, err = stop(few)
	require.True(t, apperror.Is(err, apperror.BatchTotalChanged), "%v", err)
	w, err := s.GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, workflow.StatePublished, w.State, "a refused stop changes nothing")
	require.Len(t, audited(t, s, hello), 2)

	// A request ID of another batch: neither a pause nor a batch.
	startBatch(t, s, newBatch("b9", 1), 1, "r1")
	reused := stopOf("b0")
	reused.RequestID, reused.Fingerprint = "request-b9", "stop"
	_, err = stop(reused)
	require.True(t, apperror.Is(err, apperror.RequestIDReused), "%v", err)
	w, err = s.GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, workflow.StatePublished, w.State)

	enough := stopOf("b1")
	enough.Expected = new(int64(4))
	first, err := stop(enough)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true}, []bool{first.Created, first.Paused})
	require.Equal(t, []string{workflow.StatePaused, "stale"}, []string{first.Workflow.State, first.Workflow.PauseReason})
	require.Equal(t, map[run.Status]int64{run.Queued: 2, run.Running: 1}, first.Open)
	require.EqualValues(t, 3, first.Batch.Total)
	require.Equal(t, []string{"r1", "r2", "late"}, runsOf(items(t, s, "")))
	require.Len(t, audited(t, s, hello), 3)
	require.Len(t, audited(t, s, "b1"), 1)

	// The same request does not pause again.
	_, err = s.SetPaused(ctx, here, hello, false, "", entry(audit.WorkflowUnpause, here, hello))
	require.NoError(t, err)
	again, err := stop(enough)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false}, []bool{again.Created, again.Paused})
	require.Equal(t, first.Batch, again.Batch)
	require.Equal(t, workflow.StatePublished, again.Workflow.State)

	// A workflow that is paused already keeps its reason.
	_, err = s.SetPaused(ctx, here, hello, true, "before", entry(audit.WorkflowPause, here, hello))
	require.NoError(t, err)
	before := len(audited(t, s, hello))
	second, err := stop(stopOf("b2"))
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, []bool{second.Created, second.Paused})
	require.Equal(t, "before", second.Workflow.PauseReason)
	require.Len(t, audited(t, s, hello), before)
}

// testBatchNotTaken counts the runs that Temporal has for a worker, or is about to get.
func testBatchNotTaken(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for i, reason := range []string{
		run.QueuedStarting, run.QueuedStarting, run.QueuedStarting, run.QueuedEngine, run.QueuedAdmission} {
		r := newRun(fmt.Sprintf("r%d", i+1), i)
		r.QueuedReason = reason
		insert(t, s, r)
	}
	untaken := func(ids ...string) int64 {
		n, err := s.Batches().CountNotTaken(ctx, ids)
		require.NoError(t, err)
		return n
	}
	all := []string{"r1", "r2", "r3", "r4", "r5", "none"}
	require.EqualValues(t, 3, untaken(all...),
		"what waits for Temporal or for admission is nothing that Temporal works on")
	require.EqualValues(t, 1, untaken("r1"))
	require.Zero(t, untaken())
	require.NoError(t, s.MarkHandedOver(ctx, "r1", "execution-1", at(9)))
	require.EqualValues(t, 3, untaken(all...))
	apply(t, s, state("r1", 3, run.Running), state("r2", 3, run.Completed))
	require.EqualValues(t, 1, untaken(all...))
}

func testBatchesNotFound(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	createProject(t, s, "other")
	startBatch(t, s, newBatch("b1", 1), wholePage, "r1")
	e := entry(audit.BatchPause, here, "b1")
	for _, project := range []string{"other", "no-such"} {
		reason, subject := apperror.BatchNotFound, "b1"
		if project == "no-such" {
			reason, subject = apperror.ProjectNotFound, project
		}
		_, err := s.Batches().GetBatch(ctx, project, "b1")
		requireError(t, err, apperror.NotFound, reason, subject)
		_, err = s.Batches().ListBatchItems(ctx, batch.ItemFilter{Project: project, Batch: "b1", Limit: 1})
		requireError(t, err, apperror.NotFound, reason, subject)
		_, err = s.Batches().PauseBatch(ctx, project, "b1", true, e)
		requireError(t, err, apperror.NotFound, reason, subject)
		_, err = s.Batches().RetryBatch(ctx, project, "b1", e)
		requireError(t, err, apperror.NotFound, reason, subject)
	}
	_, err := s.Batches().ListBatches(ctx, batch.ListFilter{Project: "no-such", Limit: 1})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "no-such")
	b := newBatch("b2", 1)
	b.Project = "no-such"
	_, _, err = s.Batches().StartBatch(ctx, b, []string{"r"}, wholePage, e)
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "no-such")
	_, _, err = s.Batches().ClaimItems(ctx, "b9", 0, 1)
	requireError(t, err, apperror.NotFound, apperror.BatchNotFound, "b9")
	require.Len(t, audited(t, s, "b1"), 1)
}

// testConcurrentBatchWorkers runs several workers on one batch, where only one is expected: every item still counts
// once.
func testConcurrentBatchWorkers(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	var ids []string
	for n := range 200 {
		ids = append(ids, fmt.Sprintf("r%03d", n))
	}
	startBatch(t, stores[0], newBatch("b1", 1), wholePage, ids...)
	var group sync.WaitGroup
	failed := make(chan error, 8)
	for w := range 4 {
		group.Go(func() {
			s := stores[w%2].Batches()
			for {
				list, active, err := s.ClaimItems(t.Context(), "b1", 0, 7)
				if err != nil {
					failed <- err
				}
				if err != nil || !active {
					return
				}
				for i := range list {
					list[i].Status = batch.Succeeded
				}
				if err := s.WriteItems(t.Context(), "b1", list, at(2)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	require.NoError(t, <-failed)
	b := getBatch(t, stores[0], "b1")
	require.Equal(t, batch.Completed, b.Status)
	require.EqualValues(t, 200, b.Succeeded)
}
