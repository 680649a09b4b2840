// Package batchhandler answers the BatchService: it translates between messages and the domain's service of batches and decides
// nothing else.
//
//	path, h := signalboxv1connect.NewBatchServiceHandler(batchhandler.New(batches))
package batchhandler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/rpc/page"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Sizes of pages of items.
const (
	itemsDefault = 200
	itemsMost    = 1000
)

// Service is the domain's side of batches. What is wrong with a request is its to say.
type Service interface {
	// Start returns false when the request ID had made the batch before. A dry run returns a batch without ID.
	Start(ctx context.Context, req batch.StartRequest) (batch.Batch, bool, error)
	Get(ctx context.Context, project, id string) (batch.Batch, error)
	// List returns batches, newest first.
	List(ctx context.Context, f batch.ListFilter) ([]batch.Batch, error)
	// Items returns the runs of a batch in order of their numbers.
	Items(ctx context.Context, f batch.ItemFilter) ([]batch.Item, error)
	Pause(ctx context.Context, project, id string) (batch.Batch, error)
	Unpause(ctx context.Context, project, id string) (batch.Batch, error)
	// Retry does the items again that failed.
	Retry(ctx context.Context, project, id string) (batch.Batch, error)
}

// Handler answers signalbox.v1.BatchService.
type Handler struct{ service Service }

// New returns the handler.
func New(service Service) *Handler { return &Handler{service: service} }

// StartBatch takes down which runs are meant, and begins.
func (h *Handler) StartBatch(
	ctx context.Context, req *connect.Request[signalboxv1.StartBatchRequest],
) (*connect.Response[signalboxv1.StartBatchResponse], error) {
	m := req.Msg
	filter, err := filterOf(m.GetFilter())
	if err != nil {
		return nil, err
	}
	b, created, err := h.service.Start(ctx, batch.StartRequest{
		Project: message.ProjectOf(m.GetProject()), Action: batch.Action(m.GetAction()), RunIDs: m.GetRunIds(), Filter: filter,
		Reason: m.GetReason(), Rate: m.GetRate(), RequestID: m.GetRequestId(), Version: m.GetVersion(), DryRun: m.GetDryRun(),
	})
	return message.Reply(&signalboxv1.StartBatchResponse{Batch: batchMessage(b), Created: created}, err)
}

// GetBatch returns one batch.
func (h *Handler) GetBatch(
	ctx context.Context, req *connect.Request[signalboxv1.GetBatchRequest],
) (*connect.Response[signalboxv1.GetBatchResponse], error) {
	b, err := h.service.Get(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.GetBatchResponse{Batch: batchMessage(b)}, err)
}

// ListBatches lists batches, newest first.
func (h *Handler) ListBatches(
	ctx context.Context, req *connect.Request[signalboxv1.ListBatchesRequest],
) (*connect.Response[signalboxv1.ListBatchesResponse], error) {
	batches, next, err := page.List(req.Msg, page.Default, page.Most,
		func(before *string, limit int) ([]batch.Batch, error) {
			return h.service.List(ctx, batch.ListFilter{Project: message.ProjectOf(req.Msg.GetProject()), Before: page.From(before), Limit: limit})
		},
		func(b batch.Batch) string { return b.ID })
	res := &signalboxv1.ListBatchesResponse{NextPageToken: next}
	for _, b := range batches {
		res.Batches = append(res.Batches, batchMessage(b))
	}
	return message.Reply(res, err)
}

// ListBatchItems lists the runs of a batch and what became of each.
func (h *Handler) ListBatchItems(
	ctx context.Context, req *connect.Request[signalboxv1.ListBatchItemsRequest],
) (*connect.Response[signalboxv1.ListBatchItemsResponse], error) {
	m := req.Msg
	items, next, err := page.List(m, itemsDefault, itemsMost,
		func(after *int64, limit int) ([]batch.Item, error) {
			return h.service.Items(ctx, batch.ItemFilter{
				Project: message.ProjectOf(m.GetProject()), Batch: m.GetId(), Status: batch.ItemStatus(m.GetStatus()), After: page.From(after), Limit: limit,
			})
		},
		func(i batch.Item) int64 { return i.Number })
	res := &signalboxv1.ListBatchItemsResponse{NextPageToken: next}
	for _, i := range items {
		res.Items = append(res.Items, &signalboxv1.BatchItem{
			RunId: i.RunID, Status: string(i.Status), Error: i.Error, NewRunId: i.NewRunID, EndTime: message.Timestamp(i.EndedAt),
		})
	}
	return message.Reply(res, err)
}

// PauseBatch stops a batch after what is in flight.
func (h *Handler) PauseBatch(
	ctx context.Context, req *connect.Request[signalboxv1.PauseBatchRequest],
) (*connect.Response[signalboxv1.PauseBatchResponse], error) {
	b, err := h.service.Pause(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.PauseBatchResponse{Batch: batchMessage(b)}, err)
}

// UnpauseBatch lets a batch go on.
func (h *Handler) UnpauseBatch(
	ctx context.Context, req *connect.Request[signalboxv1.UnpauseBatchRequest],
) (*connect.Response[signalboxv1.UnpauseBatchResponse], error) {
	b, err := h.service.Unpause(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.UnpauseBatchResponse{Batch: batchMessage(b)}, err)
}

// RetryBatch does the items again that failed.
func (h *Handler) RetryBatch(
	ctx context.Context, req *connect.Request[signalboxv1.RetryBatchRequest],
) (*connect.Response[signalboxv1.RetryBatchResponse], error) {
	b, err := h.service.Retry(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.RetryBatchResponse{Batch: batchMessage(b)}, err)
}

func filterOf(m *signalboxv1.BatchFilter) (*batch.Filter, error) {
	if m == nil {
		return nil, nil
	}
	f := &batch.Filter{Workflow: m.GetWorkflow(), Version: m.GetVersion(), Problems: m.GetProblems(), Trigger: m.GetTrigger(), NotReplayed: m.GetNotReplayed()}
	for _, status := range m.GetStatuses() {
		f.Statuses = append(f.Statuses, run.Status(status))
	}
	var err error
	if f.Since, err = message.Time("filter.since", m.GetSince()); err != nil {
		return nil, err
	}
	f.Until, err = message.Time("filter.until", m.GetUntil())
	return f, err
}

func batchMessage(b batch.Batch) *signalboxv1.Batch {
	m := &signalboxv1.Batch{
		Id: b.ID, Project: b.Project, Action: string(b.Action), Status: string(b.Status), Reason: b.Reason, Rate: b.Rate,
		Total: b.Total, Pending: b.Pending(), Succeeded: b.Succeeded, Refused: b.Refused, Failed: b.Failed, Waiting: b.Waiting,
		Actor: b.Actor.Name, RequestId: b.RequestID, Version: b.Version,
		CreateTime: message.Timestamp(b.CreatedAt), EndTime: message.Timestamp(b.EndedAt),
	}
	if f := b.Filter; f != nil {
		m.Filter = &signalboxv1.BatchFilter{
			Workflow: f.Workflow, Version: f.Version, Since: message.Timestamp(f.Since), Until: message.Timestamp(f.Until),
			Problems: f.Problems, Trigger: f.Trigger, NotReplayed: f.NotReplayed,
		}
		for _, status := range f.Statuses {
			m.Filter.Statuses = append(m.Filter.Statuses, string(status))
		}
	}
	return m
}
