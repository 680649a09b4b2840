package storetest

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func testRelatedRuns(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 1))
	replay := newRun("r2", 2)
	replay.ReplayOf = "r1"
	require.Equal(t, "r1", insert(t, s, replay).ReplayOf)
	child := newRun("r3", 3)
	child.ReplayOf, child.Parent = "r1", run.Parent{RunID: "r2", Path: "/do/0/nested", Depth: 1}
	insert(t, s, child)

	require.Equal(t, []string{"r3", "r2"}, get(t, s, "r1").Replays, "the newest first")
	require.Equal(t, []string{"r3"}, get(t, s, "r2").Children)
	got := get(t, s, "r3")
	require.Equal(t, child.Parent, got.Parent)
	require.Equal(t, "r1", got.ReplayOf)
	require.Empty(t, got.Replays)
	require.Empty(t, got.Children)

	// A run that was never started leaves no row.
	_, err := s.RemoveUnstarted(t.Context(), "r3", entry(audit.RunStartRefused, here, "r3"))
	require.NoError(t, err)
	require.Equal(t, []string{"r2"}, get(t, s, "r1").Replays)
	require.Empty(t, get(t, s, "r2").Children)
}

func testFailedStep(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 1))
	caught := &run.Error{Type: "x", Status: 503, Title: "Unavailable", Detail: "first", Instance: "/do/0/try/call"}
	final := &run.Error{Type: "x", Status: 503, Title: "Unavailable", Detail: "second", Instance: "/do/0/try/call"}
	failed := func(number int64, path string, p *run.Error) run.Step {
		return run.Step{Number: number, Path: path, Pointer: "/p" + path, Task: "t" + path, Status: "failed", Error: p,
			Position: 2}
	}
	steps := []run.Step{failed(1, "/do", final), failed(2, "/do/0", final), failed(3, "/do/0/call", final),
		failed(4, "/do/1", caught)}
	steps[2].Attempts = []run.Attempt{{Number: 1, StartedAt: at(1)}, {Number: 2, StartedAt: at(2)}}
	apply(t, s, run.Update{RunID: "r1", Position: 2, Steps: steps})
	require.Nil(t, get(t, s, "r1").FailedStep, "the run has not failed")

	end := state("r1", 3, run.Failed)
	end.State.Error = final
	apply(t, s, end)
	require.Equal(t, &run.FailedStep{
		Number: 3, Pointer: "/p/do/0/call", Path: "/do/0/call", Task: "t/do/0/call", Attempts: 2}, get(t, s, "r1").FailedStep,
		"the innermost step with the error of the run")

	insert(t, s, newRun("r2", 1))
	apply(t, s, run.Update{RunID: "r2", Position: 2, Steps: []run.Step{failed(1, "/do/0", caught)}})
	end = state("r2", 3, run.Failed)
	end.State.Error = final
	apply(t, s, end)
	require.Nil(t, get(t, s, "r2").FailedStep, "no row has this error")
}

func testInsertRun(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	want := newRun("r1", 1)
	want.Sequence = 1
	require.Equal(t, want, insert(t, s, newRun("r1", 1)))
	require.Equal(t, want, get(t, s, "r1"))
	require.Len(t, audited(t, s, "r1"), 1)

	again := newRun("r2", 2)
	again.RequestID = want.RequestID
	stored, made, err := s.InsertRun(ctx, again, entry(audit.RunStart, here, "r2"))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, want, stored)
	require.Empty(t, audited(t, s, "r2"))

	// Another project has its own request IDs; runs without one never conflict.
	require.NoError(t, s.CreateProject(ctx, project.Project{Name: "other", CreatedAt: at(0)},
		entry(audit.ProjectCreate, "other", "other")))
	elsewhere := newRun("r3", 3)
	elsewhere.Project, elsewhere.RequestID = "other", want.RequestID
	insert(t, s, elsewhere)
	for _, id := range []string{"r4", "r5"} {
		r := newRun(id, 4)
		r.RequestID = ""
		require.Empty(t, insert(t, s, r).RequestID)
		require.Empty(t, get(t, s, id).RequestID)
	}

	warned := newRun("r7", 5)
	warned.Warnings = []run.Warning{
		{Code: run.WarningInputFormat, Detail: "input/mail is not of the format \"email\"", At: at(5)}}
	require.Equal(t, warned.Warnings, insert(t, s, warned).Warnings)
	require.Equal(t, warned.Warnings, get(t, s, "r7").Warnings)

	nowhere := newRun("r6", 6)
	nowhere.Project = "none"
	_, _, err = s.InsertRun(ctx, nowhere, entry(audit.RunStart, "none", "r6"))
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	// The same ID twice is an internal error, not an answer for a caller.
	twice := newRun("r1", 7)
	twice.RequestID = "new"
	_, made, err = s.InsertRun(ctx, twice, entry(audit.RunStart, here, "r1"))
	require.Error(t, err)
	require.False(t, made)
	_, isFault := apperror.From(err)
	require.False(t, isFault)
	require.Equal(t, want, get(t, s, "r1"))
}

