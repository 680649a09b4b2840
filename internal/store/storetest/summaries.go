package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// longRun builds the updates of a run of which the first two and the last three steps have rows, and the first failure.
type longRun struct {
	id       string
	steps    []run.Step
	failures int
	summary  run.StepSummary
	counted  map[int64]bool
	updates  []run.Update
}

const firstSteps, lastSteps = 2, 3

func newLongRun(id string) *longRun {
	return &longRun{id: id, summary: run.StepSummary{From: firstSteps + 1}, counted: map[int64]bool{}}
}

// update enters some steps, ends the given ones and returns an update of it all.
func (l *longRun) update(entered int, ended map[int64]string) {
	position := int64(len(l.updates) + 1)
	changed := map[int64]bool{}
	for range entered {
		n := int64(len(l.steps) + 1)
		l.steps = append(l.steps,
			run.Step{Number: n, Task: fmt.Sprintf("t%d", n%3), Status: "running", StartedAt: at(int(n))})
		changed[n] = true
	}
	for n, status := range ended {
		s := &l.steps[n-1]
		s.Status, s.EndedAt, s.Kept = status, s.StartedAt.Add(time.Duration(n)*time.Millisecond), status == "failed" &&
			l.failures == 0
		if status == "failed" {
			l.failures++
		}
		changed[n] = true
	}
	u := state(l.id, position, run.Running)
	u.State.StepsTotal = int64(len(l.steps))
	if to := int64(len(l.steps) - lastSteps); to > firstSteps {
		l.summary.To, l.summary.Position, l.summary.Open = to, position, nil
		for n := l.summary.From; n <= to; n++ {
			l.leave(n, changed)
		}
		summary := l.summary
		summary.Tasks = slices.Clone(l.summary.Tasks)
		u.Summary = &summary
	}
	for n := range changed {
		s := l.steps[n-1]
		s.Position = position
		s.Original = &run.Original{What: run.OriginalStep, Number: n, KeyID: "k", Sealed: []byte{1}}
		if !u.Summary.Replaces(&s) {
			u.Steps = append(u.Steps, s)
		}
	}
	l.updates = append(l.updates, u)
}

// leave records that a step is no longer among the last ones.
func (l *longRun) leave(n int64, changed map[int64]bool) {
	s := &l.steps[n-1]
	switch {
	case s.EndedAt.IsZero():
		changed[n] = changed[n] || !s.Kept
		s.Kept = true
		l.summary.Open = append(l.summary.Open, n)
	case !s.Kept && !l.counted[n]:
		l.counted[n] = true
		i := slices.IndexFunc(l.summary.Tasks, func(t run.TaskSummary) bool { return t.Task == s.Task })
		if i < 0 {
			i = len(l.summary.Tasks)
			l.summary.Tasks = append(l.summary.Tasks, run.TaskSummary{Pointer: "/do/" + s.Task, Task: s.Task, Kind: "set"})
		}
		t, took := &l.summary.Tasks[i], s.EndedAt.Sub(s.StartedAt)
		if t.Count++; s.Status == "failed" {
			t.Failed++
		} else {
			t.Completed++
		}
		if t.Shortest == 0 || took < t.Shortest {
			t.Shortest = took
		}
		t.Longest, t.Total = max(t.Longest, took), t.Total+took
	}
}

// play builds a run of random updates.
func (l *longRun) play(updates int) {
	for range updates {
		ended := map[int64]string{}
		for _, s := range l.steps {
			if s.EndedAt.IsZero() && rand.IntN(3) > 0 {
				ended[s.Number] = []string{"completed", "completed", "failed"}[rand.IntN(3)]
			}
		}
		l.update(rand.IntN(4), ended)
	}
}

func (l *longRun) rows() (numbers []int64) {
	for _, s := range l.steps {
		if !l.summary.Replaces(&s) {
			numbers = append(numbers, s.Number)
		}
	}
	return numbers
}

func numbersOf(list []run.Step) (numbers []int64) {
	for _, s := range list {
		numbers = append(numbers, s.Number)
	}
	return numbers
}

func summaryOf(t testing.TB, s Store, id string, after int64) *run.StepSummary {
	t.Helper()
	summary, err := s.StepSummary(t.Context(), here, id, after)
	require.NoError(t, err)
	return summary
}

// plain is a summary without the sequences of its tasks, sorted.
func plain(s *run.StepSummary) *run.StepSummary {
	if s = s.Merge(s); s == nil || s.To == 0 {
		return nil
	}
	for i := range s.Tasks {
		s.Tasks[i].Sequence = 0
	}
	return s
}

