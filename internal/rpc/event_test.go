package rpc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc"
)

// fakeEvents keeps events in memory, by project.
type fakeEvents struct {
	mu          sync.Mutex
	kept        map[string][]event.Event
	deliveries  []event.Delivery
	redelivered []string
	listed      event.ListFilter
	refuse      error
	deadline    bool
}

func newFakeEvents() *fakeEvents { return &fakeEvents{kept: map[string][]event.Event{}} }

func (f *fakeEvents) known(project string) error {
	if project != "default" {
		return apperror.New(apperror.NotFound, apperror.ProjectNotFound, "there is no project %q", project)
	}
	return nil
}

func (f *fakeEvents) Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return nil, f.refuse
	}
	if err := f.known(project); err != nil {
		return nil, err
	}
	if err := event.DefaultLimits().Validate(events); err != nil {
		return nil, err
	}
	_, f.deadline = ctx.Deadline()
	actor, _ := auth.ActorFrom(ctx)
	var accepted []event.Accepted
	for _, e := range events {
		i := slices.IndexFunc(f.kept[project], func(k event.Event) bool { return k.ID == e.ID && k.Source == e.Source })
		if i >= 0 {
			accepted = append(accepted, event.Accepted{Position: int64(i + 1), Duplicate: true})
			continue
		}
		e.Project, e.Position, e.ReceivedAt, e.Actor, e.Status = project, int64(len(f.kept[project])+1), noon, actor.Name,
			event.Pending
		f.kept[project] = append(f.kept[project], e)
		accepted = append(accepted, event.Accepted{Position: e.Position})
	}
	return accepted, nil
}

func (f *fakeEvents) Get(_ context.Context, project string, position int64) (event.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if position < 1 || position > int64(len(f.kept[project])) {
		return event.Event{}, apperror.New(apperror.NotFound, apperror.EventNotFound,
			"project %q has no event at position %d", project, position)
	}
	return f.kept[project][position-1], nil
}

func (f *fakeEvents) List(_ context.Context, filter event.ListFilter) ([]event.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.known(filter.Project); err != nil {
		return nil, err
	}
	f.listed = filter
	var found []event.Event
	for _, e := range slices.Backward(f.kept[filter.Project]) {
		if (filter.Before == 0 || e.Position < filter.Before) && (filter.ID == "" || e.ID == filter.ID) &&
			(filter.Source == "" || e.Source == filter.Source) && (filter.Type == "" || e.Type == filter.Type) &&
			(len(filter.Statuses) == 0 || slices.Contains(filter.Statuses, e.Status)) && len(found) < filter.Limit &&
			!filter.Dead {
			e.Data = nil
			found = append(found, e)
		}
	}
	return found, nil
}

func (f *fakeEvents) Deliveries(context.Context, string, int64) ([]event.Delivery, error) {
	return f.deliveries, nil
}

func (f *fakeEvents) ToRun(_ context.Context, _, runID string, events []event.Event) (list []event.Delivery, _ error) {
	for _, d := range f.deliveries {
		if d.RunID == runID && len(events) > 0 {
			list = append(list, d)
		}
	}
	return list, nil
}

func (f *fakeEvents) Redeliver(_ context.Context, project string, position int64, ids []string,
	reason string) ([]event.Delivery, error) {
	f.redelivered = append(f.redelivered, fmt.Sprint(project, " ", position, " ", ids, " ", reason))
	return f.deliveries, f.refuse
}

// startEvents starts a server with an event service.
func startEvents(t *testing.T) (*platform, *fakeEvents) {
	t.Helper()
	events := newFakeEvents()
	return start(t, func(o *rpc.Options) {
		o.Events, o.EventLimits, o.MaxRequestBytes = events, event.DefaultLimits(), 1<<20
	}), events
}

const posts = "/v1/projects/default/events"

const structured = "application/cloudevents+json"

