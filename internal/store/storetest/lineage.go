package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Lineages are kept, and workflows whose runs descend from their own runs are found by the number of these runs.
func testLineages(t *testing.T, open Opener) {
	s := open(t)
	origin, other, again, third := newRun("origin", 1), newRun("other", 2), newRun("again", 3), newRun("third", 4)
	other.Workflow = "b/other"
	other.Lineage = origin.Next()
	again.Lineage = other.Next()
	third.Lineage = again.Next()
	for _, r := range []run.Run{origin, other, again, third} {
		insert(t, s, r)
		require.Equal(t, r.Lineage, get(t, s, r.ID).Lineage, r.ID)
	}
	find := func(since time.Time, over int) []problem.Runaway {
		t.Helper()
		found, err := s.Problems().Runaways(t.Context(), []string{here}, since, over)
		require.NoError(t, err)
		return found
	}
	require.Empty(t, find(again.CreatedAt, 2), "no more than two")
	require.Empty(t, find(third.CreatedAt, 1), "one of them is earlier")
	found := find(again.CreatedAt, 1)
	require.Len(t, found, 1, "the other workflow does not descend from itself")
	require.Equal(t, problem.Runaway{Project: here, Workflow: origin.Workflow, Count: 2,
		First: get(t, s, "again").CreatedAt, Last: get(t, s, "third").CreatedAt}, found[0])
	ids, err := s.Problems().Samples(t.Context(),
		problem.Finding{Code: problem.WorkflowRunaway, Project: here, Workflow: origin.Workflow}, 5)
	require.NoError(t, err)
	require.Equal(t, []string{"third", "again"}, ids)
}
