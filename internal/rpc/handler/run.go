package handler

import (
	"context"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/read"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
)

// RunService is the domain's service of runs.
type RunService interface {
	Start(ctx context.Context, req start.Request) (run.Run, bool, error)
	Get(ctx context.Context, project, id string) (run.Run, error)
	List(ctx context.Context, f run.Filter) ([]run.Run, error)
	// Checked returns the filter with the full name of its workflow, or why it cannot select anything.
	Checked(ctx context.Context, f run.Filter) (run.Filter, error)
	Count(ctx context.Context, f run.Filter, bucket time.Duration) (run.Counts, error)
	Steps(ctx context.Context, project, id string, f run.StepFilter) (run.StepPage, error)
	StepSummary(ctx context.Context, project, id string) (*run.StepSummary, error)
	SumSteps(ctx context.Context, project, id string) ([]run.TaskTotals, error)
	Watch(ctx context.Context, w read.Watched, fn func(read.Change) error) error
	Cancel(ctx context.Context, project, id, reason string) (run.Run, error)
	Terminate(ctx context.Context, project, id, reason string) (run.Run, error)
	Pause(ctx context.Context, project, id, reason string) (run.Run, error)
	Unpause(ctx context.Context, project, id, reason string) (run.Run, error)
	Replay(ctx context.Context, req control.ReplayRequest) (run.Run, bool, error)
}

// Unredacted reads runs without marks, for callers with the permission.
type Unredacted interface {
	Run(ctx context.Context, project, id string) (run.Run, error)
	Steps(ctx context.Context, project, id string, f run.StepFilter) (run.StepPage, error)
}

// errUnredactedDisabled is the error if this server never shows sensitive values.
func errUnredactedDisabled() error {
	return apperror.New(apperror.Refused, apperror.OriginalSealed,
		"this server does not show sensitive values").WithField("unredacted", "must be false")
}

// Runs implements signalbox.v1.RunService.
type Runs struct {
	service  RunService
	projects message.ProjectFinder
	opts     Services
	messages message.Runs
	reads    *readSlots
}

// StartRun starts a run of a published workflow.
func (h *Runs) StartRun(
	ctx context.Context, req *connect.Request[signalboxv1.StartRunRequest],
) (*connect.Response[signalboxv1.StartRunResponse], error) {
	m := req.Msg
	input, err := jsonOf("input", m.GetInput())
	if err != nil {
		return nil, err
	}
	r, created, err := h.service.Start(ctx, start.Request{
		Project: message.ProjectOf(m.GetProject()), Workflow: m.GetWorkflow(), Version: m.GetVersion(), Input: input,
		RequestID: m.GetRequestId(), Trigger: run.TriggerAPI, DryRun: m.GetDryRun(), Labels: m.GetLabels(),
	})
	return started(r, &signalboxv1.StartRunResponse{Run: h.startedRun(ctx, r), Created: created}, err)
}

// startedRun returns the message of a run that was started, or that a dry run would start.
func (h *Runs) startedRun(ctx context.Context, r run.Run) *signalboxv1.Run {
	if r.ID != "" {
		return h.messages.Run(ctx, r)
	}
	return &signalboxv1.Run{
		Project: r.Project, Workflow: r.Workflow, Version: r.Version, Status: string(r.Status), QueuedReason: r.QueuedReason,
		Trigger: r.Trigger, ReplayOf: r.ReplayOf, Labels: r.Labels,
	}
}

// startingRetry is the delay before a run is read again if Temporal has not confirmed its start in time.
const startingRetry = 5 * time.Second

// started responds to a request that starts a run. If Temporal has not confirmed the start, the response has a retry
// delay.
func started[T any](r run.Run, m *T, err error) (*connect.Response[T], error) {
	res, err := message.Reply(m, err)
	if err == nil && r.QueuedReason == run.QueuedStarting {
		apierror.RetryAfter(res.Header(), startingRetry)
	}
	return res, err
}

