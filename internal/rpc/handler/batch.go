package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Page sizes of items.
const (
	itemsDefault = 200
	itemsMost    = 1000
)

// BatchService is the domain's service of batches. It validates requests.
type BatchService interface {
	// Start returns false if the request ID belongs to an existing batch.
	Start(ctx context.Context, req batch.StartRequest) (batch.Batch, bool, error)
	// Preview returns what Start would do.
	Preview(ctx context.Context, req batch.StartRequest) (batch.Preview, error)
	// Stop pauses a workflow and starts a batch that cancels its open runs; PreviewStop returns what Stop would do.
	Stop(ctx context.Context, req batch.StopRequest) (batch.Stopped, error)
	PreviewStop(ctx context.Context, req batch.StopRequest) (batch.StopPreview, error)
	Get(ctx context.Context, project, id string) (batch.Batch, error)
	// List returns batches, newest first.
	List(ctx context.Context, f batch.ListFilter) ([]batch.Batch, error)
	// Items returns the runs of a batch in order of their numbers.
	Items(ctx context.Context, f batch.ItemFilter) ([]batch.Item, error)
	Pause(ctx context.Context, project, id string) (batch.Batch, error)
	Unpause(ctx context.Context, project, id string) (batch.Batch, error)
	// Retry repeats the failed items.
	Retry(ctx context.Context, project, id string) (batch.Batch, error)
}

// Batches implements signalbox.v1.BatchService.
type Batches struct{ service BatchService }

// StartBatch records the selected runs and starts the batch.
func (h *Batches) StartBatch(
	ctx context.Context, req *connect.Request[signalboxv1.StartBatchRequest],
) (*connect.Response[signalboxv1.StartBatchResponse], error) {
	m := req.Msg
	filter, err := filterOf(m.GetFilter())
	if err != nil {
		return nil, err
	}
	start := batch.StartRequest{
		Project: message.ProjectOf(m.GetProject()), Action: batch.Action(m.GetAction()), RunIDs: m.GetRunIds(),
		Filter: filter,
		Reason: m.GetReason(), Rate: m.GetRate(), RequestID: m.GetRequestId(), Version: m.GetVersion(),
		ExpectedTotal: m.ExpectedTotal,
	}
	if m.GetDryRun() {
		p, err := h.service.Preview(ctx, start)
		return message.Reply(&signalboxv1.StartBatchResponse{
			Batch: batchMessage(p.Batch), Preview: ineligible(p.Ineligible), Eligible: p.Eligible, Unchanged: p.Unchanged,
		}, err)
	}
	b, created, err := h.service.Start(ctx, start)
	return message.Reply(&signalboxv1.StartBatchResponse{Batch: batchMessage(b), Created: created}, err)
}

func ineligible(list []batch.Ineligible) (out []*signalboxv1.IneligibleRuns) {
	for _, i := range list {
		out = append(out, &signalboxv1.IneligibleRuns{Reason: i.Reason, Count: i.Count, SampleRunIds: i.Sample})
	}
	return out
}

// GetBatch returns one batch.
func (h *Batches) GetBatch(
	ctx context.Context, req *connect.Request[signalboxv1.GetBatchRequest],
) (*connect.Response[signalboxv1.GetBatchResponse], error) {
	b, err := h.service.Get(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.GetBatchResponse{Batch: batchMessage(b)}, err)
}

// ListBatches lists batches, newest first.
func (h *Batches) ListBatches(
	ctx context.Context, req *connect.Request[signalboxv1.ListBatchesRequest],
) (*connect.Response[signalboxv1.ListBatchesResponse], error) {
	batches, next, err := listPage(req.Msg, pageDefault, pageMost,
		func(before *string, limit int) ([]batch.Batch, error) {
			f := batch.ListFilter{Project: message.ProjectOf(req.Msg.GetProject()), Before: startOf(before), Limit: limit}
			for _, status := range req.Msg.GetStatuses() {
				f.Statuses = append(f.Statuses, batch.Status(status))
			}
			return h.service.List(ctx, f)
		},
		func(b batch.Batch) string { return b.ID })
	res := &signalboxv1.ListBatchesResponse{NextPageToken: next}
	for _, b := range batches {
		res.Batches = append(res.Batches, batchMessage(b))
	}
	return message.Reply(res, err)
}

