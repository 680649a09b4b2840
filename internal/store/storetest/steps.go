package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func testStepFilters(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 1))
	paths := []string{
		"/do/0/loop", "/do/0/loop/for/0/do/0/get", "/do/0/loop/for/0/do/0/get/try/0/call",
		"/do/0/loop/for/0/do/0/get/retry/2/try/0/call",
		"/do/0/loop/for/0/do/0/get/catch/do/0/undo", "/do/0/loop/for/1/do/0/get", "/do/1/split",
		"/do/1/split/fork/branches/0/left", "/do/0/loop#2",
		"/do/0/loop#2/for/0/do/0/get", "/do/2/héllo", "/do/2/héllo/foreach/3/do/0/note",
	}
	var list []run.Step
	for i, path := range paths {
		list = append(list, run.Step{
			Number: int64(i + 1), Path: path, Pointer: path, Task: fmt.Sprintf("t%d", i+1), Kind: "set", Status: "completed",
			StartedAt: at(i), EndedAt: at(i + 2),
			Position: 1, Input: json.RawMessage(`{"n":1}`), Output: json.RawMessage(`"100%"`),
			Attempts: []run.Attempt{{Number: 3}},
		})
	}
	list[3].Status, list[3].Error = "failed", &run.Error{Type: "http://type", Title: "Stock is AWAY", Detail: "try_later"}
	list[5].Input = json.RawMessage(`{"who":"Ada"}`)
	list[6].Status, list[6].EndedAt, list[6].Output = "waiting", time.Time{}, nil
	apply(t, s, run.Update{RunID: "r1", Position: 1, Steps: list})
	numbers := func(f run.StepFilter) []int64 {
		t.Helper()
		f.Limit = cmp.Or(f.Limit, 100)
		page, err := s.ListSteps(ctx, here, "r1", f)
		require.NoError(t, err)
		return numbersOf(page.Steps)
	}
	for parent, want := range map[string][]int64{
		run.TopLevel: {1, 7, 9, 11}, "/do/0/loop": {2, 6}, "/do/0/loop/for/1": {6}, "/do/0/loop/for/0/do/0/get": {3, 4, 5},
		"/do/1/split": {8}, "/do/0/loop#2": {10},
		"/do/2/héllo": {12}, "/do/0": nil, "/do/0/loo": nil,
	} {
		require.Equal(t, want, numbers(run.StepFilter{ParentPath: parent}), parent)
	}
	for text, want := range map[string][]int64{
		"stock is away": {4}, "LATER": {4}, "try_": {4}, "http://type": nil, `"ADA"`: {6}, "t12": {12},
		"%": {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12}, "!": nil, "'": nil,
	} {
		require.Equal(t, want, numbers(run.StepFilter{Text: text}), text)
	}
	require.Equal(t, []int64{6}, numbers(run.StepFilter{Pointer: paths[5]}))
	require.Equal(t, []int64{4, 7}, numbers(run.StepFilter{Statuses: []string{"failed", "waiting"}}))
	require.Equal(t, []int64{7, 4}, numbers(run.StepFilter{Statuses: []string{"failed", "waiting"}, NewestFirst: true}))
	require.Equal(t, []int64{12, 11}, numbers(run.StepFilter{NewestFirst: true, Limit: 2}))
	require.Equal(t, []int64{10, 9}, numbers(run.StepFilter{NewestFirst: true, Limit: 2, After: 11}))
	page, err := s.ListSteps(ctx, here, "r1", run.StepFilter{Limit: 4, Basic: true})
	require.NoError(t, err)
	require.Equal(t, int64(4), page.Last)
	require.Equal(t, list[3].Error, page.Steps[3].Error)
	require.Equal(t, []any{json.RawMessage(nil), json.RawMessage(nil), []run.Attempt(nil)},
		[]any{page.Steps[0].Input, page.Steps[0].Output, page.Steps[0].Attempts})
	page, err = s.ListSteps(ctx, here, "r1", run.StepFilter{After: 8, Limit: 4})
	require.NoError(t, err)
	require.Zero(t, page.Last, "the last page")
}

