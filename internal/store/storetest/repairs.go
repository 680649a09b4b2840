package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func forAnHour(int) time.Duration { return time.Hour }

func claimRepair(t testing.TB, s Store) (run.Repair, bool) {
	t.Helper()
	r, ok, err := s.ClaimRepair(t.Context(), forAnHour)
	require.NoError(t, err)
	return r, ok
}

func testRepairs(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("r1", 0))
	insert(t, s, newRun("r2", 1))
	_, ok := claimRepair(t, s)
	require.False(t, ok)

	require.NoError(t, s.RequestRepairs(ctx, nil))
	require.NoError(t, s.RequestRepairs(ctx, []run.RepairRequest{
		{RunID: "r1", Reason: "read"}, {RunID: "nowhere", Reason: "read"},
		{RunID: "r2", Reason: "later", Behind: true, After: time.Hour},
	}))
	require.Nil(t, get(t, s, "r1").Behind, "it is only to be compared")
	require.Equal(t, "later", get(t, s, "r2").Behind.Reason)
	require.WithinDuration(t, time.Now(), get(t, s, "r2").Behind.Since, time.Minute)
	listed, err := s.ListRuns(ctx, run.Filter{Project: here, Limit: 10})
	require.NoError(t, err)
	for _, r := range listed {
		require.Equal(t, get(t, s, r.ID).Behind, r.Behind)
	}
	r, ok := claimRepair(t, s)
	require.True(t, ok)
	want := run.Repair{RepairRequest: run.RepairRequest{RunID: "r1", Reason: "read"}, Project: here, Attempts: 1, Claim: 1,
		Generation: 1}
	require.Equal(t, want, r)
	_, ok = claimRepair(t, s)
	require.False(t, ok, "one claim per run, and the other is not due")

	// A held claim keeps its progress; a lost one changes nothing.
	r.Done = "execution-1"
	held, err := s.HoldRepair(ctx, r, time.Hour)
	require.NoError(t, err)
	require.True(t, held)
	stale := r
	stale.Claim--
	held, err = s.HoldRepair(ctx, stale, time.Hour)
	require.NoError(t, err)
	require.False(t, held)
	require.NoError(t, s.EndRepair(ctx, stale))

	// A failure is shown, and the next attempt continues where this one ended; waiting is no attempt.
	require.NoError(t, s.PostponeRepair(ctx, r, 0, "no key"))
	require.Equal(t, "no key", get(t, s, "r1").Behind.Failure)
	r, ok = claimRepair(t, s)
	require.True(t, ok)
	require.Equal(t, []any{2, "execution-1", int64(2)}, []any{r.Attempts, r.Done, r.Claim})
	require.NoError(t, s.PostponeRepair(ctx, r, 0, ""))
	r, ok = claimRepair(t, s)
	require.True(t, ok)
	require.Equal(t, 2, r.Attempts)

	// A concurrent request is kept; a forced one starts at the first execution.
	require.NoError(t, s.RequestRepairs(ctx,
		[]run.RepairRequest{{RunID: "r1", Reason: "dropped", Force: true, Correction: run.CorrectionFinished}}))
	require.NoError(t, s.EndRepair(ctx, r))
	r, ok = claimRepair(t, s)
	require.True(t, ok)
	require.Equal(t, []any{true, 1, "", run.CorrectionFinished}, []any{r.Force, r.Attempts, r.Done, r.Correction})
	require.NoError(t, s.EndRepair(ctx, r))
	_, ok = claimRepair(t, s)
	require.False(t, ok)
	require.Nil(t, get(t, s, "r1").Behind)

	// If a process dies with a claim, others can claim it after the lease of the attempt; requests do not shorten that.
	require.NoError(t, s.RequestRepairs(ctx, []run.RepairRequest{{RunID: "r1", Reason: "read"}}))
	var leased []int
	lease := func(attempt int) time.Duration {
		leased = append(leased, attempt)
		return time.Duration(attempt/4) * time.Hour
	}
	for range 4 {
		r, ok, err = s.ClaimRepair(ctx, lease)
		require.NoError(t, err)
		require.True(t, ok)
	}
	require.Equal(t, []any{4, []int{1, 2, 3, 4}}, []any{r.Attempts, leased})
	require.NoError(t, s.RequestRepairs(ctx, []run.RepairRequest{{RunID: "r1", Reason: "read"}}))
	_, ok = claimRepair(t, s)
	require.False(t, ok)
}

func testRepairsAmongMany(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	const runs = 20
	var list []run.RepairRequest
	for i := range runs {
		r := insert(t, stores[0], newRun("r"+string(rune('a'+i)), i))
		list = append(list, run.RepairRequest{RunID: r.ID})
	}
	require.NoError(t, stores[0].RequestRepairs(t.Context(), list))
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		taken = map[string]int{}
	)
	for i := range 4 {
		group.Go(func() {
			for {
				mu.Lock()
				all := len(taken) == runs
				mu.Unlock()
				if all {
					return
				}
				r, ok, err := stores[i%2].ClaimRepair(t.Context(), forAnHour)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					mu.Lock()
					taken[r.RunID]++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	for id, times := range taken {
		require.Equal(t, 1, times, id)
	}
}

func testEndFromOutside(t *testing.T, open Opener) {
	s := open(t)
	insert(t, s, newRun("r1", 0))
	u := state("r1", 5, run.Running)
	u.Steps = []run.Step{{Number: 1, Status: "completed", Position: 5, EndedAt: at(4)},
		{Number: 2, Status: "running", Position: 5}}
	apply(t, s, u)
	end := state("r1", 6, run.Terminated)
	end.ExecutionID, end.State.EndsSteps = "", true
	require.Len(t, apply(t, s, end), 1)
	list := steps(t, s, "r1")
	require.Equal(t, []string{"completed", "canceled"}, []string{list[0].Status, list[1].Status})
	require.Equal(t, []any{at(6), int64(5), int64(3)}, []any{list[1].EndedAt, list[1].Position, list[1].Sequence})

	// A late update that Temporal accepted before still applies; the steps that it opens are ended by the next such
	// update.
	late := run.Update{RunID: "r1", Position: 7,
		Steps: []run.Step{{Number: 2, Status: "completed", Position: 7, EndedAt: at(5)},
			{Number: 3, Status: "waiting", Position: 7}}}
	apply(t, s, late)
	require.Empty(t, apply(t, s, end))
	list = steps(t, s, "r1")
	require.Equal(t, []string{"completed", "completed", "canceled"},
		[]string{list[0].Status, list[1].Status, list[2].Status})
	require.Equal(t, run.Terminated, get(t, s, "r1").Status)

	written, err := s.GetRun(t.Context(), here, "r1")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), written.WrittenAt, time.Minute)
}
