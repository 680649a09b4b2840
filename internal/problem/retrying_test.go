package problem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// retry makes a run that waits for the next attempt of a task, after so many failed ones.
func (b *bench) retry(t *testing.T, id, where string, failed int) {
	t.Helper()
	b.insert(t, id, where)
	step := run.Step{Number: 1, Path: "/do/0/charge", Pointer: "/do/0/charge", Task: "charge", Kind: "try",
		Status: "waiting", WaitingKind: run.WaitingRetry, StartedAt: b.now, Position: 5}
	for i := range failed {
		step.Attempts = append(step.Attempts, run.Attempt{Number: i + 1, StartedAt: b.now, EndedAt: new(b.now),
			Error: &run.Error{Type: "https://example.com/errors/away", Status: 503, Title: "Service Unavailable", Detail: "no answer"}})
	}
	_, err := b.store.ApplyUpdates(t.Context(), []run.Update{{RunID: id, Position: 5, Steps: []run.Step{step},
		State: &run.State{Status: run.Waiting, WaitingKind: run.WaitingRetry, Since: b.now}}})
	require.NoError(t, err)
}

func TestTasksThatAreAttemptedAgainAreProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.retry(t, "r1", shop, 2)
	require.Empty(t, b.list(admin(t), t, problem.Query{}), "two attempts are usual")
	b.retry(t, "r2", shop, 3)
	found, err := b.List(admin(t), problem.Query{Kinds: []problem.Kind{problem.Retrying}})
	require.NoError(t, err)
	require.Len(t, found.Problems, 1)
	p := found.Problems[0]
	require.Equal(t, []any{problem.RunRetrying, int64(2), "charge", "/do/0/charge", "Service Unavailable", []string{"r2", "r1"}},
		[]any{p.Code, p.Count, p.Task, p.Pointer, p.Title, p.Samples})
	require.Equal(t, "3 attempts of task charge failed, and it is attempted again: no answer", p.Detail)
	require.Contains(t, p.Advice, "--workflow "+p.Workflow+" --retrying charge")
	require.Equal(t, "docs/runbooks/RunsRetrying.md", p.Runbook)

	b.retry(t, "r3", "bank", 1)
	b.now = b.now.Add(time.Hour)
	require.Len(t, b.list(admin(t), t, problem.Query{Project: "bank"}), 1, "one attempt, an hour ago")
}
