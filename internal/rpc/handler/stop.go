package handler

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl/graph"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// StopWorkflow pauses a workflow and cancels its open runs as one batch.
func (h *Workflows) StopWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.StopWorkflowRequest],
) (*connect.Response[signalboxv1.StopWorkflowResponse], error) {
	if h.opts.Batches == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, errors.New("this server has no batches"))
	}
	m := req.Msg
	stop := batch.StopRequest{
		Project: message.ProjectOf(m.GetProject()), Workflow: m.GetWorkflow(), Reason: m.GetReason(),
		RequestID:    m.GetRequestId(),
		ExpectedOpen: m.ExpectedOpen,
	}
	if m.GetDryRun() {
		return h.previewStop(ctx, stop)
	}
	s, err := h.opts.Batches.Stop(ctx, stop)
	return message.Reply(&signalboxv1.StopWorkflowResponse{
		Workflow: workflowMessage(s.Workflow), Batch: batchMessage(s.Batch), Created: s.Created, Paused: s.Paused,
		Open: openCounts(s.Open),
	}, err)
}

func (h *Workflows) previewStop(ctx context.Context,
	req batch.StopRequest) (*connect.Response[signalboxv1.StopWorkflowResponse], error) {
	p, err := h.opts.Batches.PreviewStop(ctx, req)
	if err != nil {
		return nil, err
	}
	res := &signalboxv1.StopWorkflowResponse{
		Workflow: workflowMessage(p.Workflow), Batch: batchMessage(p.Batch), Open: openCounts(p.Open),
		Eligible: p.Eligible, Unchanged: p.Unchanged, Preview: ineligible(p.Ineligible),
	}
	found, err := h.service.Graph(ctx, req.Project, p.Workflow.Name, "", false)
	if err != nil {
		return nil, err
	}
	for _, n := range found.Graph.Nodes {
		if n.ID == graph.Start {
			res.StartedBy = n.Label
		}
	}
	res.Timer, err = h.timer(ctx, req.Project, p.Workflow.Name)
	return message.Reply(res, err)
}

func openCounts(counts map[run.Status]int64) map[string]int64 {
	out := make(map[string]int64, len(counts))
	for status, n := range counts {
		out[string(status)] = n
	}
	return out
}
