package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestSummariesMergeInAnyOrder(t *testing.T) {
	t.Parallel()
	earlier := &run.StepSummary{
		From: 3, To: 8, Position: 5, Open: []int64{4},
		Tasks: []run.TaskSummary{{Pointer: "/a", Count: 3}, {Pointer: "/b", Count: 2}}}
	later := &run.StepSummary{
		From: 3, To: 8, Position: 6, Tasks: []run.TaskSummary{{Pointer: "/a", Count: 4}, {Pointer: "/c", Count: 1}}}
	want := &run.StepSummary{
		From: 3, To: 8, Position: 6,
		Tasks: []run.TaskSummary{{Pointer: "/a", Count: 4}, {Pointer: "/b", Count: 2}, {Pointer: "/c", Count: 1}}}
	require.Equal(t, want, earlier.Merge(later))
	require.Equal(t, want, later.Merge(earlier))
	require.Equal(t, want, want.Merge(want))
	require.Equal(t, later, (*run.StepSummary)(nil).Merge(later))
	require.Equal(t, later, later.Merge(nil))
	require.Equal(t, int64(7), want.Steps())
	require.Zero(t, (*run.StepSummary)(nil).Steps())
}

func TestSummaryReplacesSteps(t *testing.T) {
	t.Parallel()
	s := &run.StepSummary{From: 3, To: 8, Open: []int64{4, 6}}
	ended := time.Unix(1, 0)
	for _, tt := range []struct {
		name string
		step run.Step
		want bool
	}{
		{"one of the first", run.Step{Number: 2, EndedAt: ended}, false},
		{"the first in between", run.Step{Number: 3, EndedAt: ended}, true},
		{"the last in between", run.Step{Number: 8, EndedAt: ended}, true},
		{"one of the last", run.Step{Number: 9, EndedAt: ended}, false},
		{"a failure that is kept", run.Step{Number: 5, EndedAt: ended, Kept: true}, false},
		{"open", run.Step{Number: 6, Kept: true}, false},
		{"open as an older record says", run.Step{Number: 5, Kept: true}, true},
		{"open in a record from before it left the last ones", run.Step{Number: 6}, true},
	} {
		require.Equal(t, tt.want, s.Replaces(&tt.step), tt.name)
	}
	require.False(t, (*run.StepSummary)(nil).Replaces(&run.Step{Number: 5}))
}

func TestSizeGrowsWithContent(t *testing.T) {
	t.Parallel()
	u := run.Update{}
	before := u.Size()
	u.Steps = []run.Step{{Input: make([]byte, 1000), Attempts: make([]run.Attempt, 2)}}
	require.Greater(t, u.Size(), before+1000)
}
