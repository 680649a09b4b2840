package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func testUpdates(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 0))
	require.Empty(t, apply(t, s), "nothing to do is fine")

	waiting := state("r1", 5, run.Waiting)
	waiting.Steps = []run.Step{{
		Number: 1, Path: "/do/0/call", Pointer: "/do/0/call", Task: "call", Kind: "call", Status: "waiting",
		WaitingKind: "retry",
		WaitUntil:   at(60), StartedAt: at(2), Position: 5, Input: json.RawMessage(`[1, 2]`), InputSize: 573_034,
		OutputSize: 1 << 40,
		Attempts: []run.Attempt{
			{Number: 1, StartedAt: at(2), Outcome: "answered", HTTPStatus: 503,
				Error: &run.Error{Type: "t", Status: 503, Title: "away"}}},
	}}
	require.Equal(t, []run.Transition{
		{RunID: "r1", Project: here, From: run.Queued, To: run.Waiting, CreatedAt: at(0), StartedAt: at(1)},
	}, apply(t, s, waiting))
	want := newRun("r1", 0)
	want.Status, want.QueuedReason, want.WaitingKind, want.StatusAt, want.StartedAt = run.Waiting, "", "timer", at(5),
		at(1)
	want.StepsTotal, want.StepsDone, want.Sequence, want.Position, want.ExecutionID = 5, 4, 2, 5, "execution-1"
	require.Equal(t, want, get(t, s, "r1"))
	step := waiting.Steps[0]
	step.Sequence = 2
	require.Equal(t, []run.Step{step}, steps(t, s, "r1"))

	// One call may have several updates of a run, in any order; they are one change of the row.
	ended := at(9)
	failed := state("r1", 9, run.Failed)
	failed.ExecutionID, failed.Position = "execution-2", second+9
	failed.State.Error = &run.Error{Type: "t", Status: 500, Title: "broken", Detail: "very", Instance: "/do/0/call"}
	failed.State.Output = json.RawMessage(`null`)
	done := step
	done.Status, done.WaitingKind, done.WaitUntil, done.EndedAt, done.Position = "failed", "", time.Time{}, ended, second+9
	done.Error, done.Output = failed.State.Error, json.RawMessage(`{}`)
	done.Attempts = append(done.Attempts, run.Attempt{Number: 2, StartedAt: at(8), EndedAt: &ended})
	failed.Steps = []run.Step{done}
	require.Equal(t, []run.Transition{
		{RunID: "r1", Project: here, From: run.Waiting, To: run.Failed, CreatedAt: at(0), StartedAt: at(1)},
	}, apply(t, s, failed, state("r1", 8, run.Running), failed))
	want.Status, want.WaitingKind, want.StatusAt, want.EndedAt = run.Failed, "", at(9), at(9)
	want.StepsTotal, want.StepsDone, want.Sequence, want.Position, want.ExecutionID = 9, 8, 3, second+9, "execution-2"
	want.Error, want.Output = failed.State.Error, failed.State.Output
	want.FailedStep = &run.FailedStep{Number: 1, Pointer: "/do/0/call", Path: "/do/0/call", Task: "call", Attempts: 2}
	require.Equal(t, want, get(t, s, "r1"))
	done.Sequence, done.Caught = 3, new(false)
	require.Equal(t, []run.Step{done}, steps(t, s, "r1"))

	queued := newRun("r2", 0)
	insert(t, s, queued)
	require.Empty(t, apply(t, s, state("r2", 1, run.Queued)), "no change of status")
	require.Equal(t, run.QueuedWorker, get(t, s, "r2").QueuedReason, "a run with an update is in Temporal")
}

func testUpdatesGuarded(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 0))
	first := state("r1", 5, run.Running)
	first.Steps = []run.Step{{Number: 1, Status: "running", Position: 5}}
	apply(t, s, first)
	row, list := get(t, s, "r1"), steps(t, s, "r1")
	older := state("r1", 4, run.Waiting)
	older.Steps = []run.Step{{Number: 1, Status: "waiting", Position: 4}}
	for _, stale := range []run.Update{first, older} {
		require.Empty(t, apply(t, s, stale))
		require.Equal(t, row, get(t, s, "r1"))
		require.Equal(t, list, steps(t, s, "r1"))
	}

	// Only steps: the state does not change, the position does.
	apply(t, s, run.Update{
		RunID: "r1", ExecutionID: "execution-2", Position: second + 9,
		Steps: []run.Step{{Number: 2, Status: "running", Position: second + 9}},
	})
	row.Sequence, row.Position, row.ExecutionID = row.Sequence+1, second+9, "execution-2"
	require.Equal(t, row, get(t, s, "r1"))
	require.Equal(t, list[0], steps(t, s, "r1")[0], "untouched steps keep their sequence")

	// A late state from before it still applies: no newer state is known.
	require.Len(t, apply(t, s, state("r1", 7, run.Waiting)), 1)
	require.Equal(t, run.Waiting, get(t, s, "r1").Status)
	require.Equal(t, int64(second+9), get(t, s, "r1").Position)

	// No visible change: the position increases, the sequence does not.
	sequence := get(t, s, "r1").Sequence
	require.Empty(t, apply(t, s, run.Update{RunID: "r1", Position: second + 20}))
	require.Equal(t, int64(second+20), get(t, s, "r1").Position)
	require.Equal(t, sequence, get(t, s, "r1").Sequence)
}

