package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/firing"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// fireAtMost is how long a fire usually takes from its due time, without jitter, to its event.
	fireAtMost = 2 * time.Minute
	// mostBackfilled is the largest number of due times in the period of one backfill. Temporal buffers as many fires.
	mostBackfilled = 1000
	// mostPauses and mostRuns bound what is read to explain why due times did not fire.
	mostPauses, mostRuns = 200, 1000
)

// Times returns the newest due times of a timer in a period, newest first, with their outcomes. It begins with the
// publication of the newest version, whose schedule it is.
func (r *Reconciler) Times(ctx context.Context, t event.Timer, since, until time.Time,
	limit int) ([]event.DueTime, error) {
	times, err := firing.New(whenever(t))
	if err != nil {
		return nil, err
	}
	if since.Before(t.Since) {
		since = t.Since
	}
	if now := r.opts.Now(); until.IsZero() || until.After(now) {
		until = now
	}
	if !since.Before(until) {
		return nil, nil
	}
	list, err := r.outcomes(ctx, t, times.Newest(since, until, limit))
	slices.Reverse(list)
	return list, err
}

// Backfill fires a timer at the due times of a period that have no event, in their order, and returns them. A dry run
// only returns them. With an overlap other than allow, a fire begins after the end of the run of the one before.
func (r *Reconciler) Backfill(ctx context.Context, t event.Timer, since, until time.Time,
	dryRun bool) ([]event.DueTime, error) {
	times, err := firing.New(whenever(t))
	if err != nil {
		return nil, err
	}
	if now := r.opts.Now(); until.IsZero() || until.After(now) {
		until = now
	}
	// The period includes its beginning.
	due, more := times.Between(since.Add(-time.Nanosecond), until, mostBackfilled)
	if more {
		return nil, apperror.New(apperror.Refused, apperror.TooManyTimes,
			"the schedule of %q is due more than %d times from %s to %s: backfill shorter periods", t.Workflow, mostBackfilled, since.UTC().Format(time.RFC3339),
			until.UTC().Format(time.RFC3339))
	}
	list, err := r.outcomes(ctx, t, due)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(d event.DueTime) bool { return d.Outcome == event.Fired })
	if dryRun || len(list) == 0 {
		return list, nil
	}
	switch now := r.opts.Now(); {
	case t.Paused:
		return nil, apperror.New(apperror.Refused, apperror.WorkflowPaused, "workflow %q is paused: `signalbox workflow unpause` "+
			"ends that", t.Workflow)
	case t.PausedAt(now):
		return nil, apperror.New(apperror.Refused, apperror.WorkflowPaused, "the schedule of %q is paused until %s: `signalbox "+
			"workflow set --pause-until none` ends that", t.Workflow, t.Override.PausedUntil.UTC().Format(time.RFC3339))
	}
	entry := audit.NewEntry(ctx, r.opts.Now(), audit.WorkflowBackfill, t.Project, t.Workflow, "")
	entry.Detail, err = json.Marshal(map[string]any{"since": since, "until": until, "times": len(list)})
	if err != nil {
		return nil, fmt.Errorf("encoding the audit entry: %w", err)
	}
	if err := r.opts.Store.WriteAudit(ctx, entry); err != nil {
		return nil, err
	}
	last := list[len(list)-1].At
	if err := r.fireAgain(ctx, t, list[0].At, last.Add(latest(t, times, last))); err != nil {
		return nil, err
	}
	return list, nil
}

// latest returns how long after a due time Temporal fires it at most: the jitter, but before the next due time.
func latest(t event.Timer, times *firing.Times, due time.Time) time.Duration {
	most := *t.Settings().Jitter
	if next := times.Next(due); !next.IsZero() {
		most = min(most, next.Sub(due)-time.Millisecond)
	}
	return most
}

// fireAgain fires a timer at all due times that Temporal would fire from a moment to another one. Those that have fired
// have no effect: their events are duplicates.
func (r *Reconciler) fireAgain(ctx context.Context, t event.Timer, since, until time.Time) error {
	c, err := r.opts.Client()
	if err != nil {
		return err
	}
	t = t.Current(r.opts.Now())
	// The schedule in Temporal may be older than the timer.
	id := ID(t.Project, t.Workflow)
	for _, kind := range []changeKind{create, update} {
		if err := apply(ctx, c, change{kind, id, t, note(t, r.opts.Key)}); err != nil {
			return fmt.Errorf("%s schedule %q: %w", kind, id, err)
		}
	}
	overlap := enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
	if t.Settings().Overlap != dsl.OverlapAllow {
		overlap = enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL
	}
	// Whether the start of a backfill is part of it depends on the version of Temporal.
	err = c.ScheduleClient().GetHandle(ctx, id).Backfill(ctx, client.ScheduleBackfillOptions{
		Backfill: []client.ScheduleBackfill{{Start: since.Add(-time.Millisecond), End: until, Overlap: overlap}},
	})
	if err != nil {
		return fmt.Errorf("asking Temporal to fire the schedule of %q: %w", t.Workflow, err)
	}
	return nil
}

// whenever returns when a timer fires, whatever the time until which it is paused.
func whenever(t event.Timer) firing.Spec {
	s := t.Firing()
	s.Start = time.Time{}
	return s
}

// outcomes returns due times, which are in order, with their outcomes.
func (r *Reconciler) outcomes(ctx context.Context, t event.Timer, due []time.Time) ([]event.DueTime, error) {
	if len(due) == 0 {
		return nil, nil
	}
	ids := make([]string, len(due))
	for i, at := range due {
		ids[i] = eventID(at)
	}
	positions, err := r.opts.Events.Positions(ctx, t.Project, event.TimerSource(t.Project, t.Workflow), ids)
	if err != nil {
		return nil, fmt.Errorf("reading the events of the schedule of %q: %w", t.Workflow, err)
	}
	facts := facts{timer: t, now: r.opts.Now(), positions: positions}
	if len(positions) < len(due) {
		if err := r.explain(ctx, &facts, due[0], due[len(due)-1]); err != nil {
			return nil, err
		}
	}
	list := make([]event.DueTime, len(due))
	for i, at := range due {
		list[i] = facts.outcome(at)
	}
	return list, nil
}