func testSummaries(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 0))
	l := newLongRun("r1")
	l.update(5, map[int64]string{3: "failed", 4: "completed"})
	apply(t, s, l.updates[0])
	require.Nil(t, summaryOf(t, s, "r1", 0), "all steps have rows")

	l.update(2, map[int64]string{})
	apply(t, s, l.updates[1])
	require.Equal(t, []int64{1, 2, 3, 5, 6, 7}, numbersOf(steps(t, s, "r1")), "the failure has its row, step 4 has none")
	sequence := get(t, s, "r1").Sequence
	want := &run.StepSummary{From: 3, To: 4, Position: 2, Tasks: []run.TaskSummary{{
		Pointer: "/do/t1", Task: "t1", Kind: "set", Count: 1, Completed: 1, Shortest: 4 * time.Millisecond,
		Longest: 4 * time.Millisecond,
		Total:   4 * time.Millisecond, Sequence: sequence,
	}}}
	require.Equal(t, want, summaryOf(t, s, "r1", 0))
	require.Equal(t, want, summaryOf(t, s, "r1", sequence-1))
	require.Nil(t, summaryOf(t, s, "r1", sequence), "nothing changed since")
	kept, err := s.Originals().SealedOf(t.Context(), "r1", run.OriginalStep, 0, 10)
	require.NoError(t, err)
	require.Len(t, kept, 6, "the originals of steps go with their rows")

	// Late and repeated updates change nothing.
	for _, u := range l.updates {
		apply(t, s, u)
	}
	require.Equal(t, want, summaryOf(t, s, "r1", 0))
	require.Equal(t, []int64{1, 2, 3, 5, 6, 7}, numbersOf(steps(t, s, "r1")))
	require.Equal(t, sequence, get(t, s, "r1").Sequence)

	// Steps that are open when others leave are kept until they end.
	l.update(4, nil)
	apply(t, s, l.updates[2])
	require.Equal(t, []int64{5, 6, 7, 8}, summaryOf(t, s, "r1", 0).Open)
	require.Equal(t, []int64{1, 2, 3, 5, 6, 7, 8, 9, 10, 11}, numbersOf(steps(t, s, "r1")))
	l.update(0, map[int64]string{5: "completed", 6: "failed", 8: "completed"})
	apply(t, s, l.updates[3])
	require.Equal(t, []int64{7}, summaryOf(t, s, "r1", 0).Open)
	require.Equal(t, []int64{1, 2, 3, 7, 9, 10, 11}, numbersOf(steps(t, s, "r1")))
	apply(t, s, l.updates[2])
	require.Equal(t, []int64{1, 2, 3, 7, 9, 10, 11}, numbersOf(steps(t, s, "r1")),
		"the older record of an open step comes late")
	require.Equal(t, int64(4), summaryOf(t, s, "r1", 0).Steps())

	_, err = s.StepSummary(t.Context(), "elsewhere", "r1", 0)
	require.Error(t, err)

	// A reset returns to a position at which nothing was summarized.
	reset := run.Update{RunID: "r1", ExecutionID: "reset", Position: 2,
		State: &run.State{Status: run.Running, StartedAt: at(1)}}
	followed, err := s.FollowExecution(t.Context(), reset, "execution-1", nil, entry(audit.RunFollowReset, here, "r1"))
	require.NoError(t, err)
	require.True(t, followed)
	require.Nil(t, summaryOf(t, s, "r1", 0))
}

// testSummariesInAnyOrder applies the updates of runs in random order, some of them twice and together with others.
func testSummariesInAnyOrder(t *testing.T, open Opener) {
	s := open(t)
	for n := range 12 {
		ordered, shuffled := newLongRun(fmt.Sprintf("ordered-%d", n)), fmt.Sprintf("shuffled-%d", n)
		insert(t, s, newRun(ordered.id, 0))
		insert(t, s, newRun(shuffled, 0))
		ordered.play(12)
		for _, u := range ordered.updates {
			apply(t, s, u)
		}
		require.Equal(t, ordered.rows(), numbersOf(steps(t, s, ordered.id)))
		require.Equal(t, plain(&ordered.summary), plain(summaryOf(t, s, ordered.id, 0)))
		require.Equal(t, int64(len(ordered.steps)), int64(len(ordered.rows()))+summaryOf(t, s, ordered.id, 0).Steps())

		mixed := slices.Concat(ordered.updates, ordered.updates[:4])
		rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		for part := range slices.Chunk(mixed, 1+rand.IntN(3)) {
			for i := range part {
				part[i].RunID = shuffled
			}
			apply(t, s, part...)
		}
		want, got := steps(t, s, ordered.id), steps(t, s, shuffled)
		for _, list := range [][]run.Step{want, got} {
			for i := range list {
				list[i].Sequence = 0
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, plain(&ordered.summary), plain(summaryOf(t, s, shuffled, 0)))
	}
}

func testPartialUpdates(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 0))
	apply(t, s, state("r1", 3, run.Running))
	before := get(t, s, "r1")
	part := run.Update{
		RunID: "r1", ExecutionID: "execution-2", Position: second + 5, Partial: true,
		Steps: []run.Step{{Number: 1, Status: "running", Position: second + 5}},
	}
	apply(t, s, part)
	require.Len(t, steps(t, s, "r1"), 1)
	after := get(t, s, "r1")
	require.Greater(t, after.Sequence, before.Sequence, "those who watch see the steps")
	require.Equal(t, []any{before.Position, before.ExecutionID}, []any{after.Position, after.ExecutionID})

	rest := state("r1", second+5, run.Completed)
	rest.ExecutionID = "execution-2"
	require.Len(t, apply(t, s, rest), 1)
	after = get(t, s, "r1")
	require.Equal(t, []any{run.Completed, int64(second + 5), "execution-2"},
		[]any{after.Status, after.Position, after.ExecutionID})
}
