package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// showTimeout bounds the question.
const showTimeout = 3 * time.Second

// Fires is what the clock did for a workflow and will do.
type Fires struct {
	// Next are the next times, the first one first; none while the workflow is paused.
	Next []time.Time
	// Last is the last time at which it fired; zero when it never did.
	Last time.Time
	// Fired counts how often it did; Missed counts the times that were passed over because they were too late to be made up for.
	Fired, Missed int64
}

// Show tells of a timer. Temporal knows; with `after` it is the workflow's newest run.
func (k *Keeper) Show(ctx context.Context, t event.Timer) (Fires, error) {
	if t.Spec.After > 0 {
		return k.showAfter(ctx, t)
	}
	c, err := k.opts.Client()
	if err != nil {
		return Fires{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, showTimeout)
	defer cancel()
	described, err := c.ScheduleClient().GetHandle(ctx, ID(t.Project, t.Workflow)).Describe(ctx)
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return Fires{}, nil // it is about to be made
	}
	if err != nil {
		return Fires{}, fmt.Errorf("asking Temporal for the schedule of %q: %w", t.Workflow, err)
	}
	info := described.Info
	f := Fires{Fired: int64(info.NumActions), Missed: int64(info.NumActionsMissedCatchupWindow)}
	if !t.Paused {
		f.Next = info.NextActionTimes
	}
	if n := len(info.RecentActions); n > 0 {
		f.Last = info.RecentActions[n-1].ScheduleTime
	}
	return f, nil
}

func (k *Keeper) showAfter(ctx context.Context, t event.Timer) (Fires, error) {
	runs, err := k.opts.Store.ListRuns(ctx, run.Filter{Project: t.Project, Workflow: t.Workflow, Limit: 1})
	if err != nil || len(runs) == 0 {
		return Fires{}, err
	}
	last := runs[0]
	f := Fires{}
	if last.Trigger == run.TriggerSchedule {
		f.Last = last.CreatedAt
	}
	if !t.Paused && last.Status.Terminal() && last.Status != run.Canceled && last.Status != run.Terminated {
		f.Next = []time.Time{last.EndedAt.Add(t.Spec.After)}
	}
	return f, nil
}
