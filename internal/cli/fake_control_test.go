package cli_test

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// open returns an open run, to change it.
func (a *api) open(id string, change func(*signalboxv1.Run)) (*signalboxv1.Run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	run, err := a.find(id)
	if err != nil {
		return nil, err
	}
	if run.GetEndTime() != nil {
		return nil, refusal(connect.CodeFailedPrecondition, "RUN_ENDED",
			"run "+id+" has ended already: it is "+run.GetStatus())
	}
	a.seq++
	run.Sequence = a.seq
	change(run)
	a.wake()
	return proto.CloneOf(run), nil
}

func (a *api) TerminateRun(_ context.Context,
	request *connect.Request[signalboxv1.TerminateRunRequest]) (*connect.Response[signalboxv1.TerminateRunResponse],
	error) {
	run, err := a.open(request.Msg.GetId(), func(r *signalboxv1.Run) {
		r.Status, r.TerminateReason = "terminated", request.Msg.GetReason()
		r.EndTime = timestamppb.New(r.GetCreateTime().AsTime().Add(time.Second))
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&signalboxv1.TerminateRunResponse{Run: run}), nil
}

func (a *api) PauseRun(_ context.Context,
	request *connect.Request[signalboxv1.PauseRunRequest]) (*connect.Response[signalboxv1.PauseRunResponse], error) {
	run, err := a.open(request.Msg.GetId(), func(r *signalboxv1.Run) {
		if request.Msg.GetReason() != "no worker" {
			r.Status, r.WaitingKind = "waiting", "paused"
		}
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&signalboxv1.PauseRunResponse{Run: run}), nil
}

func (a *api) UnpauseRun(_ context.Context,
	request *connect.Request[signalboxv1.UnpauseRunRequest]) (*connect.Response[signalboxv1.UnpauseRunResponse], error) {
	run, err := a.open(request.Msg.GetId(), func(r *signalboxv1.Run) { r.Status, r.WaitingKind = "running", "" })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&signalboxv1.UnpauseRunResponse{Run: run}), nil
}

func (a *api) ReplayRun(_ context.Context,
	request *connect.Request[signalboxv1.ReplayRunRequest]) (*connect.Response[signalboxv1.ReplayRunResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	of, err := a.find(request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	for _, run := range a.runs {
		if run.GetRequestId() == request.Msg.GetRequestId() {
			return connect.NewResponse(&signalboxv1.ReplayRunResponse{Run: proto.CloneOf(run)}), nil
		}
	}
	run := proto.CloneOf(of)
	a.seq++
	run.Id, run.RequestId, run.ReplayOf, run.Trigger, run.Sequence = fmt.Sprintf("run-%d", len(a.runs)+1),
		request.Msg.GetRequestId(), of.GetId(), "replay", a.seq
	run.Status, run.EndTime, run.Replays = "running", nil, nil
	of.Replays = append(of.Replays, run.GetId())
	a.runs = append(a.runs, run)
	a.wake()
	return connect.NewResponse(&signalboxv1.ReplayRunResponse{Run: proto.CloneOf(run), Created: true}), nil
}

func (a *api) ExportRun(_ context.Context, request *connect.Request[signalboxv1.ExportRunRequest],
	stream *connect.ServerStream[httpbody.HttpBody]) error {
	a.mu.Lock()
	_, err := a.find(request.Msg.GetId())
	a.mu.Unlock()
	if err != nil {
		return err
	}
	for _, part := range []string{"{\n", `"format":"signalbox.run/1"`, "\n}\n"} {
		if err := stream.Send(&httpbody.HttpBody{ContentType: "application/json", Data: []byte(part)}); err != nil {
			return err
		}
	}
	return nil
}

func (a *api) ExportRuns(_ context.Context, request *connect.Request[signalboxv1.ExportRunsRequest],
	stream *connect.ServerStream[httpbody.HttpBody]) error {
	a.mu.Lock()
	a.note(proto.CloneOf(request.Msg))
	a.mu.Unlock()
	if err := stream.Send(&httpbody.HttpBody{ContentType: "text/csv", Data: []byte("id,status\n")}); err != nil {
		return err
	}
	if request.Msg.GetFilter().GetVersion() == "broken" {
		return refusal(connect.CodeUnavailable, "STORE_UNAVAILABLE", "the database is away")
	}
	return nil
}
