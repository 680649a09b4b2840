package cli_test

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// batches is the BatchService in memory. Each read of a batch executes one more of its runs; those with the ID "bad"
// fail.
type batches struct {
	api   *api
	kept  []*signalboxv1.Batch
	items map[string][]*signalboxv1.BatchItem
	why   string // why the next batch waits at first
}

func (b *batches) find(id string) (*signalboxv1.Batch, error) {
	for _, k := range b.kept {
		if k.GetId() == id {
			return k, nil
		}
	}
	return nil, refusal(connect.CodeNotFound, "BATCH_NOT_FOUND", fmt.Sprintf("batch %q does not exist", id))
}

func (b *batches) StartBatch(_ context.Context,
	request *connect.Request[signalboxv1.StartBatchRequest]) (*connect.Response[signalboxv1.StartBatchResponse], error) {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	m := request.Msg
	b.api.note(proto.CloneOf(m))
	for _, k := range b.kept {
		if k.GetRequestId() == m.GetRequestId() {
			return connect.NewResponse(&signalboxv1.StartBatchResponse{Batch: proto.CloneOf(k)}), nil
		}
	}
	ids := m.GetRunIds()
	if m.GetFilter() != nil {
		ids = []string{"run-1", "run-2"}
	}
	made := &signalboxv1.Batch{
		Project: "default", Action: m.GetAction(), Version: m.GetVersion(), Status: "running", Reason: m.GetReason(),
		Rate: 50, Total: int64(len(ids)),
		Pending: int64(len(ids)), Actor: "local", RequestId: m.GetRequestId(), CreateTime: timestamppb.New(noon),
		Filter: m.GetFilter(), Waiting: b.why,
	}
	if m.GetDryRun() {
		made.Status = ""
		preview := []*signalboxv1.IneligibleRuns{{Reason: "RUN_ENDED", Count: 1, SampleRunIds: []string{"run-2"}}}
		return connect.NewResponse(&signalboxv1.StartBatchResponse{Batch: made, Preview: preview, Eligible: 1}), nil
	}
	made.Id = fmt.Sprintf("batch-%d", len(b.kept)+1)
	b.kept = append(b.kept, made)
	if b.items == nil {
		b.items = map[string][]*signalboxv1.BatchItem{}
	}
	for _, id := range ids {
		b.items[made.GetId()] = append(b.items[made.GetId()], &signalboxv1.BatchItem{RunId: id, Status: "pending"})
	}
	return connect.NewResponse(&signalboxv1.StartBatchResponse{Batch: proto.CloneOf(made), Created: true}), nil
}

func (b *batches) GetBatch(_ context.Context,
	request *connect.Request[signalboxv1.GetBatchRequest]) (*connect.Response[signalboxv1.GetBatchResponse], error) {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	k, err := b.find(request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	for _, item := range b.items[k.GetId()] {
		if item.GetStatus() != "pending" {
			continue
		}
		item.Status, k.Waiting = "succeeded", ""
		if item.GetRunId() == "bad" {
			item.Status, item.Error = "failed", "odd"
			k.Failed++
		} else {
			k.Succeeded++
		}
		k.Pending--
		break
	}
	if k.GetPending() == 0 {
		k.Status, k.EndTime = "completed", timestamppb.New(noon)
	}
	return connect.NewResponse(&signalboxv1.GetBatchResponse{Batch: proto.CloneOf(k)}), nil
}

func (b *batches) ListBatches(_ context.Context,
	request *connect.Request[signalboxv1.ListBatchesRequest]) (*connect.Response[signalboxv1.ListBatchesResponse], error) {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	b.api.note(request.Msg)
	return connect.NewResponse(&signalboxv1.ListBatchesResponse{Batches: b.kept}), nil
}

func (b *batches) ListBatchItems(_ context.Context,
	request *connect.Request[signalboxv1.ListBatchItemsRequest]) (*connect.Response[signalboxv1.ListBatchItemsResponse],
	error) {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	b.api.note(request.Msg)
	if _, err := b.find(request.Msg.GetId()); err != nil {
		return nil, err
	}
	answer := &signalboxv1.ListBatchItemsResponse{}
	for _, item := range b.items[request.Msg.GetId()] {
		if status := request.Msg.GetStatus(); status == "" || status == item.GetStatus() {
			answer.Items = append(answer.Items, item)
		}
	}
	return connect.NewResponse(answer), nil
}

func (b *batches) setStatus(id, status string) (*signalboxv1.Batch, error) {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	k, err := b.find(id)
	if err != nil {
		return nil, err
	}
	k.Status = status
	return proto.CloneOf(k), nil
}

func (b *batches) PauseBatch(_ context.Context,
	request *connect.Request[signalboxv1.PauseBatchRequest]) (*connect.Response[signalboxv1.PauseBatchResponse], error) {
	k, err := b.setStatus(request.Msg.GetId(), "paused")
	return connect.NewResponse(&signalboxv1.PauseBatchResponse{Batch: k}), err
}

func (b *batches) UnpauseBatch(_ context.Context,
	request *connect.Request[signalboxv1.UnpauseBatchRequest]) (*connect.Response[signalboxv1.UnpauseBatchResponse],
	error) {
	k, err := b.setStatus(request.Msg.GetId(), "running")
	return connect.NewResponse(&signalboxv1.UnpauseBatchResponse{Batch: k}), err
}

func (b *batches) RetryBatch(_ context.Context,
	request *connect.Request[signalboxv1.RetryBatchRequest]) (*connect.Response[signalboxv1.RetryBatchResponse], error) {
	k, err := b.setStatus(request.Msg.GetId(), "running")
	return connect.NewResponse(&signalboxv1.RetryBatchResponse{Batch: k}), err
}
