package schedule

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/firing"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// records are the reads of a reconciler: the events of schedules, pauses and runs.
type records struct {
	Events
	Store

	fired  []time.Time
	pauses []audit.Entry
	runs   []run.Run
	missed []time.Time // as they were recorded
	reads  int
}

func (r *records) Positions(_ context.Context, _, _ string, ids []string) (map[string]int64, error) {
	r.reads++
	found := map[string]int64{}
	for i, at := range r.fired {
		for _, id := range ids {
			if id == eventID(at) {
				found[id] = int64(i + 1)
			}
		}
	}
	return found, nil
}

func (r *records) SetMissed(_ context.Context, _, _ string, at time.Time) error {
	r.missed = append(r.missed, at)
	return nil
}

func (r *records) ListAudit(_ context.Context, f audit.Filter) (list []audit.Entry, err error) {
	for _, e := range r.pauses {
		if e.Action == f.Action {
			list = append(list, e)
		}
	}
	return list, nil
}

func (r *records) ListRuns(context.Context, run.Filter) ([]run.Run, error) { return r.runs, nil }

func reconciler(r *records, now time.Time) *Reconciler {
	return New(Options{Events: r, Store: r, Now: func() time.Time { return now }})
}

// hour returns a time on the day after noon.
func hour(h, m int) time.Time { return time.Date(2026, 3, 2, h, m, 0, 0, time.UTC) }

// hourly is a timer that is due at each full hour.
func hourly(overlap dsl.Overlap) event.Timer {
	return timer("w", event.TimerSpec{Cron: "0 * * * *", Settings: event.TimerSettings{Overlap: overlap}})
}

func TestTimesShowWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	r := &records{
		fired: []time.Time{hour(9, 0), hour(12, 0)},
		pauses: []audit.Entry{
			{Action: audit.WorkflowPause, Time: hour(9, 30)}, {Action: audit.WorkflowUnpause, Time: hour(10, 30)},
		},
		runs: []run.Run{{ID: "r1", CreatedAt: hour(12, 0).Add(time.Second), EndedAt: hour(13, 30)}},
	}
	of := func(tm event.Timer, now time.Time, limit int) []event.DueTime {
		list, err := reconciler(r, now).Times(t.Context(), tm, time.Time{}, time.Time{}, limit)
		require.NoError(t, err)
		return list
	}
	caughtUp := "Temporal did not fire the schedule, and the time was not caught up within 10m0s"
	require.Equal(t, []event.DueTime{
		{At: hour(14, 0), Outcome: event.Due, Reason: "its event has not arrived yet"},
		{At: hour(13, 0), Outcome: event.Skipped, Reason: "run r1 was open"},
		{At: hour(12, 0), Outcome: event.Fired, Position: 2},
		{At: hour(11, 0), Outcome: event.Missed, Reason: caughtUp},
		{At: hour(10, 0), Outcome: event.Paused, Reason: "the workflow was paused"},
		{At: hour(9, 0), Outcome: event.Fired, Position: 1},
	}, of(hourly(dsl.OverlapSkip), hour(14, 1), 6))
	require.Equal(t, event.Missed, of(hourly(dsl.OverlapAllow), hour(14, 1), 2)[1].Outcome, "with allow a run skips nothing")
	later := of(hourly(dsl.OverlapAllow), hour(14, 5), 1)[0]
	require.Equal(t, event.Due, later.Outcome)
	require.Equal(t, "it is caught up when Temporal serves the schedule, up to 10m0s late", later.Reason)
	until := hourly(dsl.OverlapAllow)
	until.Override.PausedUntil, until.Override.PausedSince = hour(14, 30), hour(13, 30)
	require.Equal(t, event.Missed, of(until, hour(14, 1), 2)[1].Outcome, "before the pause")
	require.Equal(t, event.DueTime{At: hour(14, 0), Outcome: event.Paused,
		Reason: "the schedule is paused until 2026-03-02T14:30:00Z"}, of(until, hour(14, 1), 1)[0])
	require.Len(t, of(hourly(dsl.OverlapAllow), noon().Add(3*time.Hour), 100), 3, "none before the publication")
}

