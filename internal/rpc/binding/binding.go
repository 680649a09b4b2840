// Package binding serves the CloudEvents HTTP binding: events that are posted as they are, in the structured, the binary or the
// batch mode.
//
//	mux.Handle("/v1/projects/{project}/events", binding.New(binding.Options{Events: eventService, Else: restPaths, …}))
//
// A post is a call of EventService's PublishEvents like any other: it goes through the Connect handler with all its interceptors,
// within the process. It answers 202 with the JSON of PublishEventsResponse once the events are durable, or a google.rpc.Status as
// the REST paths do. What events have to be is package internal/event's business, their forms package cloudevents'.
package binding

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
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/body"
	"github.com/signalbox-dev/signalbox/internal/rpc/eventhandler"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/rpc/reason"
	"github.com/signalbox-dev/signalbox/internal/rpc/route"
)

// Path is where events are posted to, as a pattern of net/http.
const Path = "/v1/projects/{project}/events"

// Options say what a post is answered by.
type Options struct {
	// Events is the Connect handler of EventService.
	Events http.Handler
	// Else answers what is no post: the REST paths.
	Else http.Handler
	// Limits bound events, MaxBytes the whole request.
	Limits   event.Limits
	MaxBytes int64
}

// New returns the handler of [Path].
func New(opts Options) http.Handler {
	client := signalboxv1connect.NewEventServiceClient(within{opts.Events}, "http://within.the.process",
		connect.WithAcceptCompression("gzip", nil, nil)) // nothing leaves the process
	return &binding{opts: opts, client: client}
}

type binding struct {
	opts   Options
	client signalboxv1connect.EventServiceClient
}

// ServeHTTP takes posted events.
func (b *binding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodGet, http.MethodHead:
		b.opts.Else.ServeHTTP(w, r)
		return
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		fail.WriteREST(w, fail.New(connect.CodeUnimplemented, reason.Unimplemented,
			fmt.Sprintf("method %s is not allowed here: use POST to publish events, GET to list them", r.Method)), http.StatusMethodNotAllowed)
		return
	}
	res, problem := b.publish(r)
	if problem == nil {
		text, err := jsoncodec.Append(nil, res)
		if err == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(append(text, '\n')) //nolint:gosec // it is JSON, and is said to be; an error means that the caller hung up
			return
		}
		problem = fail.Internal()
	}
	fail.WriteREST(w, problem, fail.HTTPStatus(problem))
}

// publish reads the request and calls the method.
func (b *binding) publish(r *http.Request) (*signalboxv1.PublishEventsResponse, *connect.Error) {
	query, err := route.Query(r.URL.RawQuery)
	if err == nil && len(query) > 0 {
		err = fault.New(fault.Invalid, fault.InvalidArgument, "request: there is no parameter %q: a post of events takes none", query[0].Name).
			WithField(query[0].Name, "cannot be used here")
	}
	project := r.PathValue("project")
	if err == nil {
		err = route.CheckVariable("project", project)
	}
	if err != nil {
		problem, _ := fail.Error(err)
		return nil, problem
	}
	raw, problem := body.Read(r, b.opts.MaxBytes)
	if problem != nil {
		return nil, problem
	}
	events, err := cloudevents.Parse(r.Header, raw, b.opts.Limits)
	if err != nil {
		problem, _ = fail.Error(err)
		return nil, problem
	}
	req := connect.NewRequest(&signalboxv1.PublishEventsRequest{Project: project, Events: eventhandler.Messages(events)})
	for name, values := range r.Header {
		if forCall(name) {
			req.Header()[name] = values
		}
	}
	res, err := b.client.PublishEvents(r.Context(), req)
	if err != nil {
		return nil, answered(r.Context(), err)
	}
	return res.Msg, nil
}

// forCall tells whether a header is about the call, and not about the form of its body and its answer.
func forCall(name string) bool {
	for _, prefix := range []string{"Accept", "Ce-", "Connect-", "Connection", "Content-", "Transfer-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

// answered is the method's error without the headers that it came with inside the process.
func answered(ctx context.Context, err error) *connect.Error {
	var e *connect.Error
	if !errors.As(err, &e) || len(e.Details()) == 0 {
		if ctx.Err() != nil {
			problem, _ := fail.Error(ctx.Err())
			return problem
		}
		return fail.Internal()
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

// within is an HTTP client whose server is a handler of this process.
type within struct{ handler http.Handler }

// Do answers a request. The handler ends with it: nothing is streamed.
func (w within) Do(r *http.Request) (*http.Response, error) {
	answer := &answer{header: http.Header{}, status: http.StatusOK}
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

// answer is a ResponseWriter that keeps what is written.
type answer struct {
	header http.Header
	status int
	body   strings.Builder
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) WriteHeader(status int)      { a.status = status }