func testInsertRunAtOnce(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	const rivals = 20
	var wg sync.WaitGroup
	got := make([]run.Run, rivals)
	made := make([]bool, rivals)
	errs := make([]error, rivals)
	for i := range rivals {
		wg.Go(func() {
			r := newRun(fmt.Sprintf("r%d", i), i)
			r.RequestID = "same"
			got[i], made[i], errs[i] = stores[i%2].InsertRun(t.Context(), r, entry(audit.RunStart, here, "same"))
		})
	}
	wg.Wait()
	count := 0
	for i := range rivals {
		require.NoError(t, errs[i])
		require.Equal(t, got[0], got[i])
		if made[i] {
			count++
		}
	}
	require.Equal(t, 1, count)
	list, err := stores[0].ListRuns(t.Context(), run.Filter{Project: here, Limit: 100})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Len(t, audited(t, stores[0], "same"), 1)
}

func testRemoveUnstarted(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	refused := entry(audit.RunStartRefused, here, "gone")
	insert(t, s, newRun("gone", 1))
	removed, err := s.RemoveUnstarted(ctx, "gone", refused)
	require.NoError(t, err)
	require.True(t, removed)
	_, err = s.GetRun(ctx, here, "gone")
	requireError(t, err, apperror.NotFound, apperror.RunNotFound, "gone")
	require.Equal(t, audit.RunStartRefused, audited(t, s, "gone")[0].Action)
	insert(t, s, newRun("gone", 2)) // Its ID and request ID are available again.

	insert(t, s, newRun("handed-over", 1))
	require.NoError(t, s.MarkHandedOver(ctx, "handed-over", "x", at(2)))
	insert(t, s, newRun("running", 1))
	apply(t, s, state("running", 1, run.Running))
	insert(t, s, newRun("told-of", 1))
	apply(t, s, run.Update{RunID: "told-of", Position: 1, Steps: []run.Step{{Number: 1, Status: "running", Position: 1}}})
	for _, id := range []string{"handed-over", "running", "told-of"} {
		removed, err := s.RemoveUnstarted(ctx, id, entry(audit.RunStartRefused, here, id))
		require.NoError(t, err, id)
		require.False(t, removed, id)
		get(t, s, id)
		require.Len(t, audited(t, s, id), 1, id)
	}
}

func testHandOver(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 1))
	require.NoError(t, s.MarkHandedOver(ctx, "r1", "execution-1", at(2)))
	want := newRun("r1", 1)
	want.QueuedReason, want.StatusAt, want.ExecutionID, want.Sequence = run.QueuedWorker, at(2), "execution-1", 2
	require.Equal(t, want, get(t, s, "r1"))
	require.NoError(t, s.MarkHandedOver(ctx, "r1", "execution-2", at(3)))
	require.Equal(t, want, get(t, s, "r1"))

	// With an eager start the first update may come before the run is marked as handed over.
	insert(t, s, newRun("r2", 1))
	apply(t, s, state("r2", 1, run.Completed))
	before := get(t, s, "r2")
	require.Empty(t, before.QueuedReason)
	require.NoError(t, s.MarkHandedOver(ctx, "r2", "execution-2", at(3)))
	require.Equal(t, before, get(t, s, "r2"))
}

func testCancel(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for _, status := range run.Statuses() {
		id := string(status)
		insert(t, s, newRun(id, 1))
		apply(t, s, state(id, 1, status))
		before := get(t, s, id)
		r, err := s.MarkCancelRequested(ctx, here, id, "enough", entry(audit.RunCancel, here, id))
		require.NoError(t, err)
		r.WrittenAt = time.Time{}
		require.Equal(t, get(t, s, id), r)
		// A canceled run may have been canceled by this very request, if its end was written first.
		if status.Terminal() && status != run.Canceled {
			require.Equal(t, before, r)
			require.Len(t, audited(t, s, id), 1)
			continue
		}
		want := before
		want.CancelRequested, want.CancelReason, want.Sequence = true, "enough", before.Sequence+1
		require.Equal(t, want, r)
		require.Len(t, audited(t, s, id), 2)
		r, err = s.MarkCancelRequested(ctx, here, id, "once more", entry(audit.RunCancel, here, id))
		require.NoError(t, err)
		r.WrittenAt = time.Time{}
		require.Equal(t, want, r)
		require.Len(t, audited(t, s, id), 2)
		// The flag is independent of the state: an update does not change it.
		apply(t, s, state(id, 9, run.Canceled))
		r = get(t, s, id)
		require.True(t, r.CancelRequested)
		require.Equal(t, run.Canceled, r.Status)
	}
}

