package cli_test

import (
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// events is the EventService in memory, for one project.
type events struct {
	api        *api
	kept       []*signalboxv1.Event
	deliveries []*signalboxv1.Delivery
	refuse     error // answer of PublishEvents and RedeliverEvent

	refuseAfter int // so many calls of PublishEvents
}

func (e *events) PublishEvents(_ context.Context,
	request *connect.Request[signalboxv1.PublishEventsRequest]) (*connect.Response[signalboxv1.PublishEventsResponse],
	error) {
	e.api.mu.Lock()
	defer e.api.mu.Unlock()
	e.api.note(request.Msg)
	if e.refuse != nil && e.refuseAfter == 0 {
		return nil, e.refuse
	}
	e.refuseAfter = max(0, e.refuseAfter-1)
	answer := &signalboxv1.PublishEventsResponse{}
	for _, given := range request.Msg.GetEvents() {
		a := &signalboxv1.AcceptedEvent{Id: given.GetId(), Source: given.GetSource(), Position: int64(len(e.kept) + 1)}
		for _, k := range e.kept {
			if k.GetId() == given.GetId() && k.GetSource() == given.GetSource() {
				a.Position, a.Duplicate = k.GetPosition(), true
			}
		}
		if !a.GetDuplicate() {
			e.kept = append(e.kept, &signalboxv1.Event{
				Position: a.GetPosition(), Project: "default", Id: given.GetId(), Source: given.GetSource(), Type: given.GetType(),
				Subject: given.GetSubject(), Time: given.GetTime(), DataContentType: given.GetDataContentType(),
				DataSchema: given.GetDataSchema(),
				Extensions: given.GetExtensions(), Data: given.GetData(), DataBase64: given.GetDataBase64(),
				Status: "pending", ReceiveTime: timestamppb.New(noon), Actor: "local",
			})
		}
		answer.Accepted = append(answer.Accepted, a)
	}
	return connect.NewResponse(answer), nil
}

func (e *events) ListEvents(_ context.Context,
	request *connect.Request[signalboxv1.ListEventsRequest]) (*connect.Response[signalboxv1.ListEventsResponse], error) {
	e.api.mu.Lock()
	defer e.api.mu.Unlock()
	e.api.note(request.Msg)
	answer := &signalboxv1.ListEventsResponse{}
	for _, k := range slices.Backward(e.kept) {
		if token := request.Msg.GetPageToken(); token != "" && fmt.Sprint(k.GetPosition()) >= token {
			continue
		}
		if len(answer.GetEvents()) == int(request.Msg.GetPageSize()) {
			answer.NextPageToken = fmt.Sprint(k.GetPosition() + 1)
			break
		}
		answer.Events = append(answer.Events, proto.CloneOf(k))
	}
	return connect.NewResponse(answer), nil
}

func (e *events) GetEvent(_ context.Context,
	request *connect.Request[signalboxv1.GetEventRequest]) (*connect.Response[signalboxv1.GetEventResponse], error) {
	e.api.mu.Lock()
	defer e.api.mu.Unlock()
	e.api.note(request.Msg)
	m := request.Msg
	for _, k := range e.kept {
		if k.GetPosition() == m.GetPosition() || k.GetId() == m.GetId() &&
			(m.GetSource() == "" || m.GetSource() == k.GetSource()) {
			return connect.NewResponse(&signalboxv1.GetEventResponse{Event: k, Deliveries: e.deliveries}), nil
		}
	}
	return nil, refusal(connect.CodeNotFound, "EVENT_NOT_FOUND", "project \"default\" has no such event")
}

func (e *events) RedeliverEvent(_ context.Context,
	request *connect.Request[signalboxv1.RedeliverEventRequest]) (*connect.Response[signalboxv1.RedeliverEventResponse],
	error) {
	e.api.mu.Lock()
	defer e.api.mu.Unlock()
	e.api.note(request.Msg)
	if e.refuse != nil {
		return nil, e.refuse
	}
	return connect.NewResponse(&signalboxv1.RedeliverEventResponse{Deliveries: e.deliveries}), nil
}

// dispatchers are the DispatcherService and the WorkerService with responses set by a test.
type dispatchers struct {
	api     *api
	list    []*signalboxv1.Dispatcher
	report  *signalboxv1.ReconcileDispatchersResponse
	workers *signalboxv1.ListWorkersResponse
	refuse  error
}

func (d *dispatchers) ListDispatchers(_ context.Context,
	request *connect.Request[signalboxv1.ListDispatchersRequest]) (*connect.Response[signalboxv1.ListDispatchersResponse],
	error) {
	d.api.mu.Lock()
	defer d.api.mu.Unlock()
	d.api.note(request.Msg)
	return connect.NewResponse(&signalboxv1.ListDispatchersResponse{Dispatchers: d.list}), d.refuse
}

func (d *dispatchers) GetDispatcher(_ context.Context,
	request *connect.Request[signalboxv1.GetDispatcherRequest]) (*connect.Response[signalboxv1.GetDispatcherResponse],
	error) {
	d.api.mu.Lock()
	defer d.api.mu.Unlock()
	for _, known := range d.list {
		if known.GetProject() == request.Msg.GetProject() {
			return connect.NewResponse(&signalboxv1.GetDispatcherResponse{Dispatcher: known}), nil
		}
	}
	return nil, refusal(connect.CodeNotFound, "PROJECT_NOT_FOUND", "there is no project \""+request.Msg.GetProject()+"\"")
}

func (d *dispatchers) HandOverDispatcher(_ context.Context,
	request *connect.Request[signalboxv1.HandOverDispatcherRequest]) (
	*connect.Response[signalboxv1.HandOverDispatcherResponse], error) {
	d.api.mu.Lock()
	defer d.api.mu.Unlock()
	d.api.note(request.Msg)
	if d.refuse != nil {
		return nil, d.refuse
	}
	return connect.NewResponse(
		&signalboxv1.HandOverDispatcherResponse{Owner: &signalboxv1.DispatcherOwner{ServerId: "host-1", Epoch: 7}}), nil
}

func (d *dispatchers) ReconcileDispatchers(_ context.Context,
	request *connect.Request[signalboxv1.ReconcileDispatchersRequest]) (
	*connect.Response[signalboxv1.ReconcileDispatchersResponse], error) {
	d.api.mu.Lock()
	defer d.api.mu.Unlock()
	d.api.note(request.Msg)
	if d.refuse != nil {
		return nil, d.refuse
	}
	return connect.NewResponse(proto.CloneOf(d.report)), nil
}

func (d *dispatchers) ListWorkers(_ context.Context,
	request *connect.Request[signalboxv1.ListWorkersRequest]) (*connect.Response[signalboxv1.ListWorkersResponse], error) {
	d.api.mu.Lock()
	defer d.api.mu.Unlock()
	d.api.note(request.Msg)
	return connect.NewResponse(d.workers), d.refuse
}
