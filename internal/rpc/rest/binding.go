package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// EventsPath is the path for posted events, as a pattern of net/http.
const EventsPath = "/v1/projects/{project}/events"

// EventBindingOptions configure the binding.
type EventBindingOptions struct {
	// Events is the Connect handler of EventService.
	Events http.Handler
	// Else handles all other methods: the REST paths.
	Else http.Handler
	// Limits bound the events, MaxBytes the whole request.
	Limits   event.Limits
	MaxBytes int64
}

// NewEventBinding returns the handler of [EventsPath], the CloudEvents HTTP binding: events posted in the structured, the binary or the batch
// mode.
//
//	mux.Handle("/v1/projects/{project}/events", rest.NewEventBinding(rest.EventBindingOptions{Events: eventService, Else: restPaths, …}))
//
// A post is a call of EventService's PublishEvents like any other: it goes through the Connect handler with all its interceptors,
// within the process. The response is 202 with the JSON of PublishEventsResponse once the events are durable, or a google.rpc.Status as
// on the REST paths. Package internal/event validates events, package cloudevents decodes their forms.
func NewEventBinding(opts EventBindingOptions) http.Handler {
	client := signalboxv1connect.NewEventServiceClient(localClient{opts.Events}, "http://within.the.process",
		connect.WithAcceptCompression("gzip", nil, nil)) // the call stays within the process
	return &eventBinding{opts: opts, client: client}
}

type eventBinding struct {
	opts   EventBindingOptions
	client signalboxv1connect.EventServiceClient
}

// ServeHTTP handles posted events.
func (b *eventBinding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodGet, http.MethodHead:
		b.opts.Else.ServeHTTP(w, r)
		return
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		apierror.WriteREST(w, apierror.New(connect.CodeUnimplemented, apierror.Unimplemented,
			fmt.Sprintf("method %s is not allowed here: use POST to publish events, GET to list them", r.Method)), http.StatusMethodNotAllowed)
		return
	}
	res, failure := b.publish(r)
	if failure == nil {
		text, err := jsoncodec.Append(nil, res)
		if err == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(append(text, '\n')) //nolint:gosec // the content type is JSON; fails only if the caller disconnected
			return
		}
		failure = apierror.InternalError()
	}
	apierror.WriteREST(w, failure, apierror.HTTPStatus(failure))
}

// publish reads the request and calls the method.
func (b *eventBinding) publish(r *http.Request) (*signalboxv1.PublishEventsResponse, *connect.Error) {
	query, err := Query(r.URL.RawQuery)
	if err == nil && len(query) > 0 {
		err = apperror.New(apperror.Invalid, apperror.InvalidArgument, "request: there is no parameter %q: a post of events takes none", query[0].Name).
			WithField(query[0].Name, "cannot be used here")
	}
	project := r.PathValue("project")
	if err == nil {
		err = CheckVariable("project", project)
	}
	if err != nil {
		failure, _ := apierror.Error(err)
		return nil, failure
	}
	raw, failure := ReadBody(r, b.opts.MaxBytes)
	if failure != nil {
		return nil, failure
	}
	events, err := cloudevents.Parse(r.Header, raw, b.opts.Limits)
	if err != nil {
		failure, _ = apierror.Error(err)
		return nil, failure
	}
	req := connect.NewRequest(&signalboxv1.PublishEventsRequest{Project: project, Events: handler.EventMessages(events)})
	for name, values := range r.Header {
		if forCall(name) {
			req.Header()[name] = values
		}
	}
	res, err := b.client.PublishEvents(r.Context(), req)
	if err != nil {
		return nil, eventError(r.Context(), err)
	}
	return res.Msg, nil
}

// forCall reports whether a header concerns the call, as opposed to the form of its body and response.
func forCall(name string) bool {
	for _, prefix := range []string{"Accept", "Ce-", "Connect-", "Connection", "Content-", "Transfer-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

// eventError returns the method's error without the headers of the call within the process.
func eventError(ctx context.Context, err error) *connect.Error {
	var e *connect.Error
	if !errors.As(err, &e) || len(e.Details()) == 0 {
		if ctx.Err() != nil {
			failure, _ := apierror.Error(ctx.Err())
			return failure
		}
		return apierror.InternalError()
	}
	bare := connect.NewError(e.Code(), errors.New(e.Message()))
	for _, d := range e.Details() {
		bare.AddDetail(d)
	}
	const retry = "Retry-After"
	if after := e.Meta().Get(retry); after != "" {
		bare.Meta().Set(retry, after)
	}
	return bare
}

// localClient is an HTTP client whose server is a handler in this process.
type localClient struct{ handler http.Handler }

// Do calls the handler and returns after it has finished; nothing is streamed.
func (w localClient) Do(r *http.Request) (*http.Response, error) {
	answer := &bufferedResponse{header: http.Header{}, status: http.StatusOK}
	r.RequestURI = r.URL.RequestURI()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w.handler.ServeHTTP(answer, r)
	text := answer.body.String()
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: answer.header, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}

// bufferedResponse is a ResponseWriter that buffers the response.
type bufferedResponse struct {
	header http.Header
	status int
	body   strings.Builder
}

func (a *bufferedResponse) Header() http.Header         { return a.header }
func (a *bufferedResponse) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *bufferedResponse) WriteHeader(status int)      { a.status = status }