// testCaughtSteps lists failed steps by whether a try caught their errors.
func testCaughtSteps(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 1))
	step := func(number int64, path, kind, status string) run.Step {
		return run.Step{Number: number, Path: path, Pointer: path, Kind: kind, Status: status, StartedAt: at(1),
			EndedAt: at(2), Position: 1}
	}
	apply(t, s, run.Update{RunID: "r1", Position: 1, Steps: []run.Step{
		step(1, "/do/0/a", "try", "completed"), step(2, "/do/0/a/try/0/call", "call", "failed"),
		step(3, "/do/0/a/retry/2/try/0/call", "call", "failed"),
		step(4, "/do/0/a/catch/do/0/note", "set", "completed"), step(5, "/do/1/b", "try", "running"),
		step(6, "/do/1/b/try/0/call", "call", "failed"),
		step(7, "/do/2/gone/try/0/call", "call", "failed"), step(8, "/do/0/ab/call", "call", "failed"),
	}})
	caught := func(f run.StepFilter) map[int64]*bool {
		page, err := s.ListSteps(ctx, here, "r1", f)
		require.NoError(t, err)
		found := map[int64]*bool{}
		for _, one := range page.Steps {
			found[one.Number] = one.Caught
		}
		return found
	}
	require.Equal(t, map[int64]*bool{
		1: nil, 2: new(true), 3: new(true), 4: nil, 5: nil, 6: new(false), 7: nil, 8: new(false)},
		caught(run.StepFilter{Limit: 100}))
	require.Equal(t, map[int64]*bool{2: new(true), 3: new(true)}, caught(run.StepFilter{Limit: 100, Caught: new(true)}))
	require.Equal(t, map[int64]*bool{6: new(false), 8: new(false)}, caught(run.StepFilter{Limit: 100, Caught: new(false)}))
	require.Empty(t, caught(run.StepFilter{Limit: 100, Caught: new(true), Statuses: []string{"completed"}}))
	require.Empty(t, caught(run.StepFilter{Limit: 100, Caught: new(true), Text: "nothing"}))
	page, err := s.ListSteps(ctx, here, "r1", run.StepFilter{Limit: 1, Caught: new(true), NewestFirst: true})
	require.NoError(t, err)
	require.Equal(t, int64(3), page.Last)
	require.Equal(t, map[int64]*bool{2: new(true)},
		caught(run.StepFilter{Limit: 1, Caught: new(true), NewestFirst: true, After: page.Last}))

	changed, err := s.ChangedSteps(ctx, "r1", run.ChangedFilter{UpTo: get(t, s, "r1").Sequence, Limit: 100})
	require.NoError(t, err)
	require.Equal(t, []*bool{new(true), new(false)}, []*bool{changed[1].Caught, changed[5].Caught})
	numbers, err := s.CaughtSteps(ctx, "r1", changed)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 3}, numbers)
	numbers, err = s.CaughtSteps(ctx, "r1", changed[1:])
	require.NoError(t, err)
	require.Empty(t, numbers, "no try has completed")
}

// testStepSearch searches a text in more steps than one page reads.
func testStepSearch(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 1))
	var list []run.Step
	for n := range int64(2*run.MaxScan + 10) {
		list = append(list, run.Step{
			Number: n + 1, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: "completed", Position: 1})
	}
	list[2*run.MaxScan].Task = "needle"
	apply(t, s, run.Update{RunID: "r1", Position: 1, Steps: list})
	for newest, last := range map[bool][]int64{false: {run.MaxScan, 2 * run.MaxScan, 0}, true: {run.MaxScan + 11, 11, 0}} {
		f := run.StepFilter{Text: "needle", Limit: 5, NewestFirst: newest}
		var found []int64
		for i, want := range last {
			page, err := s.ListSteps(t.Context(), here, "r1", f)
			require.NoError(t, err)
			require.Equal(t, want, page.Last)
			require.Equal(t, []int64{run.MaxScan, run.MaxScan, 10}[i], page.Searched)
			found = append(found, numbersOf(page.Steps)...)
			f.After = page.Last
		}
		require.Equal(t, []int64{2*run.MaxScan + 1}, found)
	}
}

func testStepTotals(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 0))
	step := func(number int64, task, status string, from, to int, attempts ...run.Attempt) run.Step {
		one := run.Step{Number: number, Path: "/do/" + task, Pointer: "/do/" + task, Task: task, Kind: "call", Status: status,
			StartedAt: at(from), Position: 1, Attempts: attempts}
		if to > 0 {
			one.EndedAt = at(to)
		}
		return one
	}
	apply(t, s, run.Update{RunID: "r1", Position: 1, Steps: []run.Step{
		step(1, "b", "completed", 1, 3, run.Attempt{Number: 1}),
		step(2, "a", "failed", 3, 9, run.Attempt{Number: 6}, run.Attempt{Number: 7}),
		step(3, "a", "completed", 4, 5, run.Attempt{Number: 1}), step(4, "a", "failed", 5, 6), step(5, "a", "running", 8, 0),
	}})
	totals := func(id string) []run.TaskTotals {
		list, err := s.SumSteps(t.Context(), here, id)
		require.NoError(t, err)
		return list
	}
	require.Equal(t, []run.TaskTotals{
		{Pointer: "/do/b", Task: "b", Kind: "call", Statuses: map[string]int64{"completed": 1}, FirstStart: at(1),
			LastEnd: at(3), Attempts: 1, Total: 2 * time.Second, Longest: 2 * time.Second},
		{Pointer: "/do/a", Task: "a", Kind: "call", Statuses: map[string]int64{"completed": 1, "failed": 2, "running": 1},
			FirstStart: at(3), LastEnd: at(9), Attempts: 8,
			Total: 8 * time.Second, Longest: 6 * time.Second, FirstFailed: 2},
	}, totals("r1"))

	insert(t, s, newRun("r2", 0))
	require.Empty(t, totals("r2"))
	l := newLongRun("r2")
	l.play(12)
	for _, u := range l.updates {
		apply(t, s, u)
	}
	var all, summarized int64
	for _, task := range totals("r2") {
		for _, n := range task.Statuses {
			all += n
		}
		summarized += task.Summarized
	}
	require.Equal(t, int64(len(l.steps)), all)
	require.Equal(t, summaryOf(t, s, "r2", 0).Steps(), summarized)
	_, err := s.SumSteps(t.Context(), "elsewhere", "r1")
	require.Error(t, err)
}
