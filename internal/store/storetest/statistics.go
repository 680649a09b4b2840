package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
)

func testWorkflowStatistics(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for i, name := range []string{hello, "a/idle", "b/other"} {
		publish(t, s, version(name, "1.0.0", fmt.Sprintf("sha256:%d", i), i))
	}
	// Run n is created at n and starts at 1; apply ends it at its position.
	for n := range 30 {
		insert(t, s, newRun(fmt.Sprintf("r%02d", n), n))
	}
	other := newRun("other", 3)
	other.Workflow = "b/other"
	insert(t, s, other)
	apply(t, s, state("r00", 90, run.Completed), state("r10", 11, run.Completed), state("r11", 21, run.Failed), state("r12", 31, run.TimedOut),
		state("r13", 41, run.Canceled), state("r14", 5, run.Running), state("r15", 5, run.Waiting))
	_, err := s.FinishMissing(ctx, "r16", run.Failed, nil, at(40), entry("test", here, "r16"))
	require.NoError(t, err)
	giveVerdict(t, s, here, "r14", run.NoPoller)

	window := statistics.Window{Since: at(10), Until: at(20)}
	got, err := s.Statistics().ReadWorkflows(ctx, here, []string{"a/idle", hello, "none/such"}, window)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, statistics.Rows{Statuses: zeros(run.Statuses()), Open: zeros(run.Statuses())}, got["a/idle"])

	rows := got[hello]
	require.Equal(t, map[run.Status]int64{
		run.Queued: 3, run.Running: 1, run.Waiting: 1, run.Completed: 1, run.Failed: 2, run.TimedOut: 1, run.Canceled: 1, run.Terminated: 0,
	}, rows.Statuses)
	require.Equal(t, int64(22), rows.Open[run.Queued])
	require.Equal(t, int64(1), rows.Open[run.Running])
	require.Equal(t, int64(1), rows.Stuck)
	require.ElementsMatch(t, []statistics.Ended{
		{run.Completed, new(10 * time.Second)}, {run.Failed, new(20 * time.Second)}, {run.TimedOut, new(30 * time.Second)},
		{run.Canceled, new(40 * time.Second)}, {run.Failed, nil},
	}, rows.Sample)
	require.Len(t, rows.Recent, statistics.MaxRecent)
	require.Equal(t, statistics.Recent{ID: "r29", Status: run.Queued, CreatedAt: at(29)}, rows.Recent[0])
	require.Equal(t, statistics.Recent{ID: "r11", Status: run.Failed, CreatedAt: at(11), Duration: new(20 * time.Second)}, rows.Recent[18])
	require.Equal(t, "r10", rows.Recent[19].ID)
}

func zeros(statuses []run.Status) map[run.Status]int64 {
	counts := map[run.Status]int64{}
	for _, status := range statuses {
		counts[status] = 0
	}
	return counts
}