// GetRun returns one run.
func (h *Runs) GetRun(
	ctx context.Context, req *connect.Request[signalboxv1.GetRunRequest],
) (*connect.Response[signalboxv1.GetRunResponse], error) {
	if err := requireID(req.Msg.GetId()); err != nil {
		return nil, err
	}
	done, err := h.reads.acquire(ctx, message.ProjectOf(req.Msg.GetProject()))
	if err != nil {
		return nil, err
	}
	defer done()
	get := h.service.Get
	if req.Msg.GetUnredacted() {
		if h.opts.Unredacted == nil {
			return nil, errUnredactedDisabled()
		}
		get = h.opts.Unredacted.Run
	}
	r, err := get(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	summary, err := h.service.StepSummary(ctx, r.Project, r.ID)
	if err != nil {
		return nil, err
	}
	shown := h.messages.Run(ctx, r)
	shown.StepSummary = summaryMessage(summary)
	return message.Reply(&signalboxv1.GetRunResponse{Run: shown}, h.addWaits(ctx, r, shown))
}

// ListRuns lists runs.
func (h *Runs) ListRuns(
	ctx context.Context, req *connect.Request[signalboxv1.ListRunsRequest],
) (*connect.Response[signalboxv1.ListRunsResponse], error) {
	filter, err := runFilter(req.Msg)
	if err != nil {
		return nil, err
	}
	done, err := h.reads.acquire(ctx, filter.Project)
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := h.projects.Get(ctx, filter.Project); err != nil {
		return nil, err
	}
	runs, next, err := h.page(ctx, req.Msg, filter)
	res := &signalboxv1.ListRunsResponse{NextPageToken: next}
	for _, r := range runs {
		res.Runs = append(res.Runs, h.messages.Run(ctx, r))
	}
	return message.Reply(res, err)
}

func (h *Runs) page(ctx context.Context, m *signalboxv1.ListRunsRequest,
	filter run.Filter) ([]run.Run, string, error) {
	if m.GetOrder() == message.Longest {
		filter, err := h.service.Checked(ctx, filter)
		if err != nil {
			return nil, "", err
		}
		return searchPage(m, pageDefault, pageMost,
			func(after *statistics.LengthCursor, limit int) ([]run.Run, *statistics.LengthCursor, error) {
				return h.opts.Statistics.Longest(ctx, filter, after, limit)
			})
	}
	return listPage(m, pageDefault, pageMost,
		func(after *run.Cursor, limit int) ([]run.Run, error) {
			filter.After, filter.Limit = after, limit
			return h.service.List(ctx, filter)
		},
		func(r run.Run) run.Cursor { return run.Cursor{CreatedAt: r.CreatedAt, ID: r.ID} })
}

func runFilter(m *signalboxv1.ListRunsRequest) (run.Filter, error) {
	f, err := message.FilterOf(m.GetFilter(), "")
	if err != nil {
		return f, err
	}
	f.Project, f.RequestID = message.ProjectOf(m.GetProject()), m.GetRequestId()
	err = message.SetOrder(&f, "order", m.GetOrder())
	return f, err
}

// CountRuns counts runs by status, and stuck runs by code.
func (h *Runs) CountRuns(
	ctx context.Context, req *connect.Request[signalboxv1.CountRunsRequest],
) (*connect.Response[signalboxv1.CountRunsResponse], error) {
	m := req.Msg
	f, err := message.FilterOf(m.GetFilter(), "")
	if err != nil {
		return nil, err
	}
	f.Project, f.RequestID = message.ProjectOf(m.GetProject()), m.GetRequestId()
	if m.GetBucket() != nil && (m.GetBucket().CheckValid() != nil || m.GetBucket().AsDuration() <= 0) {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"bucket: give a positive duration").WithField("bucket", "must be positive")
	}
	done, err := h.reads.acquire(ctx, f.Project)
	if err != nil {
		return nil, err
	}
	defer done()
	counts, err := h.service.Count(ctx, f, m.GetBucket().AsDuration())
	return message.Reply(message.Counts(counts), err)
}

// requireID returns an error for a missing ID of a run.
func requireID(id string) error {
	if id != "" {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "no run named: give its id").
		WithField("id", "is required")
}
