package fail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/reason"
)

// Handler completes the errors that Connect answers before a handler of ours is reached: they have no details, and
// those of the HTTP layer (405, 415) no body. Limit is the size of requests, named in the message.
//
// gRPC-Web errors that follow response headers stand in the body and are passed as they are.
func Handler(next http.Handler, limit int64) http.Handler {
	writer := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &completer{ResponseWriter: w, limit: limit}
		next.ServeHTTP(c, r)
		c.finish(writer, r)
	})
}

// completer holds back error bodies until they can be completed; everything else passes through at once.
type completer struct {
	http.ResponseWriter

	limit  int64
	passed bool
	status int // of a held error; 0 while nothing is held
	body   bytes.Buffer
}

// Unwrap gives http.ResponseController the writer with the deadlines.
func (c *completer) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader holds errors.
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

// Write writes to the body that is held or sent.
func (c *completer) Write(p []byte) (int, error) {
	if c.status != 0 {
		return c.body.Write(p)
	}
	c.pass()
	return c.ResponseWriter.Write(p)
}

// Flush sends what is not held.
func (c *completer) Flush() {
	if c.status != 0 {
		return
	}
	c.pass()
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// pass is called before the first byte goes out: a gRPC-Web error without a body stands in the headers.
func (c *completer) pass() {
	if !c.passed {
		c.passed = true
		c.complete("")
	}
}

func (c *completer) finish(writer *connect.ErrorWriter, r *http.Request) {
	if c.status == 0 {
		// Trailers of gRPC, which net/http sends when the handler has returned.
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
	_, _ = c.ResponseWriter.Write(body) // the caller hung up
}

// bare returns the complete form of a held error, or nil when it is complete.
func (c *completer) bare(r *http.Request) *connect.Error {
	switch c.status {
	case http.StatusMethodNotAllowed:
		return New(connect.CodeUnimplemented, reason.Unimplemented,
			fmt.Sprintf("method %s is not allowed here: use %s", r.Method, c.Header().Get("Allow")))
	case http.StatusUnsupportedMediaType:
		return New(connect.CodeInvalidArgument, fault.InvalidArgument,
			fmt.Sprintf("content type %q is not supported here: use application/json, or a client for Connect, gRPC or gRPC-Web", r.Header.Get("Content-Type")))
	case http.StatusNotFound:
		if c.Header().Get("Content-Type") != "application/json" {
			return New(connect.CodeUnimplemented, reason.Unimplemented, fmt.Sprintf("there is no method %s", r.URL.Path))
		}
	case http.StatusHTTPVersionNotSupported:
		return New(connect.CodeUnimplemented, reason.Unimplemented, "this call needs HTTP/2")
	}
	code, message, bare := connectError(c.body.Bytes())
	if !bare {
		return nil
	}
	return Completed(code, message, c.limit)
}

// connectError reads an error in Connect's JSON and tells whether it is one, and one without details.
func connectError(body []byte) (code connect.Code, message string, bare bool) {
	var wire struct {
		Code    string            `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return 0, "", false
	}
	if err := code.UnmarshalText([]byte(wire.Code)); err != nil {
		return 0, "", false
	}
	return code, wire.Message, len(wire.Details) == 0
}

// Completed gives an error of a library a reason and a line that says what to do.
func Completed(code connect.Code, message string, limit int64) *connect.Error {
	switch code {
	case connect.CodeInvalidArgument:
		return New(code, fault.InvalidArgument, "request body: "+strings.TrimPrefix(message, "unmarshal message: "))
	case connect.CodeResourceExhausted:
		return TooLarge(limit)
	case connect.CodeUnimplemented:
		return New(code, reason.Unimplemented, message)
	case connect.CodeDeadlineExceeded:
		return New(code, reason.DeadlineExceeded, message)
	case connect.CodeCanceled:
		return New(code, reason.Canceled, message)
	case connect.CodeUnknown, connect.CodeInternal:
		// Connect's word for frames that are no gRPC; what comes from our handlers has details.
		return New(connect.CodeInvalidArgument, fault.InvalidArgument, "request body: "+message)
	default:
		return New(code, strings.ToUpper(code.String()), message)
	}
}

// TooLarge answers a request over the limit.
func TooLarge(limit int64) *connect.Error {
	return New(connect.CodeResourceExhausted, fault.RequestTooLarge,
		fmt.Sprintf("the request is larger than the limit of %d bytes (api.max_request_bytes); send less", limit))
}

// complete adds the details to an error in gRPC's headers or trailers.
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
	sheet := &sheet{header: http.Header{}}
	// What the writer looks at to choose Connect's form.
	as := &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}}
	if err := writer.Write(sheet, as, e); err != nil {
		return []byte(`{"code":"internal","message":"the error could not be written"}`)
	}
	return sheet.body.Bytes()
}

// grpcTrailers returns the trailers of an error in gRPC.
func grpcTrailers(e *connect.Error) http.Header {
	sheet := &sheet{header: http.Header{}}
	as := &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/grpc-web+proto"}}}
	if err := connect.NewErrorWriter().Write(sheet, as, e); err != nil {
		return nil
	}
	found := http.Header{}
	for key, values := range sheet.header {
		if strings.HasPrefix(key, "Grpc-") {
			found[key] = values
		}
	}
	return found
}

// sheet is a ResponseWriter that only takes notes.
type sheet struct {
	header http.Header
	body   bytes.Buffer
}

func (s *sheet) Header() http.Header         { return s.header }
func (s *sheet) Write(p []byte) (int, error) { return s.body.Write(p) }
func (s *sheet) WriteHeader(int)             {}

// Write answers a request that reaches no method: in the protocol of an RPC client, else as REST does.
func Write(w http.ResponseWriter, r *http.Request, e *connect.Error) {
	writer := connect.NewErrorWriter()
	if !strings.HasPrefix(r.URL.Path, "/v1/") && writer.IsSupported(r) {
		_ = writer.Write(w, r, e) // the caller hung up
		return
	}
	WriteREST(w, e, HTTPStatus(e))
}
