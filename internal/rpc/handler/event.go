package handler

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// EventService is the domain's service of events. It validates events and projects.
type EventService interface {
	// Publish commits events, in order, all or none.
	Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error)
	Get(ctx context.Context, project string, position int64) (event.Event, error)
	// List returns events without their data, newest first.
	List(ctx context.Context, f event.ListFilter) ([]event.Event, error)
	// Deliveries returns the deliveries of an event.
	Deliveries(ctx context.Context, project string, position int64) ([]event.Delivery, error)
	// ToRun returns the deliveries of listed events to a run.
	ToRun(ctx context.Context, project, runID string, events []event.Event) ([]event.Delivery, error)
	// Redeliver makes pending and dead deliveries of an event due immediately, all of them if no IDs are given, and
	// returns them.
	Redeliver(ctx context.Context, project string, position int64, ids []string, reason string) ([]event.Delivery, error)
}

// Events implements signalbox.v1.EventService.
type Events struct {
	service   EventService
	explainer Explainer
}

// PublishEvents commits events.
func (h *Events) PublishEvents(
	ctx context.Context, req *connect.Request[signalboxv1.PublishEventsRequest],
) (*connect.Response[signalboxv1.PublishEventsResponse], error) {
	m := req.Msg
	if len(m.GetEvents()) == 0 {
		return nil, apperror.New(apperror.Invalid, apperror.EventInvalid, "the request has no events: give at least one").
			WithField("events", "is required")
	}
	events, err := eventsOf(m.GetEvents())
	if err != nil {
		return nil, err
	}
	accepted, err := h.service.Publish(ctx, message.ProjectOf(m.GetProject()), events)
	if err != nil {
		return nil, err
	}
	res := &signalboxv1.PublishEventsResponse{}
	for i, a := range accepted {
		res.Accepted = append(res.Accepted, &signalboxv1.AcceptedEvent{
			Id: events[i].ID, Source: events[i].Source, Position: a.Position, Duplicate: a.Duplicate, Different: a.Different,
		})
	}
	return connect.NewResponse(res), nil
}

// ListEvents lists events, newest first, without their data.
func (h *Events) ListEvents(
	ctx context.Context, req *connect.Request[signalboxv1.ListEventsRequest],
) (*connect.Response[signalboxv1.ListEventsResponse], error) {
	filter, err := eventFilter(req.Msg)
	if err != nil {
		return nil, err
	}
	events, next, err := listPage(req.Msg, pageDefault, pageMost,
		func(before *int64, limit int) ([]event.Event, error) {
			filter.Before, filter.Limit = startOf(before), limit
			return h.service.List(ctx, filter)
		},
		func(e event.Event) int64 { return e.Position })
	res := &signalboxv1.ListEventsResponse{NextPageToken: next}
	for _, e := range events {
		res.Events = append(res.Events, eventMessage(e))
	}
	if err == nil && filter.RunID != "" {
		var deliveries []event.Delivery
		deliveries, err = h.service.ToRun(ctx, filter.Project, filter.RunID, events)
		res.Deliveries = deliveryMessages(deliveries)
	}
	return message.Reply(res, err)
}

func eventFilter(m *signalboxv1.ListEventsRequest) (event.ListFilter, error) {
	f := event.ListFilter{
		Project: message.ProjectOf(m.GetProject()), Type: m.GetType(), Source: m.GetSource(), ID: m.GetId(),
		Dead:     m.GetDead(),
		Retrying: m.GetRetrying(), RunID: m.GetRunId(),
	}
	for _, status := range m.GetStatuses() {
		f.Statuses = append(f.Statuses, event.Status(status))
	}
	var err error
	if f.Since, err = message.Time("since", m.GetSince()); err != nil {
		return event.ListFilter{}, err
	}
	f.Until, err = message.Time("until", m.GetUntil())
	return f, err
}

// GetEvent returns one event with its deliveries.
func (h *Events) GetEvent(
	ctx context.Context, req *connect.Request[signalboxv1.GetEventRequest],
) (*connect.Response[signalboxv1.GetEventResponse], error) {
	project, position := message.ProjectOf(req.Msg.GetProject()), req.Msg.GetPosition()
	if position == 0 {
		var err error
		if position, err = h.find(ctx, project, req.Msg.GetId(), req.Msg.GetSource()); err != nil {
			return nil, err
		}
	}
	e, err := h.service.Get(ctx, project, position)
	if err != nil {
		return nil, err
	}
	deliveries, err := h.service.Deliveries(ctx, project, position)
	res := &signalboxv1.GetEventResponse{Event: eventMessage(e), Deliveries: deliveryMessages(deliveries)}
	if err == nil && h.explainer != nil {
		err = h.addMissed(ctx, e, deliveries, res)
	}
	return message.Reply(res, err)
}

// addMissed adds the listen tasks that have not taken an event.
func (h *Events) addMissed(ctx context.Context, e event.Event, deliveries []event.Delivery,
	to *signalboxv1.GetEventResponse) error {
	missed, more, err := h.explainer.Missed(ctx, e, deliveries)
	to.MoreMissed = more
	for _, m := range missed {
		to.Missed = append(to.Missed, &signalboxv1.MissedListener{
			RunId: m.RunID, Workflow: m.Workflow, Version: m.Version, Step: m.Step, Task: m.Task,
			Since: message.Timestamp(m.Since), Reason: m.Reason,
		})
	}
	return err
}

