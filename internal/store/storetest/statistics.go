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
	apply(t, s, state("r00", 90, run.Completed), state("r10", 11, run.Completed), state("r11", 21, run.Failed),
		state("r12", 31, run.TimedOut),
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
		run.Queued: 3, run.Running: 1, run.Waiting: 1, run.Completed: 1, run.Failed: 2, run.TimedOut: 1, run.Canceled: 1,
		run.Terminated: 0,
	}, rows.Statuses)
	require.Equal(t, int64(22), rows.Open[run.Queued])
	require.Equal(t, int64(1), rows.Open[run.Running])
	require.Equal(t, int64(1), rows.Stuck)
	require.ElementsMatch(t, []statistics.Ended{
		{Status: run.Completed, Duration: new(10 * time.Second)}, {Status: run.Failed, Duration: new(20 * time.Second)},
		{Status: run.TimedOut, Duration: new(30 * time.Second)},
		{Status: run.Canceled, Duration: new(40 * time.Second)}, {Status: run.Failed},
	}, rows.Sample)
	require.Len(t, rows.Recent, statistics.MaxRecent)
	require.Equal(t, statistics.Recent{ID: "r29", Status: run.Queued, CreatedAt: at(29)}, rows.Recent[0])
	require.Equal(t, statistics.Recent{ID: "r11", Status: run.Failed, CreatedAt: at(11), Duration: new(20 * time.Second)},
		rows.Recent[18])
	require.Equal(t, "r10", rows.Recent[19].ID)
}

func zeros(statuses []run.Status) map[run.Status]int64 {
	counts := map[run.Status]int64{}
	for _, status := range statuses {
		counts[status] = 0
	}
	return counts
}

func testTaskRows(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	for n, id := range []string{"long", "short", "none"} {
		insert(t, s, newRun(id, n))
	}
	step := func(number int64, pointer, status string, ended bool, attempts int) run.Step {
		made := run.Step{Number: number, Path: pointer, Pointer: pointer, Task: pointer[1:], Kind: "call", Status: status,
			Position: number, StartedAt: at(int(number))}
		if ended {
			made.EndedAt = at(int(number) + 1)
		}
		for n := range attempts {
			made.Attempts = append(made.Attempts, run.Attempt{Number: n + 1, StartedAt: at(int(number))})
		}
		return made
	}
	update := state("long", 9000, run.Running)
	update.State.StepsTotal = 3 * statistics.GridSteps
	for n := range update.State.StepsTotal {
		update.Steps = append(update.Steps, step(n+1, "/b", "completed", true, 0))
	}
	other := state("short", 9000, run.Failed)
	other.State.StepsTotal = 4
	other.Steps = []run.Step{
		step(1, "/a", "completed", true, 0), step(2, "/b", "completed", true, 1), step(3, "/b", "completed", true, 2),
		step(4, "/b", "running", false, 0),
	}
	apply(t, s, update, other)
	got, err := s.Statistics().ReadCells(ctx, []string{"long", "short", "none"})
	require.NoError(t, err)
	require.Equal(t, []statistics.TaskRows{
		{RunID: "long", Pointer: "/b", Task: "b", Kind: "call", Status: "completed", Count: 2 * statistics.GridSteps,
			StartedAt: at(1), EndedAt: at(3*statistics.GridSteps + 1)},
		{RunID: "short", Pointer: "/a", Task: "a", Kind: "call", Status: "completed", Count: 1, StartedAt: at(1),
			EndedAt: at(2)},
		{RunID: "short", Pointer: "/b", Task: "b", Kind: "call", Status: "completed", Count: 2, Attempts: 3, StartedAt: at(2),
			EndedAt: at(4)},
		{RunID: "short", Pointer: "/b", Task: "b", Kind: "call", Status: "running", Count: 1, StartedAt: at(4), Open: true},
	}, got)
	got, err = s.Statistics().ReadCells(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, got)
}
