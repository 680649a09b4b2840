package problem_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/server"
)

// A lost server is a problem until it is back. While lost servers are not known, the problem stays as it was recorded.
func TestLostServerIsAProblem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seen := b.now.Add(-3 * time.Minute)
	b.lost = []server.Server{
		{ID: "node-1-7-ab", Instance: "node-1:8080", Roles: []string{"api", "worker"}, Version: "1.2.3", SeenAt: seen}}
	require.NoError(t, b.recorder.Pass(admin(t)))
	state := func() (problem.Problem, []string) {
		list, err := b.List(admin(t), problem.Query{Kinds: []problem.Kind{problem.Platform}})
		require.NoError(t, err)
		require.Len(t, list.Problems, 1)
		return list.Problems[0], list.Errors
	}
	p, _ := state()
	require.Equal(t, []any{problem.ServerLost, "node-1:8080", seen, problem.Open},
		[]any{p.Code, p.Cause, p.First, p.State})
	for _, text := range []string{"node-1-7-ab", "api, worker", "1.2.3", "12:27:00"} {
		require.Contains(t, p.Detail, text)
	}

	b.lost, b.lostUnknown = nil, true
	p, problems := state()
	require.Equal(t, problem.Open, p.State)
	require.Empty(t, problems)
	b.lostErr = errors.New("the database does not answer")
	p, problems = state()
	require.Equal(t, problem.Open, p.State)
	require.Len(t, problems, 1)

	b.lostUnknown, b.lostErr = false, nil
	p, _ = state()
	require.Equal(t, problem.Resolved, p.State)
}
