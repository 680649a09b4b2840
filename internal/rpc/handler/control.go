package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// CancelRun requests the cancellation of the run from Temporal.
func (h *Runs) CancelRun(
	ctx context.Context, req *connect.Request[signalboxv1.CancelRunRequest],
) (*connect.Response[signalboxv1.CancelRunResponse], error) {
	r, err := controlRun(ctx, req.Msg, h.service.Cancel)
	return message.Reply(&signalboxv1.CancelRunResponse{Run: h.messages.Run(ctx, r)}, err)
}

// TerminateRun ends the run immediately.
func (h *Runs) TerminateRun(
	ctx context.Context, req *connect.Request[signalboxv1.TerminateRunRequest],
) (*connect.Response[signalboxv1.TerminateRunResponse], error) {
	r, err := controlRun(ctx, req.Msg, h.service.Terminate)
	return message.Reply(&signalboxv1.TerminateRunResponse{Run: h.messages.Run(ctx, r)}, err)
}

// PauseRun stops the run before its next task.
func (h *Runs) PauseRun(
	ctx context.Context, req *connect.Request[signalboxv1.PauseRunRequest],
) (*connect.Response[signalboxv1.PauseRunResponse], error) {
	r, err := controlRun(ctx, req.Msg, h.service.Pause)
	return message.Reply(&signalboxv1.PauseRunResponse{Run: h.messages.Run(ctx, r)}, err)
}

// UnpauseRun resumes a paused run.
func (h *Runs) UnpauseRun(
	ctx context.Context, req *connect.Request[signalboxv1.UnpauseRunRequest],
) (*connect.Response[signalboxv1.UnpauseRunResponse], error) {
	r, err := controlRun(ctx, req.Msg, h.service.Unpause)
	return message.Reply(&signalboxv1.UnpauseRunResponse{Run: h.messages.Run(ctx, r)}, err)
}

// ReplayRun starts a new run with the input of an earlier one.
func (h *Runs) ReplayRun(
	ctx context.Context, req *connect.Request[signalboxv1.ReplayRunRequest],
) (*connect.Response[signalboxv1.ReplayRunResponse], error) {
	m := req.Msg
	if err := requireID(m.GetId()); err != nil {
		return nil, err
	}
	input, err := jsonOf("input", m.GetInput())
	if err != nil {
		return nil, err
	}
	patch, err := jsonOf("patch", m.GetPatch())
	if err != nil {
		return nil, err
	}
	r, created, err := h.service.Replay(ctx, control.ReplayRequest{
		Project: message.ProjectOf(m.GetProject()), RunID: m.GetId(), Input: input, Patch: patch,
		Version: m.GetVersion(), Reason: m.GetReason(), RequestID: m.GetRequestId(), DryRun: m.GetDryRun(),
		Labels: m.GetLabels(),
	})
	return started(r, &signalboxv1.ReplayRunResponse{Run: h.startedRun(ctx, r), Created: created}, err)
}

// controlRequest is a request to control one run.
type controlRequest interface {
	GetProject() string
	GetId() string
	GetReason() string
}

func controlRun(ctx context.Context, m controlRequest,
	do func(ctx context.Context, project, id, reason string) (run.Run, error)) (run.Run, error) {
	if err := requireID(m.GetId()); err != nil {
		return run.Run{}, err
	}
	return do(ctx, message.ProjectOf(m.GetProject()), m.GetId(), m.GetReason())
}
