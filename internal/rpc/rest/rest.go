// Package rest serves the API's REST paths: the HTTP annotations of the protos, and the CloudEvents HTTP binding.
//
//	handler, err := rest.New(services, rest.Options{MaxRequestBytes: 4 << 20, …})
//	mux.Handle("/v1/", handler)
//
// A REST call is a call of its method like any other: its body, which is JSON, goes through the Connect handler of the
// service, within the process. [Interceptor], which these handlers need, adds the fields in the path and in the query
// to the request message. The answer is the JSON of Connect; the files of methods that stream google.api.HttpBody are
// sent chunk by chunk, as they arrive.
//
// The fields of a message in a request, such as its filter, are parameters of their own names: "statuses", not
// "filter.statuses".
//
// Every error is a google.rpc.Status with a reason. An argument that occurs twice is refused: in the path, the query
// and the body, or in one of them.
package rest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"
	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
)

// Options configure the handler.
type Options struct {
	// MaxRequestBytes is the maximum size of a request.
	MaxRequestBytes int64
	// CompressFrom is the size in bytes from which responses are compressed for clients that accept it. Files are not
	// compressed.
	CompressFrom int
	// EventLimits bound the events of the CloudEvents binding.
	EventLimits event.Limits
}

// New returns the handler of all REST paths of the services.
func New(services []handler.Service, opts Options) (http.Handler, error) {
	h := &transcoder{opts: opts, services: map[string]http.Handler{}}
	paths := make([]string, len(services))
	for i, s := range services {
		paths[i] = s.Path
		h.services[s.Path] = s.Handler
	}
	var err error
	if h.table, err = NewTable(paths...); err != nil {
		return nil, fmt.Errorf("build the REST paths: %w", err)
	}
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(opts.CompressFrom), gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.EnableZstd(false))
	if err != nil {
		return nil, fmt.Errorf("build the compression of the REST paths: %w", err)
	}
	h.unary = compress(http.HandlerFunc(h.serveUnary))
	return h, nil
}

type transcoder struct {
	opts     Options
	table    *Table
	services map[string]http.Handler // by path
	unary    http.Handler
}

// ServeHTTP handles one REST call.
func (h *transcoder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	match, ok := h.table.Match(r.Method, r.URL.EscapedPath())
	if !ok {
		h.unmatched(w, r)
		return
	}
	ctx, cancel, err := withTimeout(r)
	if err != nil {
		problem, _ := apierror.Error(err)
		writeError(w, problem)
		return
	}
	defer cancel()
	if !match.events && !isJSON(r) {
		apierror.WriteREST(w, apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, fmt.Sprintf(
			"content type %q is not supported here: send JSON with Content-Type: application/json", r.Header.Get(
				"Content-Type"))),
			http.StatusUnsupportedMediaType)
		return
	}
	c, body, problem := h.read(r, match)
	if problem != nil {
		writeError(w, problem)
		return
	}
	method := connectRequest(r.WithContext(context.WithValue(ctx, callKey{}, c)), match, body)
	if match.Method.IsStreamingServer() {
		h.serveFile(w, method, c)
		return
	}
	h.unary.ServeHTTP(w, method)
}

// unmatched responds to a request that no path matches.
func (h *transcoder) unmatched(w http.ResponseWriter, r *http.Request) {
	allowed := strings.Join(h.table.Allowed(r.URL.EscapedPath()), ", ")
	if allowed == "" {
		apierror.WriteREST(w, apierror.New(connect.CodeUnimplemented, apierror.Unimplemented,
			fmt.Sprintf("there is nothing at %s; docs/reference/api.md lists the paths", r.URL.Path)), http.StatusNotFound)
		return
	}
	w.Header().Set("Allow", allowed)
	apierror.WriteREST(w, apierror.New(connect.CodeUnimplemented, apierror.Unimplemented,
		fmt.Sprintf("method %s is not allowed here: use %s", r.Method, allowed)), http.StatusMethodNotAllowed)
}

func writeError(w http.ResponseWriter, e *connect.Error) {
	apierror.WriteREST(w, e, apierror.HTTPStatus(e))
}

// isJSON reports whether the body, if there is one, is declared as JSON.
func isJSON(r *http.Request) bool {
	given := strings.Join(r.Header.Values("Content-Type"), ", ")
	if given == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(given)
	charset := strings.ToLower(params["charset"])
	return err == nil && media == "application/json" && (charset == "" || charset == "utf-8")
}

