package handler

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
)

// Statistics summarises the recent runs of workflows.
type Statistics interface {
	// OfWorkflows returns the statistics of workflows by full name; a window of zero is the default.
	OfWorkflows(ctx context.Context, project string, names []string,
		window time.Duration) (map[string]statistics.Workflow, error)
	// Longest lists the runs that match a checked filter by their length.
	Longest(ctx context.Context, f run.Filter, after *statistics.LengthCursor,
		limit int) ([]run.Run, *statistics.LengthCursor, error)
	// Grid returns the newest runs of a workflow by its tasks.
	Grid(ctx context.Context, req statistics.GridRequest) (statistics.Grid, error)
}

// GetWorkflowGrid returns the newest runs of a workflow by its tasks.
func (h *Workflows) GetWorkflowGrid(
	ctx context.Context, req *connect.Request[signalboxv1.GetWorkflowGridRequest],
) (*connect.Response[signalboxv1.GetWorkflowGridResponse], error) {
	m, project := req.Msg, message.ProjectOf(req.Msg.GetProject())
	if h.opts.Statistics == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, errors.New("this server has no statistics of runs"))
	}
	done, err := h.reads.acquire(ctx, project)
	if err != nil {
		return nil, err
	}
	defer done()
	g, err := h.opts.Statistics.Grid(ctx, statistics.GridRequest{
		Project: project, Workflow: m.GetWorkflow(), Version: m.GetVersion(), Runs: int(m.GetRuns()),
	})
	res := &signalboxv1.GetWorkflowGridResponse{}
	for _, t := range g.Tasks {
		res.Tasks = append(res.Tasks, &signalboxv1.GridTask{Pointer: t.Pointer, Task: t.Name, Kind: t.Kind})
	}
	for _, r := range g.Runs {
		res.Runs = append(res.Runs, &signalboxv1.GridRun{
			Id: r.ID, Version: r.Version, Status: string(r.Status), CreateTime: message.Timestamp(r.CreatedAt),
			Duration: known(statistics.DurationOf(r)), Partial: statistics.Partial(r),
		})
	}
	for _, c := range g.Cells {
		res.Cells = append(res.Cells, &signalboxv1.GridCell{
			Run: int32(c.Run), Task: int32(c.Task), Status: c.Status, Count: c.Count, Attempts: c.Attempts, //nolint:gosec // documents are at most 1 MiB
			Duration: known(c.Duration),
		})
	}
	return message.Reply(res, err)
}

// addStats sets the statistics of workflows.
func (h *Workflows) addStats(ctx context.Context, project string, window *durationpb.Duration,
	workflows ...*signalboxv1.Workflow) error {
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
		return 0, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the window of the statistics is not a duration above 0").
			WithField("statsWindow", "must be between %s and %s", statistics.MinWindow, statistics.MaxWindow)
	}
	return d.AsDuration(), nil
}

func statsMessage(s statistics.Workflow) *signalboxv1.WorkflowStats {
	out := &signalboxv1.WorkflowStats{
		Since: message.Timestamp(s.Window.Since), Until: message.Timestamp(s.Window.Until), Statuses: map[string]int64{},
		SuccessRate: s.SuccessRate, P50: known(s.P50), P95: known(s.P95), Sample: s.Sample, Open: s.Open, Stuck: s.Stuck,
		More: s.More,
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