func testFinishMissing(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	runError := &run.Error{Type: "about:blank", Status: 500, Title: "execution missing", Detail: "it's gone",
		Instance: "/"}
	for _, status := range run.Statuses() {
		id := string(status)
		insert(t, s, newRun(id, 1))
		u := state(id, 1, status)
		u.Steps = []run.Step{
			{Number: 1, Status: "completed", Position: 1, StartedAt: at(1), EndedAt: at(2)},
			{Number: 2, Status: "waiting", WaitingKind: "timer", WaitUntil: at(99), Position: 1, StartedAt: at(2)},
		}
		apply(t, s, u)
		before, beforeSteps := get(t, s, id), steps(t, s, id)
		finished, err := s.FinishMissing(ctx, id, run.Failed, runError, at(9), entry("run.finish", here, id))
		require.NoError(t, err)
		require.Equal(t, !status.Terminal(), finished)
		if status.Terminal() {
			require.Equal(t, before, get(t, s, id))
			require.Equal(t, beforeSteps, steps(t, s, id))
			require.Len(t, audited(t, s, id), 1)
			continue
		}
		want := before
		want.Status, want.QueuedReason, want.WaitingKind, want.Error = run.Failed, "", "", runError
		want.StatusAt, want.EndedAt, want.Sequence = at(9), at(9), before.Sequence+1
		require.Equal(t, want, get(t, s, id))
		after := steps(t, s, id)
		require.Equal(t, beforeSteps[0], after[0])
		require.Equal(t, run.Step{
			Number: 2, Status: "canceled", Position: 1, StartedAt: at(2), EndedAt: at(9), Sequence: want.Sequence,
		}, after[1])
		require.Len(t, audited(t, s, id), 2)
	}
}

func testRunsNotFound(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	require.NoError(t, s.CreateProject(ctx, project.Project{Name: "other", CreatedAt: at(0)},
		entry(audit.ProjectCreate, "other", "other")))
	insert(t, s, newRun("r1", 1))
	e := entry(audit.RunCancel, here, "none")
	for name, call := range map[string]func() error{
		"get":   func() error { _, err := s.GetRun(ctx, here, "none"); return err },
		"steps": func() error { _, err := s.ListSteps(ctx, here, "none", run.StepFilter{Limit: 1}); return err },
		"changed steps": func() error {
			_, err := s.ChangedSteps(ctx, "none", run.ChangedFilter{UpTo: 1, Limit: 1})
			return err
		},
		"remove":    func() error { _, err := s.RemoveUnstarted(ctx, "none", e); return err },
		"hand over": func() error { return s.MarkHandedOver(ctx, "none", "x", at(1)) },
		"cancel":    func() error { _, err := s.MarkCancelRequested(ctx, here, "none", "", e); return err },
		"finish":    func() error { _, err := s.FinishMissing(ctx, "none", run.Failed, nil, at(1), e); return err },
	} {
		t.Run(name, func(t *testing.T) { requireError(t, call(), apperror.NotFound, apperror.RunNotFound, "none") })
	}
	for name, call := range map[string]func(project string) error{
		"get":    func(p string) error { _, err := s.GetRun(ctx, p, "r1"); return err },
		"steps":  func(p string) error { _, err := s.ListSteps(ctx, p, "r1", run.StepFilter{Limit: 1}); return err },
		"cancel": func(p string) error { _, err := s.MarkCancelRequested(ctx, p, "r1", "", e); return err },
	} {
		t.Run(name+" in another project", func(t *testing.T) {
			requireError(t, call("other"), apperror.NotFound, apperror.RunNotFound, "r1")
			requireError(t, call("none"), apperror.NotFound, apperror.ProjectNotFound, "none")
		})
	}
	_, err := s.ListRuns(ctx, run.Filter{Project: "none", Limit: 1})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	require.Empty(t, apply(t, s, state("none", 1, run.Running)), "updates of unknown runs are ignored")
	require.False(t, get(t, s, "r1").CancelRequested)
	require.Empty(t, audited(t, s, "none"))
}