// testStartOfARun has states with a later start than the first one: they do not change it.
func testStartOfARun(t *testing.T, open Opener) {
	s := open(t)
	for name, order := range map[string][]int64{
		"in order": {3, 5, 9}, "turned round": {9, 5, 3}, "last between": {3, 9, 5}} {
		insert(t, s, newRun(name, 0))
		var all []run.Update
		for _, position := range order {
			u := state(name, position, run.Running)
			u.State.StartedAt = at(int(position))
			all = append(all, u)
			before := get(t, s, name)
			apply(t, s, u)
			after := get(t, s, name)
			require.Equal(t, after.StartedAt != before.StartedAt || after.Status != before.Status || position > before.Position,
				after.Sequence > before.Sequence, "%s: watchers receive it", name)
		}
		require.Equal(t, at(3), get(t, s, name).StartedAt, name)
		require.Equal(t, at(9), get(t, s, name).StatusAt, name)
		at := get(t, s, name)
		apply(t, s, all...)
		require.Equal(t, at, get(t, s, name), "%s: reported again", name)
	}
}

func testTerminalStays(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for _, status := range run.Statuses() {
		if !status.Terminal() {
			continue
		}
		id := string(status)
		insert(t, s, newRun(id, 0))
		apply(t, s, state(id, 5, status))
		want := get(t, s, id)
		for _, other := range run.Statuses() {
			require.Empty(t, apply(t, s, state(id, 9, other)))
		}
		require.NoError(t, s.MarkHandedOver(ctx, id, "x", at(9)))
		if status != run.Canceled { // whose cancellation may be stored late
			_, err := s.MarkCancelRequested(ctx, here, id, "", entry(audit.RunCancel, here, id))
			require.NoError(t, err)
		}
		_, err := s.FinishMissing(ctx, id, run.Failed, nil, at(9), entry(audit.RunCancel, here, id))
		require.NoError(t, err)
		_, err = s.RemoveUnstarted(ctx, id, entry(audit.RunCancel, here, id))
		require.NoError(t, err)
		require.Equal(t, want, get(t, s, id))

		// Late steps are written, and watchers receive them.
		apply(t, s, run.Update{RunID: id, Position: 4, Steps: []run.Step{{Number: 1, Status: "completed", Position: 4}}})
		want.Sequence++
		require.Equal(t, want, get(t, s, id))
		require.Equal(t, want.Sequence, steps(t, s, id)[0].Sequence)
	}
}

// testUpdatesInAnyOrder compares a run whose updates were applied in order with one whose updates were shuffled, some
// applied twice, a few at a time.
func testUpdatesInAnyOrder(t *testing.T, open Opener) {
	s := open(t)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		history := drawHistory(rt)
		ordered, shuffled := fmt.Sprintf("ordered-%d", cases), fmt.Sprintf("shuffled-%d", cases)
		for _, id := range []string{ordered, shuffled} {
			insert(t, s, newRun(id, 0))
		}
		transitions := 0
		for _, u := range history {
			u.RunID = ordered
			transitions += len(apply(t, s, u))
		}
		all := rapid.Permutation(
			append(slices.Clone(history), rapid.SliceOf(rapid.SampledFrom(history)).Draw(rt, "again")...)).Draw(rt, "order")
		var terminal int
		for len(all) > 0 {
			n := rapid.IntRange(1, len(all)).Draw(rt, "call")
			call := slices.Clone(all[:n])
			for i := range call {
				call[i].RunID = shuffled
			}
			for _, change := range apply(t, s, call...) {
				require.NotEqual(rt, change.From, change.To)
				if change.To.Terminal() {
					terminal++
				}
			}
			all = all[n:]
		}
		want, got := get(t, s, ordered), get(t, s, shuffled)
		require.Equal(rt, want.Status.Terminal(), terminal == 1, "ending is counted once")
		require.LessOrEqual(rt, terminal, 1)
		require.LessOrEqual(rt, int64(transitions), want.Sequence)
		require.Equal(rt, anonymous(want), anonymous(got))
		wantSteps, gotSteps := steps(t, s, ordered), steps(t, s, shuffled)
		for _, list := range [][]run.Step{wantSteps, gotSteps} {
			for i := range list {
				list[i].Sequence = 0
			}
		}
		require.Equal(rt, wantSteps, gotSteps)
	})
}