// read returns the call with the arguments outside of the JSON body, and this body.
func (h *transcoder) read(r *http.Request, match Match) (*call, []byte, *connect.Error) {
	body, problem := ReadBody(r, h.opts.MaxRequestBytes)
	if problem != nil {
		return nil, nil, problem
	}
	arguments, err := match.arguments(r.URL.RawQuery)
	if err == nil && match.events {
		err = h.addEvents(arguments, r.Header, body)
		body = nil
	}
	if err != nil {
		problem, _ := apierror.Error(err)
		return nil, nil, problem
	}
	if !match.Body && len(body) > 0 {
		return nil, nil, BadBody("this method takes no body")
	}
	return &call{match: match, arguments: arguments}, body, nil
}

// connectRequest returns the request of the method in Connect's protocol.
func connectRequest(r *http.Request, match Match, body []byte) *http.Request {
	procedure := match.service() + string(match.Method.Name())
	kind := "application/json"
	switch {
	case match.Method.IsStreamingServer():
		kind, body = "application/connect+proto", make([]byte, 5) // the header of an empty message: no flags, no length
	case len(body) == 0:
		body = []byte("{}")
	}
	call := r.Clone(r.Context())
	call.Method, call.URL, call.RequestURI = http.MethodPost, &url.URL{Path: procedure}, procedure
	call.Body, call.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for name := range call.Header {
		// these concern the form of this request and its answer
		for _, prefix := range []string{"Accept", "Ce-", "Connect-", "Content-", "Transfer-"} {
			if strings.HasPrefix(name, prefix) {
				call.Header.Del(name)
			}
		}
	}
	call.Header.Del(timeoutHeader) // the context has the deadline
	if !match.Method.IsStreamingServer() {
		call.Header["Accept-Encoding"] = r.Header.Values("Accept-Encoding") // for the compression around serveUnary
	}
	call.Header.Set("Content-Type", kind)
	return call
}

// serveUnary calls a method that returns a message.
func (h *transcoder) serveUnary(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(callKey{}).(*call)
	r.Header.Del("Accept-Encoding") // otherwise Connect would compress the answer, too
	a := &answer{ResponseWriter: w, success: http.StatusOK}
	if c.match.events {
		a.success = http.StatusAccepted
	}
	h.services[c.match.service()].ServeHTTP(a, r)
	if !a.failed {
		return
	}
	if c.problem == nil && !c.reached {
		c.problem = apierror.Undetailed(a.body.Bytes(), h.opts.MaxRequestBytes) // the message could not be decoded
	}
	if c.problem == nil {
		c.problem = apierror.InternalError()
	}
	writeError(w, c.problem)
}

// answer is a ResponseWriter that holds back Connect's errors.
type answer struct {
	http.ResponseWriter

	success int
	begun   bool
	failed  bool
	body    bytes.Buffer // of the error
}

// Unwrap gives http.ResponseController access to the writer's deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader holds back error statuses.
func (a *answer) WriteHeader(status int) { a.failed = status >= http.StatusBadRequest }

// Write writes to the held body, or directly if nothing is held.
func (a *answer) Write(p []byte) (int, error) {
	if a.failed {
		return a.body.Write(p)
	}
	if !a.begun {
		a.begun = true
		a.Header().Del("Accept-Encoding") // Connect names the compressions of its requests
		a.ResponseWriter.WriteHeader(a.success)
	}
	return a.ResponseWriter.Write(p)
}

// serveFile calls a method that streams a file. An error before the first chunk is sent like any other; a later one
// aborts the connection, so that a partial file is not taken for a complete one.
func (h *transcoder) serveFile(w http.ResponseWriter, r *http.Request, c *call) {
	c.file = w
	h.services[c.match.service()].ServeHTTP(stream{w, http.Header{}}, r)
	switch {
	case c.problem != nil && c.begun:
		panic(http.ErrAbortHandler)
	case c.problem != nil:
		writeError(w, c.problem)
	case !c.reached:
		writeError(w, apierror.InternalError())
	}
}

// stream is the ResponseWriter for what Connect writes around the chunks of a file, which is discarded.
type stream struct {
	http.ResponseWriter

	header http.Header
}

// Header returns headers that are not sent; those of the file are copied.
func (s stream) Header() http.Header { return s.header }

// WriteHeader does nothing: the status of a stream is in its last message.
func (stream) WriteHeader(int) {}

// Write does nothing: the chunks of the file are written when they are sent.
func (stream) Write(p []byte) (int, error) { return len(p), nil }

// Flush does nothing: it follows each chunk.
func (stream) Flush() {}