// ListBatchItems lists the runs of a batch with their results.
func (h *Batches) ListBatchItems(
	ctx context.Context, req *connect.Request[signalboxv1.ListBatchItemsRequest],
) (*connect.Response[signalboxv1.ListBatchItemsResponse], error) {
	m := req.Msg
	items, next, err := listPage(m, itemsDefault, itemsMost,
		func(after *int64, limit int) ([]batch.Item, error) {
			return h.service.Items(ctx, batch.ItemFilter{
				Project: message.ProjectOf(m.GetProject()), Batch: m.GetId(), Status: batch.ItemStatus(m.GetStatus()),
				Outcome: batch.Outcome(m.GetOutcome()), After: startOf(after), Limit: limit,
			})
		},
		func(i batch.Item) int64 { return i.Number })
	res := &signalboxv1.ListBatchItemsResponse{NextPageToken: next}
	for _, i := range items {
		res.Items = append(res.Items, &signalboxv1.BatchItem{
			RunId: i.RunID, Status: string(i.Status), Error: i.Error, NewRunId: i.NewRunID,
			EndTime: message.Timestamp(i.EndedAt),
			Outcome: string(i.Outcome),
		})
	}
	return message.Reply(res, err)
}

// PauseBatch stops a batch after the items in flight.
func (h *Batches) PauseBatch(
	ctx context.Context, req *connect.Request[signalboxv1.PauseBatchRequest],
) (*connect.Response[signalboxv1.PauseBatchResponse], error) {
	b, err := h.service.Pause(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.PauseBatchResponse{Batch: batchMessage(b)}, err)
}

// UnpauseBatch resumes a paused batch.
func (h *Batches) UnpauseBatch(
	ctx context.Context, req *connect.Request[signalboxv1.UnpauseBatchRequest],
) (*connect.Response[signalboxv1.UnpauseBatchResponse], error) {
	b, err := h.service.Unpause(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.UnpauseBatchResponse{Batch: batchMessage(b)}, err)
}

// RetryBatch repeats the failed items.
func (h *Batches) RetryBatch(
	ctx context.Context, req *connect.Request[signalboxv1.RetryBatchRequest],
) (*connect.Response[signalboxv1.RetryBatchResponse], error) {
	b, err := h.service.Retry(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.RetryBatchResponse{Batch: batchMessage(b)}, err)
}

func filterOf(m *signalboxv1.RunFilter) (*run.Filter, error) {
	if m == nil {
		return nil, nil
	}
	f, err := message.FilterOf(m, "filter.")
	return &f, err
}

// batchMessage returns the message of a batch.
func batchMessage(b batch.Batch) *signalboxv1.Batch {
	m := &signalboxv1.Batch{
		Id: b.ID, Project: b.Project, Action: string(b.Action), Status: string(b.Status), Reason: b.Reason, Rate: b.Rate,
		Total: b.Total, Pending: b.Pending(), Succeeded: b.Succeeded - b.Started(), Refused: b.Refused, Failed: b.Failed,
		Waiting: b.Waiting,
		Actor:   b.Actor.Name, RequestId: b.RequestID, Version: b.Version,
		CreateTime: message.Timestamp(b.CreatedAt), EndTime: message.Timestamp(b.EndedAt),
	}
	if b.Action == batch.Replay {
		m.RunsEndTime = message.Timestamp(b.RunsEndedAt)
		m.Outcomes = &signalboxv1.BatchOutcomes{
			Started: b.Started(), Open: b.OpenRuns(), Completed: b.Ended[batch.RunCompleted],
			FailedSameCause:  b.Ended[batch.FailedSameCause],
			FailedOtherCause: b.Ended[batch.FailedOtherCause], Canceled: b.Ended[batch.RunCanceled],
			Terminated: b.Ended[batch.RunTerminated],
			Unknown:    b.Ended[batch.RunUnknown],
		}
	}
	if b.Filter != nil {
		m.Filter = message.RunFilter(*b.Filter)
	}
	return m
}
