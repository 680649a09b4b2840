package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
)

// testLongestRuns lists runs by their length: each once, even when runs start and end between the pages.
func testLongestRuns(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	now := at(50)
	service := statistics.NewService(statistics.Options{Store: s.Statistics(), Runs: s, Now: func() time.Time {
		return now
	}})
	// Lengths at the time of the first page: 50 s, 20 s, 10 s and 5 s.
	started := map[string]time.Time{}
	begin := func(id string, second int) {
		insert(t, s, newRun(id, second))
		started[id] = at(second)
		u := state(id, 1, run.Running)
		u.State.StartedAt = started[id]
		apply(t, s, u)
	}
	finish := func(id string, status run.Status, ended int) {
		u := state(id, 2, status)
		u.State.StartedAt, u.State.EndedAt = started[id], at(ended)
		apply(t, s, u)
	}
	begin("open", 0)
	begin("failed", 15)
	begin("completed", 25)
	begin("young", 45)
	finish("failed", run.Failed, 35)
	finish("completed", run.Completed, 35)

	read := func(f run.Filter, limit int, between func()) (ids []string) {
		t.Helper()
		f.Project = here
		var after *statistics.LengthCursor
		for {
			page, next, err := service.Longest(ctx, f, after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), limit)
			for _, r := range page {
				ids = append(ids, r.ID)
			}
			if next == nil {
				return ids
			}
			if after == nil {
				between()
			}
			after = next
		}
	}
	nothing := func() {}
	all := []string{"open", "failed", "completed", "young"}
	for limit := 1; limit <= len(all)+1; limit++ {
		require.Equal(t, all, read(run.Filter{}, limit, nothing), "pages of %d", limit)
	}
	require.Equal(t, []string{"open", "young"},
		read(run.Filter{Statuses: []run.Status{run.Queued, run.Running, run.Waiting}}, 1, nothing))
	require.Equal(t, []string{"failed"}, read(run.Filter{Statuses: []run.Status{run.Failed}}, 5, nothing))
	require.Equal(t, []string{"completed", "young"}, read(run.Filter{Since: at(20)}, 5, nothing))
	require.Empty(t, read(run.Filter{Workflow: hello, Statuses: []run.Status{run.TimedOut}}, 5, nothing))

	between := func() {
		now = at(110)
		finish("young", run.Completed, 109)
		begin("new", 100)
	}
	require.Equal(t, all, read(run.Filter{}, 2, between), "as at the time of the first page")
	require.Equal(t, []string{"open", "young", "failed", "new", "completed"}, read(run.Filter{}, 2, nothing))
}