// find returns the position of the only event with an ID, of the given source or of any.
func (h *Events) find(ctx context.Context, project, id, source string) (int64, error) {
	if id == "" {
		return 0, apperror.New(apperror.Invalid, apperror.InvalidArgument, "no event named: give its position or its id").
			WithField("position", "or id is required")
	}
	found, err := h.service.List(ctx, event.ListFilter{Project: project, ID: id, Source: source, Limit: 2})
	switch {
	case err != nil:
		return 0, err
	case len(found) == 0 && source != "":
		return 0, apperror.New(apperror.NotFound, apperror.EventNotFound, "project %q has no event %q of source %q", project,
			id, source)
	case len(found) == 0:
		return 0, apperror.New(apperror.NotFound, apperror.EventNotFound, "project %q has no event %q", project, id)
	case len(found) > 1:
		return 0, apperror.New(apperror.Invalid, apperror.EventAmbiguous,
			"several sources have an event %q, for example %q and %q: give the source too",
			id, found[0].Source, found[1].Source).WithField("source", "is required for this id")
	}
	return found[0].Position, nil
}

// RedeliverEvent makes deliveries of an event due immediately.
func (h *Events) RedeliverEvent(
	ctx context.Context, req *connect.Request[signalboxv1.RedeliverEventRequest],
) (*connect.Response[signalboxv1.RedeliverEventResponse], error) {
	m := req.Msg
	deliveries, err := h.service.Redeliver(ctx, message.ProjectOf(m.GetProject()), m.GetPosition(), m.GetDeliveryIds(),
		m.GetReason())
	return message.Reply(&signalboxv1.RedeliverEventResponse{Deliveries: deliveryMessages(deliveries)}, err)
}

// eventsOf converts messages; the domain validates the values. It returns all conversion errors at once.
func eventsOf(messages []*signalboxv1.CloudEvent) ([]event.Event, error) {
	events := make([]event.Event, len(messages))
	var found []apperror.Field
	for i, m := range messages {
		prefix := ""
		if len(messages) > 1 {
			prefix = fmt.Sprintf("events[%d].", i)
		}
		add := func(name, violation string) {
			found = append(found, apperror.Field{Path: prefix + name, Message: violation})
		}
		e := event.Event{
			ID: m.GetId(), Source: m.GetSource(), Type: m.GetType(), Subject: m.GetSubject(),
			DataContentType: m.GetDataContentType(), DataSchema: m.GetDataSchema(),
		}
		if at, err := message.Time("time", m.GetTime()); err != nil {
			add("time", "is not a time")
		} else {
			e.Time = at
		}
		if m.GetExtensions() != nil {
			e.Extensions = json.RawMessage(m.GetExtensions().GetJson())
		}
		switch {
		case m.GetData() != nil && len(m.GetDataBase64()) > 0:
			add("dataBase64", "is given together with data; one of them is the payload")
		case m.GetData() != nil:
			e.Data = json.RawMessage(m.GetData().GetJson())
		case len(m.GetDataBase64()) > 0:
			e.Data, _ = json.Marshal(m.GetDataBase64()) //nolint:errchkjson // bytes always encode, as base64
			e.DataBase64 = true
		}
		events[i] = e
	}
	if len(found) > 0 {
		return nil, event.Refusal(found)
	}
	return events, nil
}

// EventMessages converts events to the messages in which they are published.
func EventMessages(events []event.Event) []*signalboxv1.CloudEvent {
	messages := make([]*signalboxv1.CloudEvent, len(events))
	for i, e := range events {
		m := eventMessage(e)
		messages[i] = &signalboxv1.CloudEvent{
			Id: m.GetId(), Source: m.GetSource(), Type: m.GetType(), Subject: m.GetSubject(), Time: m.GetTime(),
			DataContentType: m.GetDataContentType(), DataSchema: m.GetDataSchema(), Extensions: m.GetExtensions(),
			Data: m.GetData(), DataBase64: m.GetDataBase64(),
		}
	}
	return messages
}

func eventMessage(e event.Event) *signalboxv1.Event {
	m := &signalboxv1.Event{
		Position: e.Position, Project: e.Project, Id: e.ID, Source: e.Source, Type: e.Type, Subject: e.Subject,
		Time: publishedTime(e), DataContentType: e.DataContentType, DataSchema: e.DataSchema,
		Extensions: message.JSON(e.Extensions), Status: string(e.Status), Reason: e.Reason,
		ReceiveTime: message.Timestamp(e.ReceivedAt), Actor: e.Actor,
	}
	if !e.DataBase64 {
		m.Data = message.JSON(e.Data)
		return m
	}
	var text string
	if json.Unmarshal(e.Data, &text) == nil {
		m.DataBase64, _ = base64.StdEncoding.DecodeString(text) // it was checked when it was accepted
	}
	return m
}

// publishedTime returns the time of an event in full: publishers may give nanoseconds.
func publishedTime(e event.Event) *timestamppb.Timestamp {
	if e.Time.IsZero() {
		return nil
	}
	return timestamppb.New(e.Time)
}

func deliveryMessages(deliveries []event.Delivery) []*signalboxv1.Delivery {
	messages := make([]*signalboxv1.Delivery, len(deliveries))
	for i, d := range deliveries {
		messages[i] = &signalboxv1.Delivery{
			Id: d.ID, Kind: string(d.Kind), Workflow: d.Workflow, Version: d.Version, RunId: d.RunID, Status: string(d.Status),
			Attempts: int32(d.Attempts), Reason: d.Reason, Positions: d.Positions, //nolint:gosec // attempts count up from 1
			CreateTime: message.Timestamp(d.CreatedAt), UpdateTime: message.Timestamp(d.UpdatedAt),
		}
		if d.Status == event.DeliveryPending {
			messages[i].NextTime = message.Timestamp(d.NextAt)
		}
	}
	return messages
}
