package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/signalbox-dev/signalbox/dsl/firing"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// showTimeout bounds the request to Temporal.
const showTimeout = 3 * time.Second

// Timer returns the timer of a workflow, and whether it has one.
func (r *Reconciler) Timer(ctx context.Context, project, workflow string) (event.Timer, bool, error) {
	return r.opts.Events.GetTimer(ctx, project, workflow)
}

// Fires returns the past and future fires of a timer, from Temporal's schedule or, with `after`, from the workflow's
// newest run.
func (r *Reconciler) Fires(ctx context.Context, t event.Timer) (event.Fires, error) {
	if t.Spec.Follows() {
		return r.showAfter(ctx, t)
	}
	c, err := r.opts.Client()
	if err != nil {
		return event.Fires{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, showTimeout)
	defer cancel()
	described, err := c.ScheduleClient().GetHandle(ctx, ID(t.Project, t.Workflow)).Describe(ctx)
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return event.Fires{}, nil // not created yet
	}
	if err != nil {
		return event.Fires{}, fmt.Errorf("asking Temporal for the schedule of %q: %w", t.Workflow, err)
	}
	info := described.Info
	f := event.Fires{Fired: int64(info.NumActions), Missed: int64(info.NumActionsMissedCatchupWindow),
		Skipped: int64(info.NumActionsSkippedOverlap)}
	if !t.Paused {
		f.Next = matching(t, info.NextActionTimes)
	}
	if n := len(info.RecentActions); n > 0 {
		f.Last = info.RecentActions[n-1].ScheduleTime
	}
	return f, nil
}

func (r *Reconciler) showAfter(ctx context.Context, t event.Timer) (event.Fires, error) {
	runs, err := r.opts.Store.ListRuns(ctx, run.Filter{Project: t.Project, Workflow: t.Workflow, Limit: 1})
	if err != nil || len(runs) == 0 {
		return event.Fires{}, err
	}
	last := runs[0]
	f := event.Fires{}
	if last.Trigger == run.TriggerSchedule {
		f.Last = last.CreatedAt
	}
	if !t.Paused && last.Status.Terminal() && last.Status != run.Canceled && last.Status != run.Terminated {
		f.Next = []time.Time{last.EndedAt.Add(t.Spec.After)}
	}
	return f, nil
}

// matching returns the times of Temporal's list at which the timer has an effect. Temporal's times include the jitter, so
// those of a timer with a jitter are all returned.
func matching(t event.Timer, list []time.Time) []time.Time {
	times, err := firing.New(t.Firing())
	if err != nil || *t.Settings().Jitter > 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(at time.Time) bool { return !times.Matches(at) })
}
