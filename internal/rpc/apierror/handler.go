package apierror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Handler completes the errors that Connect writes before a handler is reached: they have no details, and those of the
// HTTP layer (405, 415) have no body. limit is the maximum request size, which the message names.
//
// gRPC-Web errors that follow response headers are in the body and pass unchanged.
func Handler(next http.Handler, limit int64) http.Handler {
	writer := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &completer{ResponseWriter: w, limit: limit}
		next.ServeHTTP(c, r)
		c.finish(writer, r)
	})
}

// completer holds back error bodies until they are completed. All other bodies pass through immediately.
type completer struct {
	http.ResponseWriter

	limit  int64
	passed bool
	status int // status of the held error; 0 while none is held
	body   bytes.Buffer
}

// Unwrap gives http.ResponseController access to the writer's deadlines.
func (c *completer) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader holds back error statuses.
func (c *completer) WriteHeader(status int) {
	if c.passed || c.status != 0 {
		return
	}
	if status >= http.StatusBadRequest {
		c.status = status
		return
	}
	c.pass()
	c.ResponseWriter.WriteHeader(status)
}

// Write writes to the held body, or directly if nothing is held.
func (c *completer) Write(p []byte) (int, error) {
	if c.status != 0 {
		return c.body.Write(p)
	}
	c.pass()
	return c.ResponseWriter.Write(p)
}

// Flush flushes unless an error is held.
func (c *completer) Flush() {
	if c.status != 0 {
		return
	}
	c.pass()
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// pass is called before the first byte is sent: a gRPC-Web error without a body is in the headers.
func (c *completer) pass() {
	if !c.passed {
		c.passed = true
		c.complete("")
	}
}

func (c *completer) finish(writer *connect.ErrorWriter, r *http.Request) {
	if c.status == 0 {
		// gRPC trailers, which net/http sends after the handler returns.
		c.complete(http.TrailerPrefix)
		return
	}
	body := c.body.Bytes()
	if e := c.bare(r); e != nil {
		body = connectBody(writer, e)
		c.Header().Set("Content-Type", "application/json")
		c.Header().Del("Content-Length")
	}
	c.ResponseWriter.WriteHeader(c.status)
	_, _ = c.ResponseWriter.Write(body) // fails only if the caller disconnected
}

// bare returns the completed form of a held error, or nil if it is already complete.
func (c *completer) bare(r *http.Request) *connect.Error {
	switch c.status {
	case http.StatusMethodNotAllowed:
		return New(connect.CodeUnimplemented, Unimplemented,
			fmt.Sprintf("method %s is not allowed here: use %s", r.Method, c.Header().Get("Allow")))
	case http.StatusUnsupportedMediaType:
		return New(connect.CodeInvalidArgument, apperror.InvalidArgument,
			fmt.Sprintf("content type %q is not supported here: use application/json, or a client for Connect, gRPC or gRPC-Web",
				r.Header.Get("Content-Type")))
	case http.StatusNotFound:
		if c.Header().Get("Content-Type") != "application/json" {
			return New(connect.CodeUnimplemented, Unimplemented, fmt.Sprintf("there is no method %s", r.URL.Path))
		}
	case http.StatusHTTPVersionNotSupported:
		return New(connect.CodeUnimplemented, Unimplemented, "this call needs HTTP/2")
	}
	return Undetailed(c.body.Bytes(), c.limit)
}

// Undetailed returns the completed form of an error in Connect's JSON that has no details; nil for anything else.
func Undetailed(body []byte, limit int64) *connect.Error {
	var wire struct {
		Code    connect.Code      `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}
	if err := json.Unmarshal(body, &wire); err != nil || wire.Code == 0 || len(wire.Details) > 0 {
		return nil
	}
	return Completed(wire.Code, wire.Message, limit)
}

// Completed adds a reason and a message with a remedy to an error of a library.
func Completed(code connect.Code, message string, limit int64) *connect.Error {
	switch code {
	case connect.CodeInvalidArgument:
		return New(code, apperror.InvalidArgument, "request body: "+strings.TrimPrefix(message, "unmarshal message: "))
	case connect.CodeResourceExhausted:
		return TooLarge(limit)
	case connect.CodeUnimplemented:
		return New(code, Unimplemented, message)
	case connect.CodeDeadlineExceeded:
		return New(code, DeadlineExceeded, message)
	case connect.CodeCanceled:
		return New(code, Canceled, message)
	case connect.CodeUnknown, connect.CodeInternal:
		// Connect reports frames that are not gRPC this way; errors from our handlers have details.
		return New(connect.CodeInvalidArgument, apperror.InvalidArgument, "request body: "+message)
	default:
		return New(code, strings.ToUpper(code.String()), message)
	}
}

// TooLarge returns the error for a request over the limit.
func TooLarge(limit int64) *connect.Error {
	return New(connect.CodeResourceExhausted, apperror.RequestTooLarge,
		fmt.Sprintf("the request is larger than the limit of %d bytes (api.max_request_bytes); send less", limit))
}

// complete adds the details to an error in gRPC headers or trailers.
func (c *completer) complete(prefix string) {
	const status, message, details = "Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin"
	h := c.Header()
	value := h[prefix+status]
	if len(value) != 1 || value[0] == "0" || len(h[prefix+details]) > 0 {
		return
	}
	var code connect.Code
	if _, err := fmt.Sscan(value[0], (*uint32)(&code)); err != nil {
		return
	}
	text := ""
	if given := h[prefix+message]; len(given) == 1 {
		text = given[0]
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
	}
	for key, values := range grpcTrailers(Completed(code, text, c.limit)) {
		h[prefix+key] = values
	}
}

// connectBody returns the JSON of an error in the Connect protocol.
func connectBody(writer *connect.ErrorWriter, e *connect.Error) []byte {
	recorder := &responseRecorder{header: http.Header{}}
	// The headers by which the writer selects Connect's form.
	as := &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}}
	if err := writer.Write(recorder, as, e); err != nil {
		return []byte(`{"code":"internal","message":"the error could not be written"}`)
	}
	return recorder.body.Bytes()
}

// grpcTrailers returns the trailers of an error in gRPC.
func grpcTrailers(e *connect.Error) http.Header {
	recorder := &responseRecorder{header: http.Header{}}
	as := &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/grpc-web+proto"}}}
	if err := connect.NewErrorWriter().Write(recorder, as, e); err != nil {
		return nil
	}
	found := http.Header{}
	for key, values := range recorder.header {
		if strings.HasPrefix(key, "Grpc-") {
			found[key] = values
		}
	}
	return found
}

// responseRecorder is a ResponseWriter that only records.
type responseRecorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *responseRecorder) Header() http.Header         { return r.header }
func (r *responseRecorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *responseRecorder) WriteHeader(int)             {}

// Write sends an error for a request that reaches no method: in the protocol of an RPC client, otherwise as REST does.
func Write(w http.ResponseWriter, r *http.Request, e *connect.Error) {
	writer := connect.NewErrorWriter()
	if !strings.HasPrefix(r.URL.Path, "/v1/") && writer.IsSupported(r) {
		_ = writer.Write(w, r, e) // fails only if the caller disconnected
		return
	}
	WriteREST(w, e, HTTPStatus(e))
}