// An event in any encoding is stored as the same event, digit for digit.
func TestEventsInEveryEncoding(t *testing.T) {
	t.Parallel()
	p, events := startEvents(t)
	const text = `{"specversion":"1.0","id":"1","source":"/orders","type":"created","time":"2026-01-31T12:00:00Z","subject":"7","trace":"x","data":{"n":12345678901234567890,"x":1.10}}`
	a := p.do("POST", posts, text, "Content-Type", structured+"; charset=utf-8")
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	require.JSONEq(t, `{"accepted":[{"id":"1","source":"/orders","position":1,"duplicate":false,"different":false}]}`,
		a.body)
	require.True(t, events.deadline, "it is a call like any other")

	a = p.do("POST", posts, `{"n":12345678901234567890,"x":1.10}`, "Content-Type", "application/json", "ce-specversion",
		"1.0", "ce-id", "2",
		"ce-source", "/orders", "ce-type", "created", "ce-time", "2026-01-31T12:00:00Z", "ce-subject", "7", "ce-trace", "x")
	require.Equal(t, http.StatusAccepted, a.status, a.body)

	a = p.do("POST", posts, "["+text+","+strings.Replace(text, `"id":"1"`, `"id":"3"`, 1)+"]", "Content-Type",
		"application/cloudevents-batch+json")
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	require.JSONEq(t, `{"accepted":[
		{"id":"1","source":"/orders","position":1,"duplicate":true,"different":false},{"id":"3","source":"/orders","position":3,"duplicate":false,"different":false}
	]}`, a.body)

	client := signalboxv1connect.NewEventServiceClient(p.client, p.base, connect.WithGRPCWeb())
	res, err := client.PublishEvents(t.Context(),
		connect.NewRequest(&signalboxv1.PublishEventsRequest{Events: []*signalboxv1.CloudEvent{{
			Id: "4", Source: "/orders", Type: "created", Subject: "7", Time: timestamppb.New(noon),
			Extensions: &signalboxv1.JsonValue{Json: `{"trace":"x"}`},
			Data:       &signalboxv1.JsonValue{Json: `{"n":12345678901234567890,"x":1.10}`},
		}}}))
	require.NoError(t, err)
	require.Equal(t, int64(4), res.Msg.GetAccepted()[0].GetPosition())

	for position := 1; position <= 4; position++ {
		got := p.do("GET", fmt.Sprintf("%s/%d", posts, position), "")
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Contains(t, got.body, `"data":{"n":12345678901234567890,"x":1.10}`)
		e := got.object()["event"].(map[string]any)
		for name, want := range map[string]any{
			"position": json.Number(fmt.Sprint(position)), "id": fmt.Sprint(position), "project": "default", "source": "/orders",
			"type":    "created",
			"subject": "7", "time": "2026-01-31T12:00:00Z", "extensions": map[string]any{"trace": "x"}, "status": "pending",
			"actor":       "local",
			"receiveTime": "2026-01-31T12:00:00Z",
		} {
			require.Equal(t, want, e[name], name)
		}
	}
}

func TestBinaryDataIsPreserved(t *testing.T) {
	t.Parallel()
	p, _ := startEvents(t)
	a := p.do("POST", posts, "\x00\xff", "Content-Type", "application/octet-stream", "ce-specversion", "1.0", "ce-id", "1",
		"ce-source", "/s", "ce-type", "t")
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	a = p.do("POST", posts, `{"specversion":"1.0","id":"2","source":"/s","type":"t","data_base64":"AP8="}`, "Content-Type",
		structured)
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	for _, position := range []string{"/1", "/2"} {
		e := p.do("GET", posts+position, "").ok()["event"].(map[string]any)
		require.Equal(t, "AP8=", e["dataBase64"])
		require.NotContains(t, e, "data")
	}
}