// anonymous is a run without its names and without its sequence, which depends on the order of updates.
func anonymous(r run.Run) run.Run {
	r.ID, r.RequestID, r.Sequence = "", "", 0
	return r
}

func drawHistory(t *rapid.T) []run.Update {
	count := rapid.IntRange(1, 12).Draw(t, "updates")
	open := []run.Status{run.Queued, run.Running, run.Waiting}
	var history []run.Update
	position := int64(0)
	for i := range count {
		position += rapid.Int64Range(1, 5).Draw(t, "distance")
		u := run.Update{}
		if rapid.Bool().Draw(t, "stateful") {
			u = state("", position, rapid.SampledFrom(open).Draw(t, "status"))
		}
		if i == count-1 && rapid.Bool().Draw(t, "ends") {
			u = state("", position, rapid.SampledFrom(run.Statuses()[len(open):]).Draw(t, "end"))
		}
		u.ExecutionID, u.Position = fmt.Sprintf("execution-%d", i/4), int64(i/4)*second+position
		for _, number := range rapid.SliceOfNDistinct(rapid.Int64Range(1, 5), 0, 3, rapid.ID[int64]).Draw(t, "steps") {
			u.Steps = append(u.Steps, run.Step{
				Number: number, Position: u.Position, Status: rapid.SampledFrom([]string{"running", "completed"}).Draw(t, "step"),
				StartedAt: at(int(position)), Output: json.RawMessage(fmt.Sprint(position)),
			})
		}
		history = append(history, u)
	}
	return history
}

// testUpdatesInBulk passes one call more runs and steps than one statement can hold, in a number that is not a
// multiple.
func testUpdatesInBulk(t *testing.T, open Opener) {
	s := open(t)
	const runs, each = 299, 3
	var updates []run.Update
	for i := range runs {
		id := fmt.Sprintf("r%03d", i)
		insert(t, s, newRun(id, i))
		u := state(id, 5, []run.Status{run.Running, run.Completed}[i%2])
		if i%5 == 0 {
			u.State = nil
		}
		for n := range each {
			u.Steps = append(u.Steps, run.Step{Number: int64(n + 1), Path: id, Status: "running", Position: 5})
		}
		updates = append(updates, u)
	}
	require.Len(t, apply(t, s, updates...), runs-(runs+4)/5)
	for i := range runs {
		id := fmt.Sprintf("r%03d", i)
		r := get(t, s, id)
		status := []run.Status{run.Running, run.Completed}[i%2]
		if i%5 == 0 {
			status = run.Queued
		}
		require.Equal(t, status, r.Status, id)
		require.Equal(t, int64(2), r.Sequence)
		require.Equal(t, int64(5), r.Position)
		list := steps(t, s, id)
		require.Len(t, list, each)
		for n, step := range list {
			require.Equal(t, []any{int64(n + 1), id, int64(2)}, []any{step.Number, step.Path, step.Sequence})
		}
	}
}

