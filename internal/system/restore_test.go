package system_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/system"
)

func (s *fakes) Comparisons(context.Context) (run.Comparisons, error) {
	return s.restored.Comparisons, s.restoreErr
}

func (s *fakes) RestoredRows(_ context.Context, since time.Time) (system.RestoredRows, error) {
	s.since = since
	return s.restored.Rows, s.restoreErr
}

func (s *fakes) Schedules(context.Context) (int, []string, error) {
	return s.restored.Schedules, s.restored.LackingSchedules, s.restoreErr
}

func (s *fakes) Dispatchers(context.Context) (int, []string, error) {
	return s.restored.Dispatchers, s.restored.UnownedDispatchers, s.restoreErr
}

func (s *fakes) OpenRuns(_ context.Context, after string, limit int) (list []run.Run, err error) {
	for n := range s.openRuns {
		if id := fmt.Sprintf("%05d", n); id > after && len(list) < limit {
			list = append(list, run.Run{ID: id})
		}
	}
	return list, s.restoreErr
}

func (s *fakes) LacksPayload(ctx context.Context, id string) (bool, error) {
	if s.historyTakes > 0 {
		select {
		case <-time.After(s.historyTakes):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return strings.HasSuffix(id, "00"), s.historyErr
}

func TestOpenRunsAreSearchedForLostPayloads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service, s := newService()
		require.Equal(t, system.LostPayloads{All: true}, service.CheckRestore(t.Context()).Payloads)
		s.openRuns = 1234
		found := service.CheckRestore(t.Context())
		want := system.LostPayloads{
			Searched: 1234, All: true, Runs: 13, RunIDs: []string{"00000", "00100", "00200", "00300", "00400"}}
		require.Equal(t, want, found.Payloads)
		require.True(t, found.Known(system.PartPayloads))
		require.True(t, found.Complete(), "what is lost cannot be corrected")

		s.historyTakes = time.Second
		found = service.CheckRestore(t.Context())
		require.False(t, found.Payloads.All)
		require.InDelta(t, 8*15, found.Payloads.Searched, 8)
		require.True(t, found.Known(system.PartPayloads), "what was found until then counts")

		s.historyTakes, s.historyErr = 0, apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
		found = service.CheckRestore(t.Context())
		require.Contains(t, found.Errors[system.PartPayloads], "temporal is away")
	})
}

func (s *fakes) SealingKeys(context.Context) ([]sealingkey.State, error) {
	return s.restored.SealingKeys, s.restoreErr
}

func TestRestoreCheck(t *testing.T) {
	t.Parallel()
	service, s := newService()
	backup := noon.Add(-time.Hour)
	s.mode = &maintenance.State{On: true, Reason: "restored"}
	s.report = run.Report{Checked: 4, Counts: map[run.CorrectionKind]int{run.CorrectionAdopted: 3},
		Lost: run.Lost{Open: 1, Ended: 2}}
	s.restored = system.RestoreCheck{
		Comparisons: run.Comparisons{RestoredAt: noon, RestoredTo: backup},
		Rows:        system.RestoredRows{Newest: backup, Adopted: 7},
		Schedules:   2, LackingSchedules: []string{"create a"}, Dispatchers: 3, UnownedDispatchers: []string{"shop"},
		SealingKeys: []sealingkey.State{{Key: sealingkey.Key{ID: "first"}}}, Payloads: system.LostPayloads{All: true},
	}
	want := s.restored
	want.At, want.Maintenance, want.Comparison, want.Errors = noon, s.mode, s.report, map[string]string{}
	require.Equal(t, want, service.CheckRestore(t.Context()))
	require.Equal(t, []bool{true}, s.dry, "it changes nothing")
	require.Equal(t, backup, s.since)
	require.Empty(t, s.entries)

	s.restoreErr = apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the database is away")
	found := service.CheckRestore(t.Context())
	for _, part := range []string{
		system.PartRestore, system.PartRows, system.PartSchedules, system.PartDispatchers, system.PartKeys,
		system.PartPayloads} {
		require.Equal(t, "the database is away", found.Errors[part], part)
		require.False(t, found.Known(part))
	}
	require.True(t, found.Known(system.PartComparison))
}

func TestRestoreCheckIsComplete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check system.RestoreCheck
		want  bool
	}{
		"nothing": {want: true},
		"only reported": {want: true, check: system.RestoreCheck{Comparison: run.Report{Counts: map[run.CorrectionKind]int{
			run.CorrectionReopened: 1, run.CorrectionForgotten: 1,
		}, Foreign: []run.ForeignRuns{{Count: 2}}}}},
		"a row to insert": {check: system.RestoreCheck{
			Comparison: run.Report{Counts: map[run.CorrectionKind]int{run.CorrectionAdopted: 1}}}},
		"too young to tell": {check: system.RestoreCheck{Comparison: run.Report{Lost: run.Lost{Young: 1}}}},
		"not searched":      {check: system.RestoreCheck{Comparison: run.Report{SearchedUntil: noon}}},
		"not compared":      {check: system.RestoreCheck{Comparison: run.Report{Failed: 1}}},
		"withheld":          {check: system.RestoreCheck{Comparison: run.Report{Withheld: 1}}},
		"a schedule":        {check: system.RestoreCheck{LackingSchedules: []string{"create a"}}},
		"a dispatcher":      {check: system.RestoreCheck{UnownedDispatchers: []string{"shop"}}},
		"a missing key":     {check: system.RestoreCheck{SealingKeys: []sealingkey.State{{Use: sealingkey.Use{Runs: 1}}}}},
		"keys in order": {want: true, check: system.RestoreCheck{SealingKeys: []sealingkey.State{
			{Use: sealingkey.Use{Runs: 1}, Configured: true}, {Key: sealingkey.Key{ID: "nothing needs it"}},
		}}},
		"something unknown": {check: system.RestoreCheck{Errors: map[string]string{system.PartRows: "the database is away"}}},
	} {
		require.Equal(t, c.want, c.check.Complete(), name)
	}
}

func TestLostRowsByAge(t *testing.T) {
	t.Parallel()
	var lost run.Lost
	for _, age := range []time.Duration{time.Minute, time.Hour, 2 * time.Hour, 30 * time.Hour} {
		lost.Add(run.Execution{StartedAt: noon.Add(-age), Open: age < time.Hour}, noon)
	}
	require.Equal(t, run.Lost{Open: 1, Ended: 3, UpToHour: 2, UpToDay: 1, Older: 1, Newest: noon.Add(-time.Minute)}, lost)
}