func TestNewestDueTimeThatDidNotFireIsRecorded(t *testing.T) {
	t.Parallel()
	r := &records{fired: []time.Time{hour(9, 0)}}
	check := func(now time.Time, change func(*event.Timer)) []time.Time {
		tm := hourly(dsl.OverlapAllow)
		change(&tm)
		r.missed = nil
		require.NoError(t, reconciler(r, now).check(t.Context(), tm))
		return r.missed
	}
	usual := func(*event.Timer) {}
	require.Empty(t, check(hour(9, 30), usual))
	require.Empty(t, check(hour(10, 1), usual), "its event may still come")
	require.Equal(t, []time.Time{hour(10, 0)}, check(hour(10, 3), usual))
	require.Empty(t, check(hour(10, 3), func(tm *event.Timer) { tm.MissedAt = hour(10, 0) }), "it is recorded already")
	require.Empty(t, check(hour(10, 3), func(tm *event.Timer) { tm.Paused = true }))
	require.Empty(t, check(hour(10, 3), func(tm *event.Timer) { tm.ChangedAt = hour(10, 2) }), "it was unpaused since")
	require.Empty(t, check(hour(10, 3), func(tm *event.Timer) { tm.Override.PausedUntil = hour(10, 2) }))
	require.Empty(t, check(hour(10, 3), func(tm *event.Timer) { tm.Spec.Settings.Jitter = new(5 * time.Minute) }))
	require.Equal(t, []time.Time{{}}, check(hour(9, 30), func(tm *event.Timer) { tm.MissedAt = hour(8, 0) }), "it has fired since")
	require.Equal(t, []time.Time{hour(10, 0)}, check(hour(10, 3), func(tm *event.Timer) { tm.MissedAt = hour(8, 0) }))
}

func TestFiredTimesAreReadOnce(t *testing.T) {
	t.Parallel()
	r := &records{fired: []time.Time{hour(9, 0)}}
	reconcile := reconciler(r, hour(9, 30))
	for range 3 {
		require.NoError(t, reconcile.check(t.Context(), hourly(dsl.OverlapAllow)))
	}
	require.Equal(t, 1, r.reads)
}

func TestBackfillIsRefused(t *testing.T) {
	t.Parallel()
	r := &records{fired: []time.Time{hour(9, 0)}}
	backfill := func(change func(*event.Timer), since time.Time, dryRun bool) ([]event.DueTime, error) {
		tm := hourly(dsl.OverlapAllow)
		change(&tm)
		return reconciler(r, hour(12, 30)).Backfill(t.Context(), tm, since, time.Time{}, dryRun)
	}
	list, err := backfill(func(*event.Timer) {}, hour(9, 0), true)
	require.NoError(t, err)
	require.Len(t, list, 3, "10, 11 and 12 o'clock")
	list, err = backfill(func(tm *event.Timer) { tm.Since = hour(10, 30) }, hour(9, 0), true)
	require.NoError(t, err)
	require.Equal(t, "the newest version, whose schedule it is, was published later", list[0].Reason)
	list, err = backfill(func(tm *event.Timer) { tm.Paused = true }, hour(9, 0), true)
	require.NoError(t, err)
	require.Len(t, list, 3)
	_, err = backfill(func(tm *event.Timer) { tm.Paused = true }, hour(9, 0), false)
	require.ErrorContains(t, err, `workflow "orders/w" is paused`)
	_, err = backfill(func(tm *event.Timer) { tm.Override.PausedUntil = hour(13, 0) }, hour(9, 0), false)
	require.ErrorContains(t, err, "is paused until 2026-03-02T13:00:00Z")
	_, err = backfill(func(tm *event.Timer) { tm.Spec.Cron = "* * * * *" }, hour(9, 0).Add(-24*time.Hour), true)
	require.ErrorContains(t, err, "is due more than 1000 times")
}

func TestJitterEndsBeforeTheNextTime(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[time.Duration]time.Duration{
		0: 0, time.Minute: time.Minute, 2 * time.Hour: time.Hour - time.Millisecond,
	} {
		tm := hourly(dsl.OverlapAllow)
		tm.Spec.Settings.Jitter = &jitter
		times, err := firing.New(whenever(tm))
		require.NoError(t, err)
		require.Equal(t, want, latest(tm, times, hour(9, 0)), jitter)
	}
}