func TestInvalidEventsAreRefusedWithFields(t *testing.T) {
	t.Parallel()
	p, events := startEvents(t)
	a := p.do("POST", posts, `[{"specversion":"1.0","id":"1","source":"/s"},{"specversion":"1.0","source":"/s","type":"t"}]`, "Content-Type", "application/cloudevents-batch+json")
	a.fails(http.StatusBadRequest, apperror.EventInvalid)
	require.Contains(t, a.body, `"field":"events[0].type"`)
	require.Contains(t, a.body, `"field":"events[1].id"`)
	for name, post := range map[string][]string{
		"no event":   {`{}`, "Content-Type", "application/json"},
		"no JSON":    {`{`, "Content-Type", structured},
		"XML":        {`<e/>`, "Content-Type", "application/cloudevents+xml"},
		"no source":  {`{"specversion":"1.0","id":"1","type":"t"}`, "Content-Type", structured},
		"no content": {"", "Content-Type", structured},
	} {
		p.do("POST", posts, post[0], post[1:]...).fails(http.StatusBadRequest, apperror.EventInvalid)
		require.Empty(t, events.kept, name)
	}
	p.do("POST", posts, "x", "Content-Type", structured, "Content-Encoding", "br").fails(http.StatusBadRequest,
		apperror.InvalidArgument)
	p.do("POST", "/v1/projects/nowhere/events", `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`, "Content-Type",
		structured).
		fails(http.StatusNotFound, apperror.ProjectNotFound)
	p.do("PUT", posts, "x").fails(http.StatusMethodNotAllowed, "UNIMPLEMENTED")
	p.do("POST", posts+"/1", "{}").fails(http.StatusMethodNotAllowed, "UNIMPLEMENTED")

	// The method returns the same errors for events sent as messages.
	client := signalboxv1connect.NewEventServiceClient(p.client, p.base)
	for reason, request := range map[string]*signalboxv1.PublishEventsRequest{
		"at least one": {},
		"no source":    {Events: []*signalboxv1.CloudEvent{{Id: "1", Type: "t"}}},
		"twice": {Events: []*signalboxv1.CloudEvent{
			{Id: "1", Source: "/s", Type: "t", Data: &signalboxv1.JsonValue{Json: "1"}, DataBase64: []byte("x")}}},
		"no time": {Events: []*signalboxv1.CloudEvent{
			{Id: "1", Source: "/s", Type: "t", Time: &timestamppb.Timestamp{Seconds: 1 << 60}}}},
	} {
		_, err := client.PublishEvents(t.Context(), connect.NewRequest(request))
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), reason)
		require.Empty(t, events.kept)
	}
}

func TestEventsOverTheLimits(t *testing.T) {
	t.Parallel()
	p, events := startEvents(t)
	big := `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"` + strings.Repeat("x", 300<<10) + `"}`
	p.do("POST", posts, big, "Content-Type", structured).fails(http.StatusRequestEntityTooLarge, apperror.EventTooLarge)
	many := "[" + strings.Repeat(`{},`, 1000) + "{}]"
	p.do("POST", posts, many, "Content-Type", "application/cloudevents-batch+json").fails(http.StatusRequestEntityTooLarge,
		apperror.EventTooLarge)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(bytes.Repeat([]byte("x"), 2<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	p.do("POST", posts, zipped.String(), "Content-Type", structured, "Content-Encoding",
		"gzip").fails(http.StatusRequestEntityTooLarge, apperror.RequestTooLarge)
	require.Empty(t, events.kept)
}

// An error of the method is returned completely: reason, facts and retry delay; the log has what responses omit.
func TestPublishErrors(t *testing.T) {
	t.Parallel()
	p, events := startEvents(t)
	const text = `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`
	events.refuse = apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
		"the database is away").WithRetry(7 * time.Second)
	a := p.do("POST", posts, text, "Content-Type", structured)
	a.fails(http.StatusServiceUnavailable, apperror.StoreUnavailable)
	require.Equal(t, "7", a.header.Get("Retry-After"))
	require.Empty(t, a.header.Get("Content-Encoding"))
	require.Contains(t, a.body, "google.rpc.RetryInfo")

	events.refuse = fmt.Errorf("password=hunter2")
	a = p.do("POST", posts, text, "Content-Type", structured)
	require.NotContains(t, a.fails(http.StatusInternalServerError, "INTERNAL"), "hunter2")
	require.Contains(t, p.log.String(), "hunter2")
	require.Contains(t, p.log.String(), "signalbox.v1.EventService/PublishEvents")
}

func TestEventsAreListedNewestFirstWithoutData(t *testing.T) {
	t.Parallel()
	p, events := startEvents(t)
	for i := range 5 {
		a := p.do("POST", posts, fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/s%d","type":"t%d","data":1}`, i/2, i,
			i%2), "Content-Type", structured)
		require.Equal(t, http.StatusAccepted, a.status, a.body)
	}
	var seen []string
	token := ""
	for range 3 {
		page := p.do("GET", posts+"?pageSize=2&pageToken="+token, "").ok()
		for _, e := range page["events"].([]any) {
			seen = append(seen, e.(map[string]any)["source"].(string))
			require.NotContains(t, e, "data")
		}
		token, _ = page["nextPageToken"].(string)
	}
	require.Equal(t, []string{"/s4", "/s3", "/s2", "/s1", "/s0"}, seen)
	require.Empty(t, token)
	for query, want := range map[string]int{
		"?type=t1": 2, "?source=/s3": 1, "?id=0": 2, "?statuses=pending": 5, "?statuses=routed&statuses=rejected": 0,
		"?dead=true": 0,
	} {
		require.Len(t, p.do("GET", posts+query, "").ok()["events"], want, query)
	}
	p.do("GET", "/v1/projects/nowhere/events", "").fails(http.StatusNotFound, apperror.ProjectNotFound)

	require.Equal(t, "/s4", p.do("GET", posts+":find?id=2", "").ok()["event"].(map[string]any)["source"])
	require.Equal(t, "/s1", p.do("GET", posts+":find?id=0&source=/s1", "").ok()["event"].(map[string]any)["source"])
	require.Contains(t, p.do("GET", posts+":find?id=0", "").fails(http.StatusBadRequest, apperror.EventAmbiguous),
		`"/s1" and "/s0"`)
	p.do("GET", posts+":find?id=9", "").fails(http.StatusNotFound, apperror.EventNotFound)
	p.do("GET", posts+":find?id=0&source=/s9", "").fails(http.StatusNotFound, apperror.EventNotFound)
	p.do("GET", posts+":find", "").fails(http.StatusBadRequest, apperror.InvalidArgument)
	p.do("GET", posts+"/9", "").fails(http.StatusNotFound, apperror.EventNotFound)
	require.Len(t, events.kept["default"], 5)
}