// explain reads why due times of a period did not fire.
func (r *Reconciler) explain(ctx context.Context, f *facts, since, until time.Time) error {
	for _, action := range []string{audit.WorkflowPause, audit.WorkflowUnpause} {
		entries, err := r.opts.Store.ListAudit(ctx, audit.Filter{
			Project: f.timer.Project, Action: action, Subject: f.timer.Workflow, Limit: mostPauses,
		})
		if err != nil {
			return fmt.Errorf("reading the pauses of %q: %w", f.timer.Workflow, err)
		}
		for _, e := range entries {
			f.pauses = append(f.pauses, pause{e.Time, action == audit.WorkflowPause})
		}
	}
	slices.SortFunc(f.pauses, func(a, b pause) int { return a.at.Compare(b.at) })
	if f.timer.Settings().Overlap == dsl.OverlapAllow {
		return nil
	}
	runs, err := r.opts.Store.ListRuns(ctx, run.Filter{
		Project: f.timer.Project, Workflow: f.timer.Workflow, Trigger: run.TriggerSchedule, Until: until, Limit: mostRuns,
	})
	if err != nil {
		return fmt.Errorf("reading the runs of %q: %w", f.timer.Workflow, err)
	}
	for _, started := range runs {
		if started.EndedAt.IsZero() || !started.EndedAt.Before(since) {
			f.runs = append(f.runs, started)
		}
	}
	return nil
}

// pause is a change of a workflow: from this moment on it is paused, or not.
type pause struct {
	at     time.Time
	paused bool
}

// facts decide the outcomes of the due times of a timer.
type facts struct {
	timer     event.Timer
	now       time.Time
	positions map[string]int64 // of events, by ID
	pauses    []pause          // in order
	runs      []run.Run        // those that the schedule started
}

func (f facts) outcome(at time.Time) event.DueTime {
	d := event.DueTime{At: at, Position: f.positions[eventID(at)]}
	settings := f.timer.Settings()
	paused := false
	for _, p := range f.pauses {
		if !p.at.After(at) {
			paused = p.paused
		}
	}
	open := ""
	for _, r := range f.runs {
		if r.CreatedAt.Before(at) && (r.EndedAt.IsZero() || r.EndedAt.After(at)) {
			open = r.ID
		}
	}
	switch {
	case d.Position != 0:
		d.Outcome = event.Fired
	case at.Before(f.timer.Override.PausedUntil) && !at.Before(f.timer.Override.PausedSince):
		d.Outcome = event.Paused
		d.Reason = "the schedule is paused until " + f.timer.Override.PausedUntil.UTC().Format(time.RFC3339)
	case paused:
		d.Outcome, d.Reason = event.Paused, "the workflow was paused"
	case at.Before(f.timer.Since):
		d.Outcome, d.Reason = event.Missed, "the newest version, whose schedule it is, was published later"
	case open != "" && settings.Overlap == dsl.OverlapSkip:
		d.Outcome, d.Reason = event.Skipped, fmt.Sprintf("run %s was open", open)
	case f.now.Sub(at) < fireAtMost+*settings.Jitter:
		d.Outcome, d.Reason = event.Due, "its event has not arrived yet"
	case open != "":
		d.Outcome, d.Reason = event.Skipped, fmt.Sprintf("run %s was open, and at most one fire waits for its end", open)
	case f.now.Sub(at) < fireAtMost+*settings.Jitter+*settings.CatchUp:
		d.Outcome, d.Reason = event.Due, fmt.Sprintf("it is caught up when Temporal serves the schedule, up to %s late",
			*settings.CatchUp)
	default:
		d.Outcome = event.Missed
		d.Reason = fmt.Sprintf("Temporal did not fire the schedule, and the time was not caught up within %s",
			*settings.CatchUp)
	}
	return d
}

// check records for each timer the newest due time that should have fired, and did not.
func (r *Reconciler) check(ctx context.Context, t event.Timer) error {
	missed, err := r.missed(ctx, t)
	if err != nil || missed.Equal(t.MissedAt) {
		return err
	}
	return r.opts.Events.SetMissed(ctx, t.Project, t.Workflow, missed)
}

// missed returns the newest due time of a timer since its last change, if it did not fire; zero if it did, or must not.
func (r *Reconciler) missed(ctx context.Context, t event.Timer) (time.Time, error) {
	if t.Paused || t.Spec.Follows() {
		return time.Time{}, nil
	}
	times, err := firing.New(t.Firing())
	if err != nil {
		return time.Time{}, err
	}
	since, until := t.ChangedAt, r.opts.Now().Add(-fireAtMost-*t.Settings().Jitter)
	if t.Since.After(since) {
		since = t.Since
	}
	if !since.Before(until) {
		return time.Time{}, nil
	}
	due := times.Newest(since, until, 1)
	id := ID(t.Project, t.Workflow)
	if len(due) == 0 || r.fired[id].Equal(due[0]) {
		return time.Time{}, nil
	}
	list, err := r.outcomes(ctx, t, due)
	if err != nil {
		return time.Time{}, err
	}
	switch list[0].Outcome {
	case event.Due, event.Missed:
		return due[0], nil
	case event.Fired, event.Paused, event.Skipped:
		r.fired[id] = due[0]
	}
	return time.Time{}, nil
}