// testConcurrentUpdates has several stores on one database apply overlapping updates in different orders, while runs
// start and are canceled.
func testConcurrentUpdates(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t), open(t)}
	const runs, sides, positions = 40, 6, 8
	var updates []run.Update
	for i := range runs {
		id := fmt.Sprintf("r%02d", i)
		insert(t, stores[0], newRun(id, i))
		for p := range int64(positions) {
			u := state(id, p+1, run.Running)
			if p == positions-1 {
				u = state(id, p+1, run.Completed)
			}
			u.Steps = []run.Step{{Number: p + 1, Status: "running", Position: p + 1}}
			if p > 0 {
				u.Steps = append(u.Steps, run.Step{Number: p, Status: "completed", Position: p + 1})
			}
			updates = append(updates, u)
		}
	}
	var mu sync.Mutex
	ended := map[string]int{}
	var wg sync.WaitGroup
	for side := range sides {
		wg.Go(func() {
			s, random := stores[side%len(stores)], rand.New(rand.NewPCG(uint64(side), 7)) // repeatable on purpose
			mine := slices.Clone(updates)
			random.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			for call := range slices.Chunk(mine, 32) {
				transitions, err := s.ApplyUpdates(t.Context(), call)
				if err != nil {
					t.Errorf("side %d: %v", side, err)
					return
				}
				mu.Lock()
				for _, change := range transitions {
					if change.To.Terminal() {
						ended[change.RunID]++
					}
				}
				mu.Unlock()
				id := fmt.Sprintf("r%02d", random.IntN(runs))
				if _, err := s.MarkCancelRequested(t.Context(), here, id, "", entry(audit.RunCancel, here, id)); err != nil {
					t.Errorf("side %d: %v", side, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range runs {
		id := fmt.Sprintf("r%02d", i)
		require.Equal(t, run.Completed, get(t, stores[0], id).Status)
		require.Equal(t, 1, ended[id], "%s ended once", id)
		list := steps(t, stores[1], id)
		require.Len(t, list, positions)
		for _, step := range list[:positions-1] {
			require.Equal(t, "completed", step.Status)
		}
	}
}

// testOddText has characters that a database cannot store: refused if a caller can correct them, replaced in data that
// Temporal has accepted.
func testOddText(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for name, odd := range map[string]string{"NUL": "a\x00b", "UTF-8": "a\xffb"} {
		_, err := s.SaveDraft(ctx, draft(hello, odd, 0), entry(audit.WorkflowSaveDraft, here, hello))
		requireInvalid(t, err, name)
		_, _, err = s.Publish(ctx, oddVersion(odd), longer, entry(audit.WorkflowPublish, here, hello))
		requireInvalid(t, err, name)
		r := newRun("odd", 0)
		r.Input = json.RawMessage(`"` + odd + `"`)
		_, _, err = s.InsertRun(ctx, r, entry(audit.RunStart, here, "odd"))
		requireInvalid(t, err, name)
	}
	insert(t, s, newRun("r1", 0))
	u := state("r1", 1, run.Failed)
	u.State.Error = &run.Error{Title: "a\x00b"}
	u.State.Output = json.RawMessage("\"a\xffb\"")
	u.Steps = []run.Step{{Number: 1, Task: "a\x00b", Path: "/a\xffb", Pointer: "/", Status: "failed", Position: 1}}
	require.Len(t, apply(t, s, u), 1)
	require.Equal(t, "\"a\uFFFDb\"", string(get(t, s, "r1").Output))
	require.Equal(t, "a\uFFFDb", steps(t, s, "r1")[0].Task)
	require.Equal(t, "/a\uFFFDb", steps(t, s, "r1")[0].Path)
}

func requireInvalid(t testing.TB, err error, what string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Equal(t, apperror.Invalid, f.Class)
	require.Contains(t, f.Message, what)
}

func testExactValues(t *testing.T, open Opener) {
	s := open(t)
	// Local zones, nanoseconds and times before 1970 are read back as the same microsecond in UTC.
	zone := time.FixedZone("east", 5*3600)
	for i, moment := range []time.Time{
		time.Date(2026, 10, 25, 2, 30, 0, 123456789, zone), time.Unix(0, 1000).UTC(),
		time.Date(1969, 7, 20, 20, 17, 40, 999999000, time.UTC),
	} {
		r := newRun(fmt.Sprintf("time-%d", i), 0)
		r.CreatedAt, r.StatusAt = moment, moment
		stored := insert(t, s, r)
		require.Equal(t, stored, get(t, s, r.ID))
		require.Equal(t, time.UnixMicro(moment.UnixMicro()).UTC(), stored.CreatedAt)
	}
	// JSON is stored as it was written: big numbers, order, spaces, escapes, large texts.
	for i, raw := range []string{
		`12345678901234567890.123456789012345678901234567890`, `{"b":1, "a" : 2,"a":3}`, `"\u0000 é \ud83d\ude00 \/"`, `null`,
		`"` + strings.Repeat("0123456789abcdef", 256*1024) + `"`,
	} {
		id := fmt.Sprintf("json-%d", i)
		r := newRun(id, 0)
		r.Input = json.RawMessage(raw)
		insert(t, s, r)
		u := state(id, 1, run.Completed)
		u.State.Output = r.Input
		u.Steps = []run.Step{{Number: 1, Status: "completed", Position: 1, Input: r.Input, Output: r.Input}}
		apply(t, s, u)
		got, step := get(t, s, id), steps(t, s, id)[0]
		for _, value := range []json.RawMessage{got.Input, got.Output, step.Input, step.Output} {
			if raw != string(value) {
				t.Fatalf("%.60s is kept as %.60s", raw, value)
			}
		}
	}
	// Absent is not null.
	r := newRun("absent", 0)
	r.Input = nil
	insert(t, s, r)
	require.Nil(t, get(t, s, "absent").Input)
}

func oddVersion(source string) workflow.Version {
	v := version(hello, "1", "sha256:a", 0)
	v.Source = source
	return v
}