func TestDeliveriesAndRedelivery(t *testing.T) {
	t.Parallel()
	p, events := startEvents(t)
	p.do("POST", posts, `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`, "Content-Type", structured)
	events.deliveries = []event.Delivery{
		{
			ID: "d1", Kind: event.Start, Workflow: "demo/hello", Version: "1.0.0", RunID: "r1", Status: event.DeliveryDead,
			Attempts: 10,
			Reason:   "the input does not fit", Positions: []int64{1}, CreatedAt: noon, UpdatedAt: noon.Add(time.Second),
			NextAt: noon,
		},
		{ID: "d2", Kind: event.Wake, RunID: "r2", Status: event.DeliveryPending, Attempts: 1, Positions: []int64{1},
			CreatedAt: noon, UpdatedAt: noon, NextAt: noon.Add(time.Minute)},
	}
	const deliveries = `[
		{"id":"d1","kind":"start","workflow":"demo/hello","version":"1.0.0","runId":"r1","status":"dead","attempts":10,"reason":"the input does not fit",
		 "positions":[1],"createTime":"2026-01-31T12:00:00Z","updateTime":"2026-01-31T12:00:01Z"},
		{"id":"d2","kind":"wake","runId":"r2","status":"pending","attempts":1,"nextTime":"2026-01-31T12:01:00Z",
		 "positions":[1],"createTime":"2026-01-31T12:00:00Z","updateTime":"2026-01-31T12:00:00Z"}]`
	got, err := json.Marshal(p.do("GET", posts+"/1", "").ok()["deliveries"])
	require.NoError(t, err)
	require.JSONEq(t, deliveries, string(got))

	require.Empty(t, p.do("GET", posts, "").ok()["deliveries"])
	toRun := p.do("GET", posts+"?run_id=r2", "").ok()["deliveries"].([]any)
	require.Len(t, toRun, 1, "the deliveries to the run alone")
	require.Equal(t, "d2", toRun[0].(map[string]any)["id"])
	require.Equal(t, "r2", events.listed.RunID)

	a := p.do("POST", posts+"/1:redeliver", `{"deliveryIds":["d1"],"reason":"fixed"}`)
	require.JSONEq(t, `{"deliveries":`+deliveries+`}`, a.body)
	require.Equal(t, []string{"default 1 [d1] fixed"}, events.redelivered)
	events.refuse = apperror.New(apperror.NotFound, apperror.DeliveryNotFound, "none")
	p.do("POST", posts+"/1:redeliver", `{}`).fails(http.StatusNotFound, apperror.DeliveryNotFound)
}

// Without an event service, neither the methods nor the binding exist.
func TestEventPathsNeedTheService(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.do("GET", posts, "").fails(http.StatusNotFound, "UNIMPLEMENTED")
	p.do("POST", posts, "{}").fails(http.StatusNotFound, "UNIMPLEMENTED")
}
