package handler

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
)

// Statistics summarises the recent runs of workflows.
type Statistics interface {
	// OfWorkflows returns the statistics of workflows by full name; a window of zero is the default.
	OfWorkflows(ctx context.Context, project string, names []string, window time.Duration) (map[string]statistics.Workflow, error)
}

// addStats sets the statistics of workflows.
func (h *Workflows) addStats(ctx context.Context, project string, window *durationpb.Duration, workflows ...*signalboxv1.Workflow) error {
	if h.opts.Statistics == nil {
		return nil
	}
	length, err := windowOf(window)
	if err != nil {
		return err
	}
	done, err := h.reads.acquire(ctx, project)
	if err != nil {
		return err
	}
	defer done()
	names := make([]string, len(workflows))
	for i, w := range workflows {
		names[i] = w.GetName()
	}
	byName, err := h.opts.Statistics.OfWorkflows(ctx, project, names, length)
	if err != nil {
		return err
	}
	for _, w := range workflows {
		if s, ok := byName[w.GetName()]; ok {
			w.Stats = statsMessage(s)
		}
	}
	return nil
}

// windowOf returns zero for an absent window. A window of zero is an error, like every other one that is too short.
func windowOf(d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil || d.AsDuration() == 0 {
		return 0, apperror.New(apperror.Invalid, apperror.InvalidArgument, "the window of the statistics is not a duration above 0").
			WithField("statsWindow", "must be between %s and %s", statistics.MinWindow, statistics.MaxWindow)
	}
	return d.AsDuration(), nil
}

func statsMessage(s statistics.Workflow) *signalboxv1.WorkflowStats {
	out := &signalboxv1.WorkflowStats{
		Since: message.Timestamp(s.Window.Since), Until: message.Timestamp(s.Window.Until), Statuses: map[string]int64{},
		SuccessRate: s.SuccessRate, P50: known(s.P50), P95: known(s.P95), Sample: s.Sample, Open: s.Open, Stuck: s.Stuck, More: s.More,
	}
	for status, n := range s.Statuses {
		out.Statuses[string(status)] = n
	}
	for _, r := range s.Recent {
		out.LastRuns = append(out.LastRuns, &signalboxv1.RecentRun{
			Id: r.ID, Status: string(r.Status), CreateTime: message.Timestamp(r.CreatedAt), Duration: known(r.Duration),
		})
	}
	return out
}

// known returns nil for a duration that is not known.
func known(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return message.Duration(*d)
}