// testRunsPageUnderInserts lists while runs are inserted and changed: each run that existed at the start is listed
// exactly once.
func testRunsPageUnderInserts(t *testing.T, open Opener) {
	reader, writer := open(t), open(t)
	for _, oldest := range []bool{false, true} {
		prefix := fmt.Sprintf("%v", oldest)
		there := map[string]int{}
		for i := range 40 {
			id := fmt.Sprintf("%s-%02d", prefix, i)
			r := newRun(id, i/4)
			r.Workflow = "w/" + prefix
			insert(t, writer, r)
			there[id] = 0
		}
		f := run.Filter{Project: here, Workflow: "w/" + prefix, Limit: 7, OldestFirst: oldest}
		list := pages(t, reader, f, func(page int) {
			if page > 6 {
				return // An endless list is not guaranteed.
			}
			for i := range 3 {
				// Before, among and after the listed runs.
				r := newRun(fmt.Sprintf("%s-new-%d-%d", prefix, page, i), []int{-1, 5, 20}[i])
				r.Workflow = "w/" + prefix
				insert(t, writer, r)
			}
			apply(t, writer, state(fmt.Sprintf("%s-%02d", prefix, page), 1, run.Running))
		})
		seen := map[string]bool{}
		for _, r := range list {
			require.False(t, seen[r.ID], "%s twice", r.ID)
			seen[r.ID] = true
		}
		for id := range there {
			require.True(t, seen[id], "%s skipped", id)
		}
	}
}

func testSteps(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 1))
	insert(t, s, newRun("r10", 1))
	step := func(number, position int64) run.Step {
		return run.Step{Number: number, Path: fmt.Sprintf("/do/%d", number), Status: "running", Position: position}
	}
	page := func(f run.StepFilter) ([]run.Step, error) {
		found, err := s.ListSteps(t.Context(), "default", "r1", f)
		return found.Steps, err
	}
	numbers := func(list []run.Step, err error) []int64 {
		require.NoError(t, err)
		var got []int64
		for _, t := range list {
			got = append(got, t.Number)
		}
		return got
	}
	apply(t, s, run.Update{RunID: "r1", Position: 1, Steps: []run.Step{step(1, 1), step(2, 1), step(3, 1)}})
	first := get(t, s, "r1").Sequence
	apply(t, s, run.Update{RunID: "r10", Position: 1, Steps: []run.Step{step(7, 1)}})
	apply(t, s, run.Update{RunID: "r1", Position: 2, Steps: []run.Step{step(10, 2), step(2, 2)}})
	second := get(t, s, "r1").Sequence
	require.Equal(t, first+1, second)

	require.Equal(t, []int64{1, 2, 3, 10}, numbers(page(run.StepFilter{Limit: 100})))
	require.Equal(t, []int64{3, 10}, numbers(page(run.StepFilter{After: 2, Limit: 100})))
	require.Equal(t, []int64{2, 3}, numbers(page(run.StepFilter{After: 1, Limit: 2})))
	require.Empty(t, numbers(page(run.StepFilter{After: 10, Limit: 100})))

	cursor := func(sequence, number int64) run.StepCursor { return run.StepCursor{Sequence: sequence, Number: number} }
	require.Equal(t, []int64{1, 3, 2, 10},
		numbers(s.ChangedSteps(ctx, "r1", run.ChangedFilter{After: cursor(0, 0), UpTo: second, Limit: 100})))
	require.Equal(t, []int64{2, 10},
		numbers(s.ChangedSteps(ctx, "r1", run.ChangedFilter{After: cursor(first, math.MaxInt64), UpTo: second, Limit: 100})))
	require.Equal(t, []int64{3, 2},
		numbers(s.ChangedSteps(ctx, "r1", run.ChangedFilter{After: cursor(first, 1), UpTo: second, Limit: 2})))
	require.Equal(t, []int64{1, 3},
		numbers(s.ChangedSteps(ctx, "r1", run.ChangedFilter{After: cursor(0, 0), UpTo: first, Limit: 100})))
	require.Empty(t, numbers(
		s.ChangedSteps(ctx, "r1", run.ChangedFilter{After: cursor(second, 10), UpTo: second, Limit: 100})))

	whole := step(11, 3)
	whole.Input, whole.Output, whole.Attempts = []byte(`"in"`), []byte(`"out"`), []run.Attempt{{Number: 1}}
	apply(t, s, run.Update{RunID: "r1", Position: 3, Steps: []run.Step{whole}})
	changed, err := s.ChangedSteps(ctx, "r1", run.ChangedFilter{After: cursor(second, 10), UpTo: second + 1, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, `"in" "out" 1`,
		fmt.Sprintf("%s %s %d", changed[0].Input, changed[0].Output, len(changed[0].Attempts)))
	changed, err = s.ChangedSteps(ctx, "r1",
		run.ChangedFilter{After: cursor(second, 10), UpTo: second + 1, Limit: 1, Heads: true})
	require.NoError(t, err)
	require.Equal(t, "  1", fmt.Sprintf("%s %s %d", changed[0].Input, changed[0].Output, len(changed[0].Attempts)),
		"without input and output")
}
