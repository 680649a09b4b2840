package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func testLogs(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 1))
	insert(t, s, newRun("r2", 2))
	log := func(step int64, attempt int, text string) run.AttemptLog {
		return run.AttemptLog{Step: step, Task: "t", Attempt: attempt, Stdout: run.LogStream{Text: text},
			Stderr: run.LogStream{Text: "err " + text, SkippedBytes: 10, SkippedLines: 2}}
	}
	list := func(id string, f run.LogFilter) []run.AttemptLog {
		t.Helper()
		f.Limit = max(f.Limit, 1)
		logs, err := s.ListLogs(ctx, here, id, f)
		require.NoError(t, err)
		return logs
	}
	steps := make([]run.Step, 3)
	for i := range steps {
		steps[i] = run.Step{Number: int64(i + 1), Path: "/do/0", Pointer: "/do/0", Task: "t", Kind: "run",
			Status: "completed", Position: 1}
	}
	one, again, two, other := log(1, 1, "a"), log(1, 2, "b"), log(3, 1, "c"), log(1, 1, "other")
	apply(t, s, run.Update{RunID: "r1", Position: 1, Steps: steps, Logs: []run.AttemptLog{two, log(1, 1, "old")}},
		run.Update{RunID: "r1", Position: 2, Logs: []run.AttemptLog{one, again}},
		run.Update{RunID: "r2", Position: 1, Logs: []run.AttemptLog{other}},
		run.Update{RunID: "none", Position: 1, Logs: []run.AttemptLog{other}})
	require.Equal(t, []run.AttemptLog{one, again, two}, list("r1", run.LogFilter{Limit: 10}))
	require.Equal(t, []run.AttemptLog{one}, list("r1", run.LogFilter{Limit: 1}))
	require.Equal(t, []run.AttemptLog{two},
		list("r1", run.LogFilter{Limit: 10, After: &run.LogCursor{Step: 1, Attempt: 2}}))
	require.Equal(t, []run.AttemptLog{two}, list("r1", run.LogFilter{Limit: 10, Step: 3}))
	require.Equal(t, []run.AttemptLog{other}, list("r2", run.LogFilter{Limit: 10}))
	for _, id := range []string{"none", "r1"} {
		project := here
		if id == "r1" {
			project = "elsewhere"
		}
		_, err := s.ListLogs(ctx, project, id, run.LogFilter{Limit: 1})
		f, ok := apperror.From(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, apperror.NotFound, f.Class)
	}

	// A log is kept as long as its step has a row.
	apply(t, s, run.Update{RunID: "r1", Position: 3, Summary: &run.StepSummary{
		From: 1, To: 2, Position: 3, Tasks: []run.TaskSummary{{Pointer: "/do/0", Task: "t", Kind: "run", Count: 2}},
	}})
	require.Equal(t, []run.AttemptLog{two}, list("r1", run.LogFilter{Limit: 10}))
}
